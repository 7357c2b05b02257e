package vmconsolerequest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestRequestIsAnsweredOnceAndThenDeleted(t *testing.T) {
	h := newHarness(t, capable, vm(), home(), request())
	h.reconcile()
	h.wantReady("True InSync")
	h.wantText()
	writes := h.writes
	for h.now = h.now.Add(time.Minute); h.request() != nil; h.now = h.now.Add(time.Minute) {
		if h.now.Sub(startTime) > 10*time.Minute {
			t.Fatal("the request is not deleted")
		}
		if result := h.reconcile(); h.request() != nil && (result.RequeueAfter <= 0 || result.RequeueAfter > lifetime) {
			t.Errorf("reconciled again after %s", result.RequeueAfter)
		}
	}
	if after := h.now.Sub(startTime); after < 6*time.Minute {
		t.Errorf("the request was deleted after %s", after)
	}
	if diff := cmp.Diff([]string{"s1"}, h.cloud.calls); diff != "" || h.writes != writes {
		t.Errorf("%d writes after the answer; consoles read (-want +got):\n%s", h.writes-writes, diff)
	}
}

func TestRequestThatIsRefused(t *testing.T) {
	fails := func(kind cloud.Kind, detail string) func(*harness) {
		return func(h *harness) {
			h.cloud.read = func(string, int) (string, error) {
				return "", &cloud.Error{Kind: kind, Op: "read the console of server s1", Detail: detail}
			}
		}
	}
	tests := map[string]struct {
		caps    cloud.Capabilities
		objects []client.Object
		before  func(*harness)
		want    string
		parts   []string
		calls   int
	}{
		"no VM": {objects: []client.Object{home()}, want: "False VMNotReady", parts: []string{`VM "vm" does not exist`}},
		"a VM that is only observed": {
			objects: []client.Object{home(), vm(func(v *pcapi.VM) { v.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })}, want: "False VMNotReady", parts: []string{"ObserveOnly"},
		},
		"a VM without a server": {
			objects: []client.Object{home(), vm(func(v *pcapi.VM) { v.Status.VMID = "" })}, want: "False VMNotReady", parts: []string{"has no server yet"},
		},
		"a server that the cloud does not show": {
			objects: []client.Object{home(), vm(func(v *pcapi.VM) { v.Status.VMID = "s9" })}, want: "False VMNotReady", parts: []string{"does not show the server"},
		},
		"a server with the labels of another VM": {
			objects: []client.Object{home(), vm(func(v *pcapi.VM) { v.UID = "other" })}, want: "False VMNotReady", parts: []string{"its console is not read"},
		},
		"a server of another name, on a cloud without labels": {
			caps:    cloud.NewCapabilities(cloud.Console),
			objects: []client.Object{home(), vm(func(v *pcapi.VM) { v.Status.NameInCloud = "other" })}, want: "False VMNotReady", parts: []string{"its console is not read"},
		},
		"a Cloud that the namespace may not use": {
			objects: []client.Object{vm(), home(func(c *pcapi.Cloud) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
			})}, want: "False CloudUnavailable", parts: []string{`Cloud "default"`},
		},
		"no Cloud":                     {objects: []client.Object{vm()}, want: "False CloudUnavailable", parts: []string{`Cloud "default"`}},
		"a cloud that is down":         {before: func(h *harness) { h.inv.MarkUnavailable("it does not answer") }, want: "False CloudUnavailable", parts: []string{"it does not answer"}},
		"a cloud without consoles":     {caps: cloud.NewCapabilities(cloud.Labels), want: "False Unsupported", parts: []string{"does not show the consoles"}},
		"a server that is being built": {before: fails(cloud.Busy, "not ready yet"), want: "False VMNotReady", parts: []string{"not ready yet"}, calls: 1},
		"a server without a console":   {before: fails(cloud.Unsupported, "no serial port"), want: "False Unsupported", parts: []string{"no serial port"}, calls: 1},
		"an account without the right": {before: fails(cloud.Forbidden, "policy"), want: "False Rejected", calls: 1},
		"a server that is gone":        {before: fails(cloud.NotFound, "no such server"), want: "False VMNotReady", calls: 1},
		"a cloud whose calls fail": {
			before: fails(cloud.Unavailable, "dial tcp 10.1.2.3: refused"), want: "False CloudUnavailable", parts: []string{"read the console of server s1"}, calls: 1,
		},
		"a key that is none": {
			objects: []client.Object{home(), vm(), request(func(r *pcapi.VMConsoleRequest) { r.Spec.PublicKey = strings.Repeat("A", 87) + "=" })},
			want:    "False Rejected", parts: []string{"spec.publicKey", "create another request"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			objects, caps := tc.objects, tc.caps
			if objects == nil {
				objects = []client.Object{home(), vm()}
			}
			if _, ok := objects[len(objects)-1].(*pcapi.VMConsoleRequest); !ok {
				objects = append(objects, request())
			}
			if caps.Has(cloud.Console) == caps.Has(cloud.Labels) {
				caps = capable
			}
			h := newHarness(t, caps, objects...)
			if tc.before != nil {
				tc.before(h)
			}
			h.reconcile()
			h.wantReady(tc.want, tc.parts...)
			if r := h.request(); r.Status.Console != "" || r.Status.ReadTime != nil {
				t.Error("the request has an answer")
			}
			if len(h.cloud.calls) != tc.calls {
				t.Errorf("%d consoles were read, want %d", len(h.cloud.calls), tc.calls)
			}
			if strings.Contains(h.request().Status.Conditions[0].Message, "10.1.2.3") {
				t.Error("the message has an address of the platform")
			}
			for h.request() != nil {
				after := h.reconcile().RequeueAfter
				if after <= 0 || h.now.Sub(startTime) > 10*time.Minute {
					t.Fatalf("the request is not deleted after %s, and reconciled again after %s", h.now.Sub(startTime), after)
				}
				h.now = h.now.Add(after)
			}
		})
	}
}

