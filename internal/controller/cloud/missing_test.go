package cloud

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var (
	errBare404 = &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get server"}
	errMoved   = &cloud.Error{Kind: cloud.Displaced, Op: "get server"}
)

// incompleteWorld returns a world whose cloud lists the server of the VM v00 and returns those of
// all others by id alone, as the controller has found.
func incompleteWorld(t *testing.T) (*world, []client.Object) {
	t.Helper()
	vms, servers := fleet()
	for _, vm := range vms {
		vm.SetFinalizers([]string{pcapi.VMFinalizer})
	}
	f := newCloud(nil, servers...)
	for _, s := range servers[1:] {
		f.Hide(s.ID)
	}
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	w.wantIncomplete(true)
	return w, vms
}

func (w *world) wantIncomplete(want bool) {
	w.t.Helper()
	if got := w.inv.View().Snapshot.Incomplete; got != want {
		w.t.Errorf("the listing is incomplete: %t, want %t", got, want)
	}
	reason := map[bool]string{true: "False ListingIncomplete", false: "True Readable"}[want]
	w.wantCondition(pcapi.ConformantCondition, reason)
}

// pass reconciles at each poll interval until d has passed.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	for end := w.Now().Add(d); w.Now().Before(end); {
		w.later()
	}
}

// answer makes reads of all servers but v00 fail.
func (w *world) answer(err error) {
	for _, s := range w.cloud.Servers() {
		if s.ID != "v00" {
			w.reads[s.ID] = err
		}
	}
}

// editVM changes a VM, and returns it.
func (w *world) editVM(name string, change func(*pcapi.VM)) *pcapi.VM {
	w.t.Helper()
	object := &pcapi.VM{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, object)
	if err == nil {
		change(object)
		err = w.client.Update(w.t.Context(), object)
	}
	if err != nil {
		w.t.Fatalf("edit the VM %s: %v", name, err)
	}
	return object
}

// deleteVM deletes a VM, which these finalizers keep.
func (w *world) deleteVM(name string, finalizers ...string) {
	w.t.Helper()
	object := w.editVM(name, func(vm *pcapi.VM) { vm.SetFinalizers(finalizers) })
	if err := w.client.Delete(w.t.Context(), object); err != nil {
		w.t.Fatalf("delete the VM %s: %v", name, err)
	}
}

func TestEmptyListingOfServersThatExistIsRecordedOnce(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	w.wantIncomplete(false)
	for _, s := range servers {
		f.Hide(s.ID)
	}
	w.events = nil
	w.later()
	w.wantIncomplete(true)
	w.pass(3 * pollInterval)
	equal(t, "events", []string{"Warning ListingIncomplete Conformant"}, w.events)
	w.wantCondition(pcapi.BrakedCondition, "False Released")
}

func TestIncompleteListingIsAMetric(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	w := newWorld(t, home(claimed), f, vms...)
	metric := func() float64 { return testutil.ToFloat64(w.kind.gauge.incomplete.WithLabelValues("home")) }
	w.reconcile()
	equal(t, "metric of a complete listing", 0.0, metric())
	for _, s := range servers {
		f.Hide(s.ID)
	}
	w.later()
	equal(t, "metric of an incomplete listing", 1.0, metric())
	w.kind.gauge.incomplete.Reset()
	w.start()
	f.FailAlways(cloudfake.ListServers, errGarbage, false)
	w.later()
	equal(t, "metric after a start, before a listing", 1.0, metric())
	f.Heal()
	for _, s := range servers {
		f.Show(s.ID)
	}
	w.pass(3 * pollInterval)
	equal(t, "metric of a listing that is complete again", 0.0, metric())
	w.kind.gauge.forget("home")
	equal(t, "series of a Cloud that is gone", 0, testutil.CollectAndCount(w.kind.gauge.incomplete))
}

func TestListingIsCompleteOnceReadsOfTheServersThatItLackedAnswer404ForTheSettleTime(t *testing.T) {
	w, _ := incompleteWorld(t)
	w.answer(errBare404)
	w.later()
	w.wantIncomplete(true)
	w.pass(settleTime - pollInterval)
	w.wantIncomplete(true)
	w.pass(2 * pollInterval)
	w.wantIncomplete(false)
}

