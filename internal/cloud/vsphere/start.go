package vsphere

import (
	"context"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// start powers a VM on, once the rule of its anti-affinity has it.
func (c *Client) start(ctx context.Context, at *site, vm entity) (types.ManagedObjectReference, error) {
	if err := c.keepApart(ctx, at, vm); err != nil {
		return types.ManagedObjectReference{}, err
	}
	return switchPower(ctx, at, vm, cloud.PowerOn)
}

// starts remembers the tasks that start VMs after their clones, by the task of the clone. What
// is forgotten is found out by looking at the VM.
type starts struct {
	mu    sync.Mutex
	tasks map[string]string
}

// maxStarts bounds starts.
const maxStarts = 10_000

func (s *starts) of(clone string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[clone]
}

// put records a task; the empty one is none.
func (s *starts) put(clone, task string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case task == "":
		delete(s.tasks, clone)
	case s.tasks == nil || len(s.tasks) >= maxStarts:
		s.tasks = map[string]string{clone: task}
	default:
		s.tasks[clone] = task
	}
}

// startCloned returns how far the start of a VM is that was cloned to be put into a rule first,
// and begins it. What failed is sent again by the caller, as any change of the power state.
func (c *Client) startCloned(ctx context.Context, op string, at *site, what operation) (cloud.Operation, error) {
	if task := c.starts.of(what.task); task != "" {
		info, err := c.task(ctx, at, task, time.Now().Add(-c.taskAge))
		switch {
		case err != nil:
			return cloud.Operation{}, err
		case info != nil && info.State == types.TaskInfoStateError:
			c.starts.put(what.task, "")
			return c.failedTask(ctx, op, at, operation{kind: updateOperation, server: what.server}, info)
		case info != nil && info.State != types.TaskInfoStateSuccess:
			return cloud.Operation{ServerID: what.server}, nil
		}
		c.starts.put(what.task, "")
	}
	vm, err := c.byID(ctx, op, at, what.server)
	switch {
	case cloud.Is(err, cloud.Displaced): // the clone has made it
		return cloud.Operation{Done: true, Progress: 100, ServerID: what.server}, nil
	case err != nil:
		return cloud.Operation{}, err
	case vm == nil || vm.state() != cloud.StateStopped:
		state := cloud.Operation{Done: true, Progress: 100, ServerID: what.server}
		if vm != nil {
			state.Server, err = c.after(ctx, at, what, vm.ref)
		}
		return state, err
	}
	started, err := c.start(ctx, at, *vm)
	if err != nil {
		return c.notStarted(ctx, op, at, what, *vm, err)
	}
	c.started(started)
	c.starts.put(what.task, started.Value)
	return cloud.Operation{ServerID: what.server}, nil
}

// notStarted returns the state of a create whose VM cannot be started now. If only the rules are
// waited for, the create has ended: the caller starts the VM as any other that is stopped, and
// may delete it meanwhile.
func (c *Client) notStarted(ctx context.Context, op string, at *site, what operation, vm entity, err error) (cloud.Operation, error) {
	e := c.fail(ctx, op, err)
	switch e.Kind {
	case cloud.Busy:
		state := cloud.Operation{Done: true, Progress: 100, ServerID: what.server}
		state.Server, err = c.after(ctx, at, what, vm.ref)
		return state, err
	case cloud.Unavailable, cloud.Throttled, cloud.Unauthorized, cloud.Misconfigured, cloud.Unreadable:
		return cloud.Operation{}, e
	default:
		return cloud.Operation{Done: true, ServerID: what.server, Err: e}, nil
	}
}
