package vm

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

// reusing are the clouds by what says which VM owns a server.
var reusing = map[string]cloud.Capabilities{
	"labels": withoutKeys, "labels and keys": everything, "names": uniqueNamesOnly, "answers alone": withoutProofs,
}

// reconcileVM reconciles a VM of this name.
func (h *harness) reconcileVM(name string) {
	h.t.Helper()
	_, err := h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}})
	if err != nil {
		h.t.Fatalf("Reconcile %s: %v", name, err)
	}
}

// other returns VM b, nil if it is gone.
func (h *harness) other() *pcapi.VM {
	h.t.Helper()
	vm := &pcapi.VM{}
	err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "b"}, vm)
	if client.IgnoreNotFound(err) != nil {
		h.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return vm
}

// A cloud frees the id of a server and gives it to the create of another VM before it answers
// the deletion.
func TestIDThatIsGivenToAnotherVMBeforeTheDeletionIsAnswered(t *testing.T) {
	for name, caps := range reusing {
		for _, named := range []string{"db", "web"} {
			if named == "web" && caps.Has(cloud.UniqueNames) {
				continue
			}
			t.Run(name+", the other VM is named "+named, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(), other("b", func(vm *pcapi.VM) { vm.Spec.VMName = named }))
				h.cloud.SetReusesIDs(true)
				h.mustReconcile()
				h.later(time.Second)
				h.mustReconcile()
				h.remove()
				h.advance(time.Second)
				h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
					if verb == cloudfake.DeleteServer {
						h.cloud.OnAnswer(nil)
						h.advance(time.Second)
						h.reconcileVM("b")
					}
				})
				h.mustReconcile()
				for range 3 {
					h.mustReconcileIfExists()
					h.reconcileVM("b")
					h.later(time.Minute)
				}
				h.wantGone()
				equal(t, "vmId of the other VM", "s1", h.other().Status.VMID)
				equal(t, "Ready of the other VM", "True Running", readyOf(h.other()))
				if err := h.client.Delete(t.Context(), h.other()); err != nil {
					t.Fatal(err)
				}
				for range 3 {
					h.reconcileVM("b")
					h.later(time.Minute)
				}
				equal(t, "the other VM after its deletion", (*pcapi.VM)(nil), h.other())
				h.wantServers()
			})
		}
	}
}

// mustReconcileIfExists reconciles the VM unless it is gone.
func (h *harness) mustReconcileIfExists() {
	h.t.Helper()
	if _, ok := h.find(); ok {
		h.mustReconcile()
	}
}

func readyOf(vm *pcapi.VM) string {
	for _, c := range vm.Status.Conditions {
		if c.Type == pcapi.ReadyCondition {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

// The deletion takes effect, its answer is lost, and somebody else's server gets the id.
func TestDeletionWithALostAnswerIsNotSentAgainToTheServerThatGotTheID(t *testing.T) {
	for name, caps := range reusing {
		for when, shown := range map[string]bool{"before the deletion is tried again": false, "and a listing shows it": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				h := newHarness(t, caps, vmWith())
				h.cloud.SetReusesIDs(true)
				h.mustReconcile()
				h.later(time.Minute)
				h.mustReconcile()
				h.remove()
				h.advance(time.Second)
				h.cloud.Fail(cloudfake.DeleteServer, errReset, true)
				h.mustReconcile()
				h.advance(time.Second)
				h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive, CreatedAt: h.now})
				if shown {
					h.later(time.Second)
				}
				for range 4 {
					h.advance(time.Second)
					h.mustReconcileIfExists()
				}
				h.wantServers("s1")
				h.wantGone()
			})
		}
	}
}

// Where only names say which VM owns a server, one of the same name that was created later is another one.
func TestLaterServerOfTheSameNameThatGotTheIDIsNotDeleted(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"names": uniqueNamesOnly, "answers alone": withoutProofs} {
		for answer, err := range map[string]error{"is answered": nil, "has no answer": errReset} {
			t.Run(name+", the deletion "+answer, func(t *testing.T) {
				h := newHarness(t, caps, vmWith())
				h.cloud.SetReusesIDs(true)
				h.mustReconcile()
				h.later(time.Minute)
				h.mustReconcile()
				h.remove()
				h.advance(time.Second)
				h.cloud.Fail(cloudfake.DeleteServer, err, true)
				h.cloud.OnAnswer(func(_ context.Context, verb cloudfake.Verb, _ string) {
					if verb == cloudfake.DeleteServer {
						h.cloud.AddServers(cloud.Server{ID: "s1", Name: "web", State: cloud.StateActive, CreatedAt: h.now})
					}
				})
				for range 4 {
					h.mustReconcileIfExists()
					h.later(time.Second)
				}
				equal(t, "deletions", 1, h.cloud.Sent(cloudfake.DeleteServer))
				h.wantServers("s1")
				h.wantGone()
			})
		}
	}
}

