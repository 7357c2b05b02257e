package inventory_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestDirectoryKeepsOneInventoryPerCloud(t *testing.T) {
	h := newHarness(t)
	h.clock.advance(time.Hour)
	if h.dir.Cloud("home") != h.inv {
		t.Error("a second inventory was made for the same cloud")
	}
	equal(t, "StartedAt of the first", dawn, h.dir.Cloud("home").StartedAt())
	equal(t, "StartedAt of one made later", dawn.Add(time.Hour), h.dir.Cloud("other").StartedAt())
}

func TestAbsentInventoryIsUnavailableAndNotHeld(t *testing.T) {
	h := newHarness(t)
	h.clock.advance(time.Hour)
	absent := h.dir.Absent("typo")
	equal(t, "unavailable", "the Cloud does not exist or has not been connected yet", absent.View().Unavailable)
	equal(t, "StartedAt, so that a wait for the first listing ends", dawn, absent.StartedAt())
	absent.RequestPoll()
	absent.EnqueueAfterListing(inventory.Ref{Name: "a"}, h.clock.Now())
	absent.EnqueueWhenAvailable(inventory.Ref{Name: "a"}, absent.View())
	equal(t, "poll requests", []string(nil), h.pollRequests)
	if h.dir.Absent("typo") == absent || h.dir.Cloud("typo") == absent {
		t.Error("the directory holds the inventory of a Cloud that does not exist")
	}
}

func TestAbsentInventoriesTakeNoMemory(t *testing.T) {
	h := newHarness(t)
	const names = 10_000
	before := heap()
	for i := range names {
		h.dir.Absent(fmt.Sprintf("cloud-%d", i)).EnqueueWhenAvailable(inventory.Ref{Name: "a"}, inventory.View{})
	}
	if grown := heap() - before; grown > 10*names {
		t.Errorf("the heap grew by %d bytes for %d names", grown, names)
	}
	runtime.KeepAlive(h)
}

func TestRemovedInventoryIsHarmless(t *testing.T) {
	h := newHarness(t)
	h.inv.Connect(newCloud(), nil)
	h.publish(server("a"))
	equal(t, "removed", true, h.dir.Remove("home"))
	equal(t, "removed again", false, h.dir.Remove("home"))

	view := h.inv.View()
	equal(t, "unavailable", "the Cloud does not exist or has not been connected yet", view.Unavailable)
	if _, known := h.inv.Server("a"); known {
		t.Error("the removed inventory knows a server")
	}
	if _, err := h.inv.Utilization.Read(t.Context(), "a"); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("Utilization failed with %v, want Unavailable", err)
	}
	if _, _, err := h.inv.Networks.Find(t.Context(), dawn, "", "", ""); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("Networks failed with %v, want Unavailable", err)
	}
	h.inv.RecordCreated("u", server("b"))
	h.inv.ForgetServer("b")
	if h.dir.Cloud("home") == h.inv {
		t.Error("a new Cloud of this name gets the removed inventory")
	}
}

func TestObjectsThatWaitForARemovedInventoryAreEnqueued(t *testing.T) {
	a, b, c := inventory.Ref{Namespace: "n", Name: "a"}, inventory.Ref{Namespace: "n", Name: "b"}, inventory.Ref{Namespace: "n", Name: "c"}
	h := newHarness(t)
	h.inv.EnqueueWhenAvailable(a, h.inv.View())
	h.inv.EnqueueAfterListing(a, dawn)
	h.inv.EnqueueAfterListing(b, dawn)
	h.dir.Remove("home")
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{a, b}})

	h.inv.EnqueueWhenAvailable(c, h.inv.View())
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{c}})
	h.inv.EnqueueAfterListing(c, dawn)
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{c}})
}

func TestForgottenObjectIsNotEnqueued(t *testing.T) {
	gone, left := inventory.Ref{Namespace: "n", Name: "gone"}, inventory.Ref{Namespace: "n", Name: "left"}
	h := newHarness(t)
	for _, ref := range []inventory.Ref{gone, left} {
		h.inv.EnqueueWhenAvailable(ref, h.inv.View())
		h.inv.EnqueueAfterListing(ref, dawn)
	}
	h.dir.Forget(gone)
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{left}})
}
