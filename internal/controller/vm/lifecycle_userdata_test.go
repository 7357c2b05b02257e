package vm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

const bootData = "#cloud-config\npassword: hunter2-hunter2\n"

func withUserData(vm *pcapi.VM) {
	vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{UserDataSecretRef: &pcapi.SecretKeyReference{Name: "boot", Key: "user-data"}}}
}

func withKey(vm *pcapi.VM) {
	vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{"ssh-ed25519 AAAA ann"}}}
}

// bootSecret returns the Secret that withUserData names, with changes.
func bootSecret(change ...func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "boot", Labels: map[string]string{pcapi.UserDataLabel: "true"}},
		Data:       map[string][]byte{"user-data": []byte(bootData)},
	}
	for _, f := range change {
		f(secret)
	}
	return secret
}

// live answers reads of Secrets with err, if it is set, and counts them.
type live struct {
	client.Reader
	err   error
	reads int
}

func (l *live) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, secret := o.(*corev1.Secret); !secret {
		return l.Reader.Get(ctx, key, o, opts...)
	}
	l.reads++
	if l.err != nil {
		return l.err
	}
	return l.Reader.Get(ctx, key, o, opts...)
}

func TestUserDataIsReadOnceAndSentWithCreate(t *testing.T) {
	h := newHarness(t, everything, vmWith(withUserData), bootSecret())
	reader := &live{Reader: h.client}
	h.kind.Live = reader
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantCalls("check web", "create web")
	equal(t, "user data", []string{bootData}, h.cloud.UserData("web"))
	equal(t, "writes", []string{"object", "status"}, h.writes)

	secret := bootSecret(func(s *corev1.Secret) { s.Data["user-data"] = []byte("#cloud-config\n") })
	if err := h.client.Update(t.Context(), secret); err != nil {
		t.Fatalf("Update: %v", err)
	}
	h.later(pollInterval)
	h.mustReconcile()
	h.wantCalls()
	equal(t, "reads of the Secret", 1, reader.reads)
}

func TestKeysNeedNoSecret(t *testing.T) {
	h := newHarness(t, everything, vmWith(withKey))
	reader := &live{Reader: h.client}
	h.kind.Live = reader
	h.mustReconcile()
	equal(t, "user data", []string{"#cloud-config\nssh_authorized_keys: [\"ssh-ed25519 AAAA ann\"]\n"}, h.cloud.UserData("web"))
	equal(t, "reads of Secrets", 0, reader.reads)
}

func TestVMWaitsForItsSecret(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "boot", nil)
	for name, test := range map[string]struct {
		secret func(*corev1.Secret)
		err    error
		says   string
	}{
		"it does not exist": {err: apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "boot"),
			says: `Secret "boot" with the user data does not exist in this namespace: create it with the key user-data and the label ` + pcapi.UserDataLabel + `=true`},
		"the operator may not read it": {err: forbidden, says: "cannot be read by the operator: allow its service account to get it, by a Role and a RoleBinding in this namespace"},
		"it lacks the label":           {secret: func(s *corev1.Secret) { s.Labels = map[string]string{pcapi.CredentialsForLabel: "default"} }, says: "lacks the label " + pcapi.UserDataLabel + "=true"},
		"its label has another value":  {secret: func(s *corev1.Secret) { s.Labels[pcapi.UserDataLabel] = "false" }, says: "lacks the label"},
		"it lacks the key":             {secret: func(s *corev1.Secret) { s.Data = map[string][]byte{"value": []byte(bootData)} }, says: "has nothing under the key user-data"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := bootSecret()
			if test.secret != nil {
				test.secret(secret)
			}
			h := newHarness(t, everything, vmWith(withUserData), secret)
			reader := &live{Reader: h.client, err: test.err}
			h.kind.Live = reader
			h.wantRequeue(time.Second, h.mustReconcile())
			h.wantRequeue(2*time.Second, h.mustReconcile())
			h.wantCalls()
			h.wantClaim("")
			h.wantCondition(pcapi.ReadyCondition, "False "+pcapi.UserDataUnavailableReason, test.says)
			h.wantCondition(pcapi.CreatedCondition, "False Pending", test.says)
			equal(t, "writes", []string{"status"}, h.writes)

			reader.err = nil
			if err := h.client.Update(t.Context(), bootSecret()); err != nil {
				t.Fatalf("Update: %v", err)
			}
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			equal(t, "user data", []string{bootData}, h.cloud.UserData("web"))
		})
	}
}