// A cloud may give the id of a server that is deleted to another one.
func TestConsoleOfAServerThatGotTheIDMeanwhileIsNotShown(t *testing.T) {
	h := newHarness(t, capable, vm(), home(), request())
	h.cloud.read = func(string, int) (string, error) {
		if _, err := h.cloud.DeleteServer(t.Context(), "s1"); err != nil {
			t.Error(err)
		}
		h.cloud.AddServers(cloud.Server{ID: "s1", Name: "vm", State: cloud.StateActive, Labels: labelsOf("another")})
		return "secret of another", nil
	}
	h.reconcile()
	h.wantReady("False VMNotReady", "its console is not read")
	if h.request().Status.Console != "" {
		t.Error("the console of another server is shown")
	}
}

func TestRequestIsAnsweredOnceTheVMHasAServer(t *testing.T) {
	h := newHarness(t, capable, vm(func(v *pcapi.VM) { v.Status.VMID = "" }), home(), request())
	h.now = h.now.Add(h.reconcile().RequeueAfter)
	var v pcapi.VM
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "vm"}, &v); err != nil {
		t.Fatal(err)
	}
	v.Status.VMID = "s1"
	if err := h.client.Status().Update(t.Context(), &v); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.wantReady("True InSync")
	h.wantText()
}

func TestAnswerThatCannotBeStoredIsReadAgain(t *testing.T) {
	for name, failure := range map[string]error{
		"conflict": apierrors.NewConflict(schema.GroupResource{Resource: "vmconsolerequests"}, key.Name, errors.New("changed")),
		"error":    apierrors.NewInternalError(errors.New("etcd is unavailable")),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, capable, vm(), home(), request())
			h.statusErr = failure
			for range 2 {
				_, _ = h.reconciler.Reconcile(t.Context(), ctrlRequest)
				h.now = h.now.Add(time.Second)
			}
			h.wantReady("True InSync")
			h.wantText()
			if len(h.cloud.calls) != 2 {
				t.Errorf("the console was read %d times, want 2", len(h.cloud.calls))
			}
		})
	}
}

// A clock that differs from that of the API server, or is set back, neither deletes a request before it is answered, nor keeps it
// for ever.
func TestRequestExpiresByTheClockOfTheOperator(t *testing.T) {
	for name, created := range map[string]time.Time{"ahead": startTime.Add(24 * time.Hour), "behind": startTime.Add(-24 * time.Hour)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, capable, vm(), home(), request(func(r *pcapi.VMConsoleRequest) { r.CreationTimestamp = metav1.NewTime(created) }))
			h.reconcile()
			h.wantText()
			h.now = h.now.Add(-time.Hour)
			if after := h.reconcile().RequeueAfter; after <= 0 || after > lifetime {
				t.Errorf("reconciled again after %s", after)
			}
			h.now = h.now.Add(time.Hour + lifetime)
			h.reconcile()
			if h.request() != nil {
				t.Error("the request is not deleted")
			}
		})
	}
}

func TestLeanDropsTheAnswer(t *testing.T) {
	r := request(func(r *pcapi.VMConsoleRequest) {
		r.Status.Console, r.Status.ReadTime = strings.Repeat("A", cloud.MaxConsole), new(metav1.Now())
		r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	})
	o, err := Lean(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := o.(*pcapi.VMConsoleRequest); got.Status.Console != "" || got.ManagedFields != nil || got.Status.ReadTime == nil {
		t.Errorf("got %+v", got)
	}
}
