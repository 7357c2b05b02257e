package vsphere_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// watching is a call of Watch that ends with the test.
type watching struct {
	t       *testing.T
	changes chan cloud.Change
	ended   chan error
	stop    context.CancelFunc
}

// watchServers watches, and waits for the full set.
func watchServers(t *testing.T, c *vsphere.Client) *watching {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &watching{t: t, changes: make(chan cloud.Change, 1000), ended: make(chan error, 1), stop: stop}
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		w.ended <- c.Watch(ctx, func(change cloud.Change) error {
			w.changes <- change
			return nil
		})
	}()
	w.until("the full set", func(change cloud.Change) bool { return change.Complete && !change.More })
	return w
}

// patience bounds how long a change may take that is to come.
const patience = 4 * time.Minute

// until returns the first change that is as wanted, and fails for one in which a server is
// gone before.
func (w *watching) until(what string, wanted func(cloud.Change) bool) cloud.Change {
	w.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case change := <-w.changes:
			if wanted(change) {
				return change
			}
			if len(change.Gone) > 0 {
				w.t.Fatalf("gone: %v, want %s", change.Gone, what)
			}
		case err := <-w.ended:
			w.t.Fatalf("Watch ended with %v, want %s", err, what)
		case <-timeout:
			w.t.Fatalf("%s was not reported", what)
		}
	}
}

func (w *watching) untilGone(id string) {
	w.t.Helper()
	w.until("that it is gone", func(change cloud.Change) bool { return slices.Contains(change.Gone, id) })
}

func (w *watching) untilServer(what string, wanted func(cloud.Server) bool) cloud.Change {
	w.t.Helper()
	return w.until(what, func(change cloud.Change) bool { return slices.ContainsFunc(change.Servers, wanted) })
}

// untilEnd returns why the watch ended, and fails if a server was gone before.
func (w *watching) untilEnd() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		for len(w.changes) > 0 {
			if change := <-w.changes; len(change.Gone) > 0 {
				w.t.Errorf("gone: %v", change.Gone)
			}
		}
		return err
	case <-time.After(patience):
		w.t.Fatal("the watch did not end")
		return nil
	}
}

func TestWatchReportsVMsThatLeaveAsAListingDoes(t *testing.T) {
	v := newVCenter(t)
	other, err := v.MakeFolder(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	c := v.client(t)
	moved, template := create(t, c, cloud.CreateServer{Name: "moved"}), create(t, c, cloud.CreateServer{Name: "template"})
	w := watchServers(t, c)
	home := *v.VM("moved").Parent
	v.Change(v.VM("moved").Self, types.PropertyChange{Name: "parent", Val: other.Reference()})
	w.untilGone(moved.ID)
	v.Change(v.VM("moved").Self, types.PropertyChange{Name: "parent", Val: home})
	w.untilServer("the VM that is back", func(s cloud.Server) bool { return s.ID == moved.ID })
	v.Change(v.VM("template").Self, types.PropertyChange{Name: "config.template", Val: true})
	w.untilGone(template.ID)
}

func TestVMThatIsRegisteredAgainIsNotGone(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	before, after := create(t, c, cloud.CreateServer{Name: "before"}), create(t, c, cloud.CreateServer{Name: "after"})
	w := watchServers(t, c)
	v.Change(v.VM("after").Self, types.PropertyChange{Name: "config.instanceUuid", Val: before.ID}, types.PropertyChange{Name: "summary.config.instanceUuid", Val: before.ID})
	w.untilServer("the id of the other VM", func(s cloud.Server) bool { return s.ID == before.ID && s.Name == "after" })
	destroy(t, v, "before")
	destroy(t, v, "after")
	w.untilGone(before.ID)
	_ = after
}

// destroy deletes a VM by hand.
func destroy(t *testing.T, v *vcenter, name string) {
	t.Helper()
	vm := object.NewVirtualMachine(v.Admin.Client, v.VM(name).Self)
	off, err := vm.PowerOff(t.Context())
	if err == nil {
		_ = off.Wait(t.Context()) // it may be off
	}
	task, err := vm.Destroy(t.Context())
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Fatalf("destroy %s: %v", name, err)
	}
}

func TestChangedVMThatCannotBeReadIsReportedOnceItCan(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "db"})
	c.SetPolling(time.Second, 30*time.Second)
	w := watchServers(t, c)
	vm := v.VM("db").Self
	restore := v.Front.Answer(func(method string) (int, string) {
		if method == "RetrievePropertiesEx" {
			return incomplete(method, vm.Value, "name", noPermission, "config.instanceUuid", created.ID)
		}
		return 0, ""
	})
	reads := v.Front.Sent("RetrievePropertiesEx")
	v.Change(vm, types.PropertyChange{Name: "config.hardware.numCPU", Val: int32(7)})
	for v.Front.Sent("RetrievePropertiesEx") < reads+2 {
		select {
		case change := <-w.changes:
			if !change.AsOf.IsZero() && v.Front.Sent("RetrievePropertiesEx") > reads || len(change.Gone)+len(change.Servers) > 0 {
				t.Fatalf("reported %+v while a change could not be read", change)
			}
		case <-t.Context().Done():
			t.Fatal("the VM is not read again")
		default:
		}
	}
	restore()
	change := w.untilServer("the VM", func(s cloud.Server) bool { return s.ID == created.ID && s.CPU == 7 })
	if change.AsOf.IsZero() {
		t.Error("the change has no AsOf")
	}
}

