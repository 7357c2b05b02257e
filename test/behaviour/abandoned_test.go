package behaviour_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// deletionHold is an admission webhook that holds the DELETEs of VMs in one
// namespace. kube-apiserver calls it after it decided whether finalizers delay
// the deletion: a finalizer that is stored meanwhile has no effect.
type deletionHold struct {
	held    chan types.UID
	release func()
}

func holdDeletions(t *T, namespace string) *deletionHold {
	t.Helper()
	ctx, release := context.WithCancel(context.WithoutCancel(t.Context()))
	h := &deletionHold{held: make(chan types.UID, 100), release: release}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if review.Request.DryRun == nil || !*review.Request.DryRun {
			h.held <- review.Request.UID
			<-ctx.Done()
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Warnings: []string{"held"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hold-" + namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hold.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{pcapi.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"vms"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds:          new(int32(30)),
		}},
	}
	t.Expect(env.Client.Create(t.Context(), configuration)).To(Succeed())
	t.cleanup(func(ctx context.Context) {
		release()
		t.Expect(env.Client.Delete(ctx, configuration)).To(Succeed())
		server.Close()
	})
	probe := testkit.VM(namespace, "probe", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "nowhere"} })
	t.Expect(env.Client.Create(t.Context(), probe)).To(Succeed())
	t.Eventually(func(ctx context.Context) (string, error) {
		return env.Kubectl(ctx, "", "delete", "vm", "probe", "-n", namespace, "--dry-run=server", "--wait=false")
	}).Should(ContainSubstring("held"), "the API server calls the webhook")
	return h
}

// begin deletes a VM, and returns once the API server has decided to remove it.
// wait waits until the deletion has ended.
func (h *deletionHold) begin(t *T, vm *pcapi.VM) (wait func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- env.Client.Delete(t.Context(), testkit.VM(vm.Namespace, vm.Name)) }()
	t.Eventually(h.held).Should(Receive(), "the deletion is held")
	return func() { t.Eventually(done).Should(Receive(BeNil()), "the deletion has ended") }
}

// forgotten returns a case of a VM that is deleted before its claim and removed
// after it, with the moment of its removal: during the create, or after it.
func forgotten(options mockcloud.Options, duringCreate, answerLost bool) func(*T) {
	return func(t *T) {
		f := newFixture(t, options)
		deletions := holdDeletions(t, f.namespace)
		check := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Path: "/check/**"}, Hold: true})
		create := ""
		if duringCreate {
			create = f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1}, Hold: true, Answer: mockcloud.After})
		}
		vm := f.createVM("web")
		t.Expect(f.WaitHeld(t.Context(), check, 1)).To(Succeed())
		removed := deletions.begin(t, vm)
		t.Expect(f.RemoveFault(check)).To(Succeed())
		if duringCreate {
			t.Expect(f.WaitHeld(t.Context(), create, 1)).To(Succeed())
		} else {
			waitReady(t, vm)
		}
		deletions.release()
		removed()
		t.Expect(isGone(vm)(t.Context())).To(BeTrue(), "its finalizer did not delay the deletion")
		switch {
		case answerLost:
			t.Expect(f.DropFault(create)).To(Succeed())
		case duringCreate:
			t.Expect(f.ReleaseFault(create)).To(Succeed())
		}

		t.Eventually(f.Servers).Should(BeEmpty(), "its server is deleted")
		effects := slices.DeleteFunc(f.effects(), func(op mockcloud.Op) bool { return op == mockcloud.OpGone })
		t.Expect(effects).To(HaveExactElements(mockcloud.OpCreate, mockcloud.OpDelete))
		fresh := f.readyVM("web")
		t.Expect(f.serversNamed("web")).To(Equal([]string{fresh.Status.VMID}), "another VM of this name has its own server")
	}
}

var forgottenCases = cases{
	"extended cloud, removed during the create: its server is deleted":                   forgotten(mockcloud.Options{}, true, false),
	"extended cloud, removed during the create, the answer is lost: server is deleted":   forgotten(mockcloud.Options{}, true, true),
	"extended cloud, removed after the create: its server is deleted":                    forgotten(mockcloud.Options{}, false, false),
	"core cloud, removed during the create: its server is deleted":                       forgotten(mockcloud.Options{Profile: mockcloud.Core}, true, false),
	"core cloud, removed after the create: its server is deleted":                        forgotten(mockcloud.Options{Profile: mockcloud.Core}, false, false),
	"slow cloud, removed during the create: its server is deleted":                       forgotten(mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(time.Second), DeleteTime: mockcloud.Duration(time.Second)}}, true, false),
	"extended cloud, many VMs deleted around their claims: no server is left":            deletedAroundClaim(mockcloud.Options{}),
	"core cloud, many VMs deleted around their claims: no server is left":                deletedAroundClaim(mockcloud.Options{Profile: mockcloud.Core}),
	"deletionPolicy Orphan, removed after the create: its server stays without an owner": forgottenOrphan,
	"its deletion is blocked twice: the event is counted":                                forgottenAndBlocked,
}