// A cloud renames a server, and removes its labels, while it deletes it.
func TestServerThatIsRenamedWhileItIsDeletedIsNotGone(t *testing.T) {
	for name, caps := range reusing {
		for answer, err := range map[string]error{"is answered": nil, "has no answer": errReset} {
			t.Run(name+", the deletion "+answer, func(t *testing.T) {
				h := newHarness(t, caps, vmWith())
				h.mustReconcile()
				h.later(time.Hour)
				h.mustReconcile()
				h.remove()
				h.advance(time.Second)
				h.cloud.SetSlow(true)
				h.cloud.Fail(cloudfake.DeleteServer, err, true)
				for range 2 {
					h.mustReconcile()
					h.advance(time.Second)
				}
				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Name, s.Labels = "web-deleted-17", nil })
				for range 3 {
					h.later(time.Minute)
					h.mustReconcile()
					if got, message := h.condition(pcapi.ReadyCondition); got == "False Blocked" {
						t.Errorf("Ready is %s (%s)", got, message)
					}
				}
				equal(t, "deletions", 1, h.cloud.Sent(cloudfake.DeleteServer))
				h.cloud.RemoveServers("s1")
				for range 2 {
					h.later(time.Minute)
					h.mustReconcileIfExists()
				}
				h.wantGone()
			})
		}
	}
}

// Without the time of its creation nothing proves that the server of another name is not the
// VM's, renamed. It is not deleted, and the VM stays until somebody decides.
func TestRenamedServerWhoseDeletionHadNoAnswerIsNotReleased(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.mustReconcile()
	h.later(time.Minute)
	h.mustReconcile()
	h.remove()
	h.advance(time.Second)
	h.cloud.Fail(cloudfake.DeleteServer, errReset, false)
	h.mustReconcile()
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Name = "renamed" })
	for range 4 {
		h.advance(time.Second)
		h.mustReconcile()
	}
	h.wantServers("s1")
	h.wantCondition(pcapi.ReadyCondition, "False Blocked", "renamed")
}

// A deletion without an answer that had no effect is sent again after a read.
func TestDeletionWithALostAnswerIsSentAgainAfterARead(t *testing.T) {
	for name, caps := range reusing {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.mustReconcile()
			h.later(time.Minute)
			h.mustReconcile()
			h.remove()
			h.advance(time.Second)
			h.cloud.Fail(cloudfake.DeleteServer, errReset, false)
			h.cloud.TakeCalls()
			h.mustReconcile()
			h.advance(time.Second)
			h.mustReconcile()
			h.wantCalls("delete s1", "get s1", "delete s1", "get s1")
			h.wantGone()
			h.wantServers()
		})
	}
}

func TestDeletionWithALostAnswerBeforeTheIDIsOnRecordIsNotSentAgainToTheServerThatGotTheID(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"labels": withoutKeys, "names": uniqueNamesOnly, "answers alone": withoutProofs} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.cloud.SetReusesIDs(true)
			h.refuse["status"] = []error{nil, errAPIAway}
			if caps.Has(cloud.Labels) {
				h.refuse["status"] = []error{errAPIAway}
			}
			_, _ = h.reconcile()
			equal(t, "vmId", "", h.vm().Status.VMID)
			h.remove()
			h.advance(time.Second)
			h.cloud.Fail(cloudfake.DeleteServer, errReset, true)
			h.mustReconcile()
			h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive, CreatedAt: h.now.Add(time.Second)})
			for range 4 {
				h.later(settleTime / 2)
				h.mustReconcileIfExists()
			}
			h.wantServers("s1")
			h.wantGone()
		})
	}
}

func TestAfterARestartADeletedVMIsGoneIfALaterServerHasItsID(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"labels": everything, "no labels": withoutProofs} {
		// A server that was created before the deletion may be that of the VM, on a cloud whose clock is ahead.
		for after, gone := range map[time.Duration]bool{-time.Second: false, time.Second: true} {
			t.Run(fmt.Sprintf("%s, created %s after the deletion", name, after), func(t *testing.T) {
				h := newHarness(t, caps, vmWith())
				h.mustReconcile()
				h.remove()
				h.cloud.RemoveServers("s1")
				h.cloud.AddServers(cloud.Server{ID: "s1", Name: "of-others", State: cloud.StateActive, CreatedAt: h.vm().DeletionTimestamp.Add(after)})
				h.start()
				h.connect()
				for range 3 {
					h.later(settleTime)
					h.mustReconcileIfExists()
				}
				h.wantServers("s1")
				if gone {
					h.wantGone()
					return
				}
				h.wantCondition(pcapi.ReadyCondition, "False Blocked", "VM s1")
			})
		}
	}
}

// The clock of the cloud does not say that the server is a later one.
func TestAfterARestartADeletedVMIsGoneIfAnotherVMHasItsServer(t *testing.T) {
	ofB := map[string]string{inventory.UIDLabel: "uid-b", inventory.ClusterLabel: "cluster"}
	tests := map[string]struct {
		labels map[string]string
		id     string
		gone   bool
	}{
		"it records the id, and the labels name it":     {ofB, "s1", true},
		"it records the id, and the labels name nobody": {nil, "s1", false},
		"it records the id, and the labels name another cluster": {
			map[string]string{inventory.UIDLabel: "uid-b", inventory.ClusterLabel: "elsewhere"}, "s1", false,
		},
		"the labels name it, and it records another id": {ofB, "s2", false},
		"the labels name it, and it records no id":      {ofB, "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vmWith(), other("b"))
			h.mustReconcile()
			h.remove()
			h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = test.labels })
			h.start()
			h.connect()
			h.wantRequeue(external.RecheckSoon, h.mustReconcile())
			h.wantCondition(pcapi.ReadyCondition, "False Blocked", "VM s1")
			b := h.other()
			b.Status.VMID = test.id
			if err := h.client.Status().Update(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			h.later(external.RecheckSoon)
			h.mustReconcileIfExists()
			h.wantServers("s1")
			if test.gone {
				h.wantGone()
				return
			}
			h.wantCondition(pcapi.ReadyCondition, "False Blocked", "VM s1")
		})
	}
}
