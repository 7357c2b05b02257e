package cloud

import (
	"fmt"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestCappedListingDoesNotBrakeWhatItNeverShowed(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	for _, s := range servers[2:] {
		f.Hide(s.ID)
	}
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	equal(t, "braked", false, w.inv.View().Braked)
	equal(t, "asked for each server that is not listed", 6, f.Sent(cloudfake.GetServer))
	w.wantCondition(pcapi.BrakedCondition, "False Released")
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	w.wantCondition(pcapi.ConformantCondition, "False ListingIncomplete", "such as v02", "caps its listing")

	writes := len(w.writes)
	for range 5 {
		w.later()
	}
	equal(t, "writes at rest", 0, len(w.writes)-writes)
	equal(t, "servers asked for at rest: at each listing those that it lacks, and one that it has", 6+5*7, f.Sent(cloudfake.GetServer))
	w.start()
	w.reconcile()
	equal(t, "writes after a restart", 0, len(w.writes)-writes)

	f.Show()
	w.later()
	w.wantCondition(pcapi.ConformantCondition, "True Readable")
}

func TestIncompleteListingIsReportedAsLongAsItsServersAreRecorded(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	for _, s := range servers[:3] {
		f.Hide(s.ID)
	}
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	w.wantCondition(pcapi.ConformantCondition, "False ListingIncomplete", "such as v00")
	for i, want := range []string{"False ListingIncomplete", "False ListingIncomplete", "True Readable"} {
		if err := w.client.Delete(t.Context(), vms[i]); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		w.later()
		w.wantCondition(pcapi.ConformantCondition, want)
	}
}

func TestServersThatWereMovedAwayDoNotBrakeAndTheListingIsComplete(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	f.Hide("v00")
	f.Hide("v01")
	f.FailAlways(cloudfake.GetServer, &cloud.Error{Kind: cloud.Displaced, Op: "get server", Detail: "it is a template now"}, false)
	w.later()
	equal(t, "braked", false, w.inv.View().Braked)
	equal(t, "servers asked for", 2, f.Sent(cloudfake.GetServer))
	w.wantCondition(pcapi.ConformantCondition, "True Readable")
}

func TestListingStaysIncompleteWhileVMsOfServersThatItLacksAreDeleted(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted %t", restarted), func(t *testing.T) {
			vms, servers := fleet()
			for _, vm := range vms {
				vm.SetFinalizers([]string{pcapi.VMFinalizer})
			}
			f := newCloud(nil, servers...)
			for _, s := range servers {
				f.Hide(s.ID)
			}
			w := newWorld(t, home(), f, vms...)
			w.reconcile()
			equal(t, "incomplete", true, w.inv.View().Snapshot.Incomplete)

			for _, vm := range vms {
				if err := w.client.Delete(t.Context(), vm); err != nil {
					t.Fatalf("Delete: %v", err)
				}
			}
			f.FailAlways(cloudfake.GetServer, &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get server"}, false) // a gateway answers
			if restarted {
				w.start()
				w.reconcile()
			}
			w.later()
			equal(t, "incomplete after the deletions", true, w.inv.View().Snapshot.Incomplete)
			w.wantCondition(pcapi.ConformantCondition, "False ListingIncomplete")

			f.Show()
			w.later()
			equal(t, "incomplete once they are listed", false, w.inv.View().Snapshot.Incomplete)
			w.wantCondition(pcapi.ConformantCondition, "True Readable")
		})
	}
}
