package vsphere_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

func TestTasksAreReadTogether(t *testing.T) {
	const n = 100
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	c.SetTaskAge(time.Second)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("vm-%d", i)
	}
	release := v.Front.HoldTasks()
	ids := v.begin(t, c, names...)
	v.Front.ForgetCalls()
	running, errs := states(t, c, ids)
	for i, state := range running {
		if state.Done || state.Progress != 42 || errs[i] != nil {
			t.Errorf("%s: %+v, %v, want it running", names[i], state, errs[i])
		}
	}
	if calls := v.Front.Calls()[vcsim.TaskCall]; calls > 2 {
		t.Errorf("%d reads of %d tasks, want at most 2", calls, n)
	}
	release()
	ended := time.Now()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for state := (cloud.Operation{}); !state.Done; <-pause.C {
		var err error
		if state, err = c.GetOperation(t.Context(), ids[0]); err != nil || time.Since(ended) > 5*time.Second {
			t.Fatalf("%s after its end: %+v, %v, want it done", time.Since(ended), state, err)
		}
	}
	v.Front.ForgetCalls()
	done, errs := states(t, c, ids[1:])
	for i, state := range done {
		if !state.Done || state.Server == nil || errs[i] != nil {
			t.Errorf("%s: %+v, %v, want it done", names[i+1], state, errs[i])
		}
	}
	if calls := v.Front.Calls()[vcsim.TaskCall]; calls > 2 {
		t.Errorf("%d reads of %d tasks that have ended, want at most 2", calls, n)
	}
}

func TestTasksAreReadAgainAfterAReportedChange(t *testing.T) {
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	c.SetTaskAge(time.Second)
	changes := make(chan cloud.Change, 100)
	watching := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(watching)
		_ = c.Watch(ctx, func(change cloud.Change) error { changes <- change; return nil })
	}()
	defer func() { cancel(); <-watching }()
	release := v.Front.HoldTasks()
	ids := v.begin(t, c, "web")
	until := func(done func(cloud.Server) bool) {
		for change := range changes {
			if slices.ContainsFunc(change.Servers, done) {
				return
			}
		}
	}
	until(func(s cloud.Server) bool { return s.Name == "web" })
	if state, err := c.GetOperation(t.Context(), ids[0]); err != nil || state.Done {
		t.Fatalf("%+v, %v, want it running", state, err)
	}
	release()
	v.Change(v.VM("web").Self, types.PropertyChange{Name: "config.hardware.numCPU", Val: int32(7)})
	until(func(s cloud.Server) bool { return s.CPU == 7 })
	if state, err := c.GetOperation(t.Context(), ids[0]); err != nil || !state.Done {
		t.Errorf("after a change was reported: %+v, %v, want it done", state, err)
	}
}

func TestForgottenTaskIsNotFoundAndOthersAreNot(t *testing.T) {
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	c.SetTaskAge(time.Second)
	v.Front.HoldTasks()
	ids := v.begin(t, c, "one", "two", "three")
	ctx := *v.Model.Service.Context // a lock belongs to one Context
	v.Model.Map().Remove(&ctx, taskOf(ids[1]))
	v.Front.ForgetCalls()
	for range 2 {
		got, errs := states(t, c, ids)
		for i, state := range got {
			if forgotten := cloud.Is(errs[i], cloud.NotFound); forgotten != (i == 1) || state.Done {
				t.Errorf("operation %d: %+v, %v, want NotFound for the forgotten one alone", i, state, errs[i])
			}
		}
	}
	if calls := v.Front.Calls()[vcsim.TaskCall]; calls > 2 {
		t.Errorf("%d reads, want at most 2", calls)
	}
}

func TestTasksAreReadWhenTheSessionHasEnded(t *testing.T) {
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	c.SetTaskAge(time.Second)
	v.Front.HoldTasks()
	ids := v.begin(t, c, "one", "two")
	for round := range 3 {
		ids = append(ids, v.begin(t, c, fmt.Sprintf("another-%d", round))...) // which no read has had
		if err := v.EndSessions(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, errs := states(t, c, ids)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		for i, state := range got {
			if state.Done || state.Progress != 42 {
				t.Errorf("round %d: operation %d: %+v, want it running", round, i, state)
			}
		}
	}
}

func TestTaskThatCannotBeReadFailsItsCallsAlone(t *testing.T) {
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	ids := v.begin(t, c, "one", "two")
	restore := v.Front.Answer(func(method string) (int, string) {
		if method == "RetrievePropertiesEx" {
			return vcsim.Fault("NoPermission")
		}
		return 0, ""
	})
	_, errs := states(t, c, ids)
	restore()
	for _, err := range errs {
		wantError(t, err, cloud.Forbidden, "get operation", "lacks a privilege")
	}
	done, errs := states(t, c, ids)
	if err := errors.Join(errs...); err != nil || !done[0].Done || !done[1].Done {
		t.Errorf("once tasks can be read: %+v, %v", done, err)
	}
}