func TestClaimThatKubernetesForgets(t *testing.T) { forgottenCases.run(t) }

func forgottenOrphan(t *T) {
	f := newFixture(t, mockcloud.Options{})
	deletions := holdDeletions(t, f.namespace)
	check := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Path: "/check/**"}, Hold: true})
	vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
	t.Expect(f.WaitHeld(t.Context(), check, 1)).To(Succeed())
	removed := deletions.begin(t, vm)
	t.Expect(f.RemoveFault(check)).To(Succeed())
	vm = waitReady(t, vm)
	deletions.release()
	removed()
	t.Eventually(func() map[string]string {
		server, _ := f.Server(vm.Status.VMID)
		return server.Labels
	}).Should(BeEmpty(), "the owner labels are removed")
	t.Expect(f.serversNamed("web")).To(Equal([]string{vm.Status.VMID}))
}

// forgottenAndBlocked is a case of events that repeat for one version of an object: the
// status of an object that Kubernetes forgot is not written. The recorder counts them
// with a patch.
func forgottenAndBlocked(t *T) {
	f := newFixture(t, mockcloud.Options{})
	deletions := holdDeletions(t, f.namespace)
	check := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Path: "/check/**"}, Hold: true})
	vm := f.createVM("web")
	t.Expect(f.WaitHeld(t.Context(), check, 1)).To(Succeed())
	removed := deletions.begin(t, vm)
	t.Expect(f.RemoveFault(check)).To(Succeed())
	vm = waitReady(t, vm)
	refusal := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "DELETE", Path: "/servers/*"}, Status: 422, Body: `{"code":"invalid","detail":"it is locked"}`})
	deletions.release()
	removed()
	t.Eventually(eventReasons(vm)).Should(ContainElement("Blocked"))

	fresh := f.createVM("web") // enqueues the object of its name that is forgotten
	f.SetUnavailable(true)
	t.Eventually(func(ctx context.Context) ([]string, error) {
		touch(t, f.object)
		requestReconcile(t, fresh)
		return eventReasons(vm)(ctx)
	}).Should(ContainElement("WaitingForCloud"))
	f.SetUnavailable(false)
	t.Eventually(func(ctx context.Context) ([]string, error) {
		touch(t, f.object)
		requestReconcile(t, fresh)
		return eventReasons(vm)(ctx)
	}).Should(ContainElement(HavePrefix("and ")), "Blocked again")

	t.Expect(f.RemoveFault(refusal)).To(Succeed())
	t.Eventually(func() []string {
		requestReconcile(t, fresh)
		return f.serversNamed("web")
	}).ShouldNot(ContainElement(vm.Status.VMID))
	waitReady(t, fresh)
}

// deletedAroundClaim creates many VMs and deletes each a few milliseconds later,
// when the operator stores the claim or sends the create.
func deletedAroundClaim(options mockcloud.Options) func(*T) {
	return func(t *T) {
		const n = 120
		f := newFixture(t, options, func(c *pcapi.Cloud) {
			c.Spec.Limits = pcapi.CloudLimits{RequestsPerSecond: 500, Burst: 500, MaxInFlight: 64}
		})
		var group sync.WaitGroup
		failures := make(chan error, 2*n)
		for i := range n {
			group.Go(func() {
				vm := testkit.VM(f.namespace, fmt.Sprintf("vm-%03d", i), func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name} })
				failures <- env.Client.Create(t.Context(), vm)
				<-time.After(time.Duration(i) * time.Millisecond)
				failures <- client.IgnoreNotFound(env.Client.Delete(t.Context(), vm))
			})
			if i%8 == 7 {
				group.Wait()
			}
		}
		group.Wait()
		close(failures)
		for err := range failures {
			t.Expect(err).NotTo(HaveOccurred())
		}
		t.Eventually(func(ctx context.Context) (int, error) {
			var left pcapi.VMList
			err := env.Client.List(ctx, &left, client.InNamespace(f.namespace))
			return len(left.Items), err
		}).Should(BeZero(), "all objects are gone")
		t.Eventually(f.Servers).Should(BeEmpty(), "all servers are gone")
		f.waitForPolls(2)
		t.Expect(f.Servers()).To(BeEmpty(), "no server is created later")
		abandoned := 0
		for line := range strings.Lines(operatorLog.String()) {
			if strings.Contains(line, "Kubernetes removed the object") && strings.Contains(line, f.namespace) {
				abandoned++
			}
		}
		t.Logf("%d servers were created, %d objects were removed by Kubernetes in spite of their claim", f.createCalls(), abandoned)
	}
}