func TestVMThatOnlyWaitsForItsSecretIsRemovedAtOnce(t *testing.T) {
	h := newHarness(t, everything, vmWith(withUserData))
	h.mustReconcile()
	h.remove()
	h.wantGone()
	h.wantCalls()
}

func TestSecretIsNotReadWhileCloudIsUnavailable(t *testing.T) {
	h := newHarness(t, everything, vmWith(withUserData), bootSecret())
	reader := &live{Reader: h.client}
	h.kind.Live = reader
	h.inv.MarkUnavailable("it is away")
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable")
	equal(t, "reads of the Secret", 0, reader.reads)
}

// A Secret that is rotated or removed between a lost answer and the next create leads to
// one server, with the user data of the create that took effect.
func TestSecretChangesAfterLostAnswer(t *testing.T) {
	for name, caps := range profiles {
		for what, change := range map[string]func(*harness) error{
			"rotated": func(h *harness) error {
				return h.client.Update(h.t.Context(), bootSecret(func(s *corev1.Secret) { s.Data["user-data"] = []byte("#!/bin/sh\n") }))
			},
			"removed": func(h *harness) error { return h.client.Delete(h.t.Context(), bootSecret()) },
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(withUserData), bootSecret())
				h.cloud.Fail(cloudfake.CreateServer, errReset, true)
				h.mustReconcile()
				if err := change(h); err != nil {
					t.Fatal(err)
				}
				h.passSettleTimes(3)
				if what == "removed" && h.vm().Status.VMID == "" { // only the key leads to the server
					h.wantCondition(pcapi.ReadyCondition, "False "+pcapi.UserDataUnavailableReason)
					if err := h.client.Create(t.Context(), bootSecret()); err != nil {
						t.Fatal(err)
					}
					h.passSettleTimes(2)
				}
				h.wantServers("s1")
				equal(t, "vmId", "s1", h.vm().Status.VMID)
				equal(t, "user data of the server", bootData, h.cloud.UserData("web")[0])
			})
		}
	}
}

// passSettleTimes lets the settle time pass n times, with a reconcile after each.
func (h *harness) passSettleTimes(n int) {
	h.t.Helper()
	for range n {
		h.later(settleTime)
		h.mustReconcile()
	}
}

func TestUserDataThatIsTooLargeStalls(t *testing.T) {
	h := newHarness(t, everything, vmWith(withUserData), bootSecret(func(s *corev1.Secret) { s.Data["user-data"] = make([]byte, cloudfake.MaxUserData+1) }))
	h.mustReconcile()
	h.wantCondition(pcapi.StalledCondition, "True Rejected", "the user data has 1025 bytes as it is sent, and this cloud takes 1024: make it smaller")
	h.wantServers()
}

func TestCloudWithoutUserDataRefusesBootstrap(t *testing.T) {
	h := newHarness(t, without(cloud.WithUserData), vmWith(withKey))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.StalledCondition, "True Unsupported", "this cloud cannot set bootstrap")
}