func TestVMThatBecomesInaccessibleIsNotGone(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "db"})
	w := watchServers(t, c)
	v.Change(v.VM("db").Self, types.PropertyChange{Name: "runtime.connectionState", Val: types.VirtualMachineConnectionStateInaccessible},
		types.PropertyChange{Name: "config.instanceUuid", Val: ""}, types.PropertyChange{Name: "summary.config.instanceUuid", Val: ""})
	w.untilServer("that it is in error", func(s cloud.Server) bool { return s.ID == created.ID && s.State == cloud.StateError })
}

func TestWatchOfARootThatCannotBeReadReportsNothingGone(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	create(t, c, cloud.CreateServer{Name: "db"})
	w := watchServers(t, c)
	v.Front.Rewrite(func(method, body string) string {
		if method != "RetrievePropertiesEx" {
			return body
		}
		return strings.NewReplacer("<pathSet>name</pathSet></propSet><objectSet><obj type=\"Folder\">", "<pathSet>parent</pathSet></propSet><objectSet><obj type=\"Folder\">").Replace(body)
	})
	destroy(t, v, "db")
	wantError(t, w.untilEnd(), cloud.Misconfigured, "watch servers", "may not read spec.vsphere.folder")
}

func TestWatchSaysUpToWhenAllWasReported(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	for _, name := range []string{"one", "two", "three"} {
		create(t, c, cloud.CreateServer{Name: name})
	}
	var held atomic.Bool
	v.Front.Rewrite(func(method, body string) string {
		if method == "WaitForUpdatesEx" && held.Load() {
			return strings.Replace(body, "<maxObjectUpdates>1000<", "<maxObjectUpdates>1<", 1)
		}
		return body
	})
	c.SetPolling(time.Second, 30*time.Second)
	w := watchServers(t, c)
	began := time.Now()
	w.until("that nothing has changed", func(change cloud.Change) bool {
		return len(change.Servers) == 0 && change.AsOf.After(began)
	})
	held.Store(true)
	began = time.Now()
	w.until("that nothing has changed, with small answers", func(change cloud.Change) bool { return change.AsOf.After(began) })
	for _, name := range []string{"one", "two", "three"} {
		v.Change(v.VM(name).Self, types.PropertyChange{Name: "config.hardware.numCPU", Val: int32(7)})
	}
	seen := 0
	w.until("all changes", func(change cloud.Change) bool {
		seen += len(change.Servers)
		if seen > 0 && seen < 3 && !change.AsOf.IsZero() {
			t.Errorf("%d of 3 changes, as of %s", seen, change.AsOf)
		}
		return seen == 3
	})
	w.until("up to when they are all", func(change cloud.Change) bool { return !change.AsOf.IsZero() })
}

func TestWatchEndsWhenNothingComes(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	release := make(chan struct{})
	defer close(release)
	w := watchServers(t, c)
	w.stop()
	wantError(t, w.untilEnd(), cloud.Unavailable)
	c.SetPolling(time.Second, 100*time.Millisecond)
	v.Front.Answer(func(method string) (int, string) {
		if method == "WaitForUpdatesEx" {
			<-release
			return http.StatusServiceUnavailable, ""
		}
		return 0, ""
	})
	wantError(t, c.Watch(t.Context(), func(cloud.Change) error { return nil }), cloud.Unavailable, "did not answer a request for changes for 100ms")
}

func TestWatchTakesNoSlotAndLeavesNothingBehind(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t, func(cfg *vsphere.Config) {
		cfg.Limits = transport.Limits{RequestsPerSecond: 10000, Burst: 10000, MaxInFlight: 1}
	})
	created := create(t, c, cloud.CreateServer{Name: "db"})
	w := watchServers(t, c)
	waits := v.Front.Sent("WaitForUpdatesEx")
	for range 3 {
		if _, err := c.GetServer(t.Context(), created.ID); err != nil {
			t.Errorf("GetServer during a watch, with one slot: %v", err)
		}
	}
	if got := v.Front.Sent("WaitForUpdatesEx"); got > waits+1 {
		t.Errorf("%d requests for changes, of which there are none", got-waits)
	}
	w.stop()
	wantError(t, w.untilEnd(), cloud.Unavailable, "canceled")
	if collectors, views := v.Front.Sent("DestroyPropertyCollector"), v.Front.Sent("DestroyView"); collectors != 1 || views != 1 {
		t.Errorf("%d collectors and %d views were destroyed, want 1 each", collectors, views)
	}
}

func TestWatchEndsWithTheSession(t *testing.T) {
	for name, plain := range map[string]bool{"the vCenter ends the request": false, "another call finds out": true} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			if plain {
				v.UsePlainCollectors()
			}
			c := v.client(t)
			create(t, c, cloud.CreateServer{Name: "db"})
			w := watchServers(t, c)
			if err := v.EndSessions(t.Context()); err != nil {
				t.Fatal(err)
			}
			list(t, c)
			wantError(t, w.untilEnd(), cloud.Unavailable, "the session has ended")
		})
	}
}