func TestListingIsCompleteAfterARestartOnceReadsOfServersOfDeletedVMsAnswer404ForTheSettleTime(t *testing.T) {
	w, vms := incompleteWorld(t)
	for _, vm := range vms[1:] {
		if err := w.client.Delete(t.Context(), vm); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	w.answer(errBare404)
	w.start()
	w.reconcile()
	w.wantIncomplete(true)
	w.pass(settleTime + 2*pollInterval)
	w.wantIncomplete(false)
}

func TestListingStaysIncompleteWhile404SaysNothing(t *testing.T) {
	tests := map[string]func(*world){
		"something in front of the cloud answers 404 to all reads": func(w *world) { w.answer(errBare404); w.reads["v00"] = errBare404 },
		"the cloud returns one server that the listing lacks":      func(w *world) { w.answer(errBare404); delete(w.reads, "v03") },
		"the answers are unclear":                                  func(w *world) { w.answer(errRefused) },
		"no server is listed": func(w *world) {
			w.answer(errBare404)
			w.cloud.Hide("v00")
		},
		"the brake is on record": func(w *world) {
			w.answer(errBare404)
			c := w.stored()
			brakedAt("x")(c)
			if err := w.client.Status().Update(t.Context(), c); err != nil {
				t.Fatalf("Update: %v", err)
			}
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w, _ := incompleteWorld(t)
			change(w)
			w.pass(3 * settleTime)
			equal(t, "incomplete", true, w.inv.View().Snapshot.Incomplete)
		})
	}
}

func TestReadThatReturnsAMissingServerBeginsTheSettleTimeAnew(t *testing.T) {
	w, _ := incompleteWorld(t)
	for range 4 {
		w.answer(errBare404)
		w.pass(settleTime - pollInterval)
		clear(w.reads)
		w.later()
	}
	w.wantIncomplete(true)
}

func TestListingIsCompleteOnceTheServersThatItLackedWereMoved(t *testing.T) {
	w, _ := incompleteWorld(t)
	w.answer(errMoved)
	w.later()
	w.wantIncomplete(false)
}

func TestListingIsIncompleteIfItLacksAServerThatTheCloudReturnedToAVM(t *testing.T) {
	tests := map[string]struct {
		change func(*world)
		want   bool
	}{
		"the cloud still returns it":            {func(*world) {}, true},
		"something answers 404 to its reads":    {func(w *world) { w.reads["v01"] = errBare404 }, true},
		"the cloud says that it does not exist": {func(w *world) { w.reads["v01"] = &cloud.Error{Kind: cloud.NotFound, Op: "get server"} }, false},
		"the server was moved":                  {func(w *world) { w.reads["v01"] = errMoved }, false},
		"the listing has it again":              {func(w *world) { w.cloud.Show() }, false},
		"its VM only observes it": {func(w *world) {
			w.editVM("v01", func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })
		}, false},
		"no VM has it any more":                       {func(w *world) { w.deleteVM("v01") }, false},
		"its VM is being deleted, and has finalizers": {func(w *world) { w.deleteVM("v01", pcapi.VMFinalizer) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			vms, servers := fleet()
			w := newWorld(t, home(), newCloud(nil, servers...), vms...)
			w.cloud.Hide("v01")
			w.reconcile()
			w.wantIncomplete(false)
			w.inv.RecordUnlisted("v01")
			test.change(w)
			w.later()
			w.wantIncomplete(test.want)
		})
	}
}

func TestServersThatTheListingLacksAreReadAtMostTwentyAtATime(t *testing.T) {
	var objects []client.Object
	f := newCloud(nil, server("listed"))
	for i := range 3 * maxSample {
		name := fmt.Sprintf("v%02d", i)
		objects = append(objects, vm(name))
		f.AddServers(server(name))
	}
	w := newWorld(t, home(), f, objects...)
	w.reconcile()
	for _, o := range objects { // one at a time, so that the brake reads none of them
		f.Hide(o.GetName())
		w.later()
	}
	w.wantIncomplete(false)
	for _, o := range objects {
		w.inv.RecordUnlisted(o.GetName())
	}
	before := f.Sent(cloudfake.GetServer)
	w.later()
	w.wantIncomplete(true)
	equal(t, "reads", maxSample, f.Sent(cloudfake.GetServer)-before)
}