// A cloud that refuses the user data may quote it. With keys, the document that is sent
// has it in base64 only, and the cloud may have unpacked it.
func TestRefusalThatQuotesUserDataShowsNothingOfIt(t *testing.T) {
	withBoth := func(vm *pcapi.VM) {
		withUserData(vm)
		vm.Spec.Bootstrap.CloudInit.SSHAuthorizedKeys = []pcapi.SSHAuthorizedKey{"ssh-ed25519 AAAA ann"}
	}
	for name, refusal := range map[string]*cloud.Error{
		"in its reason":             {Kind: cloud.Rejected, Op: "create server", Detail: "line 2: password: hunter2-hunter2: unexpected"},
		"in the error that it has":  {Kind: cloud.Rejected, Op: "create server", Err: fmt.Errorf("got %q", bootData)},
		"in base64, if it is away":  {Kind: cloud.Unavailable, Op: "create server", Detail: "I2Nsb3VkLWNvbmZpZwpwYXNzd29yZDogaHVudGVyMi1odW50ZXIyCg=="},
		"in what cannot be decoded": {Kind: cloud.Failed, Op: "create server", Detail: "hunter2-hunter2"},
	} {
		for with, bootstrap := range map[string]func(*pcapi.VM){"": withUserData, ", with keys": withBoth} {
			t.Run(name+with, func(t *testing.T) {
				h := newHarness(t, everything, vmWith(bootstrap), bootSecret())
				h.cloud.Fail(cloudfake.CreateServer, refusal, false)
				h.mustReconcile()
				for _, c := range h.vm().Status.Conditions {
					if strings.Contains(c.Message, "hunter2") || strings.Contains(c.Message, "aHVudGVy") {
						t.Errorf("condition %s: %s", c.Type, c.Message)
					}
				}
				h.wantCondition(pcapi.ReadyCondition, "False "+map[cloud.Kind]string{
					cloud.Rejected: pcapi.RejectedReason, cloud.Unavailable: pcapi.CloudUnavailableReason, cloud.Failed: pcapi.OperationFailedReason,
				}[refusal.Kind], "create server")
			})
		}
	}
}

// A cloud that answers with operations says only later why the create failed, maybe to
// another process than the one that sent it.
func TestFailedOperationThatQuotesUserDataShowsNothingOfIt(t *testing.T) {
	quoting := &cloud.Error{Kind: cloud.Rejected, Op: "operation", Detail: "unexpected password: hunter2-hunter2 in line 2"}
	for name, test := range map[string]struct {
		before func(*harness) error
		says   string
	}{
		"the Secret is there":     {func(*harness) error { return nil }, "unexpected … in line 2"},
		"another process sent it": {func(h *harness) error { h.start(); h.connect(); return nil }, "unexpected … in line 2"},
		"the Secret was removed":  {func(h *harness) error { return h.client.Delete(t.Context(), bootSecret()) }, "may quote the user data: look in the cloud"},
		"the Secret has no label": {func(h *harness) error {
			return h.client.Update(t.Context(), bootSecret(func(s *corev1.Secret) { s.Labels = nil }))
		}, "may quote the user data: look in the cloud"},
		"the Secret cannot be read": {func(h *harness) error { h.kind.Live = &live{Reader: h.client, err: errReset}; return nil }, "may quote the user data: look in the cloud"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, operating, vmWith(withUserData), bootSecret())
			h.cloud.SetOperating(true)
			h.mustReconcile()
			h.advance(2 * time.Second)
			h.mustReconcile()
			h.wantOperation(pcapi.VMOperationCreate, 2*time.Second)
			h.cloud.FailOperations(quoting)
			if err := test.before(h); err != nil {
				t.Fatal(err)
			}
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "False "+pcapi.RejectedReason, test.says)
			for _, c := range h.vm().Status.Conditions {
				if strings.Contains(c.Message, "hunter2") {
					t.Errorf("condition %s: %s", c.Type, c.Message)
				}
			}
		})
	}
}

func TestUserDataIsPrintedAsItsSize(t *testing.T) {
	obs := observation{userData: cloud.UserData(bootData)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if text := fmt.Sprintf(verb, obs.userData) + fmt.Sprintf(verb, cloud.CreateServer{UserData: obs.userData}); strings.Contains(text, "hunter2") || strings.Contains(text, "68756e746572") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}
