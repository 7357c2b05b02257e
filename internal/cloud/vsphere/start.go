package vsphere

import (
	"context"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// starts starts VMs after their clones, and remembers the tasks that do, by the task of the
// clone. What is forgotten is found out by looking at the VM.
type starts struct {
	faults   *faults
	vms      *vms
	tasks    *tasks
	rules    *rules
	outcomes *outcomes

	mu    sync.Mutex
	begun map[string]string
}

// maxStarts bounds starts.
const maxStarts = 10_000

func (s *starts) of(clone string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun[clone]
}

// put records a task; the empty one is none.
func (s *starts) put(clone, task string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case task == "":
		delete(s.begun, clone)
	case s.begun == nil || len(s.begun) >= maxStarts:
		s.begun = map[string]string{clone: task}
	default:
		s.begun[clone] = task
	}
}

// advance returns how far the start of a VM is that was cloned to be put into a rule first,
// and begins it. What failed is sent again by the caller, as any change of the power state.
func (s *starts) advance(ctx context.Context, op string, at *site, what operation) (cloud.Operation, error) {
	if task := s.of(what.task); task != "" {
		info, err := s.tasks.get(ctx, at, task, time.Now().Add(-s.tasks.age))
		switch {
		case err != nil:
			return cloud.Operation{}, err
		case info != nil && info.State == types.TaskInfoStateError:
			s.put(what.task, "")
			return s.outcomes.failed(ctx, op, at, operation{kind: updateOperation, server: what.server}, info)
		case info != nil && info.State != types.TaskInfoStateSuccess:
			return cloud.Operation{ServerID: what.server}, nil
		}
		s.put(what.task, "")
	}
	vm, err := s.vms.byID(ctx, op, at, what.server)
	switch {
	case cloud.Is(err, cloud.Displaced): // the clone has made it
		return cloud.Operation{Done: true, Progress: 100, ServerID: what.server}, nil
	case err != nil:
		return cloud.Operation{}, err
	case vm == nil || vm.state() != cloud.StateStopped:
		state := cloud.Operation{Done: true, Progress: 100, ServerID: what.server}
		if vm != nil {
			state.Server, err = s.outcomes.after(ctx, at, what, vm.ref)
		}
		return state, err
	}
	started, err := s.rules.start(ctx, at, *vm)
	if err != nil {
		return s.notStarted(ctx, op, at, what, *vm, err)
	}
	s.tasks.started(started)
	s.put(what.task, started.Value)
	return cloud.Operation{ServerID: what.server}, nil
}

// notStarted returns the state of a create whose VM cannot be started now. If only the rules are
// waited for, the create has ended: the caller starts the VM as any other that is stopped, and
// may delete it meanwhile.
func (s *starts) notStarted(ctx context.Context, op string, at *site, what operation, vm entity, err error) (cloud.Operation, error) {
	e := s.faults.fail(ctx, op, err)
	switch e.Kind {
	case cloud.Busy:
		state := cloud.Operation{Done: true, Progress: 100, ServerID: what.server}
		state.Server, err = s.outcomes.after(ctx, at, what, vm.ref)
		return state, err
	case cloud.Unavailable, cloud.Throttled, cloud.Unauthorized, cloud.Misconfigured, cloud.Unreadable:
		return cloud.Operation{}, e
	default:
		return cloud.Operation{Done: true, ServerID: what.server, Err: e}, nil
	}
}
