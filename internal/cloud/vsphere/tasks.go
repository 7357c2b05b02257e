package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// defaultTaskAge is how old what is known of a task may be. Meanwhile calls share one
	// read of all tasks.
	defaultTaskAge = time.Second
	// taskHold is how long a task that nobody asks for is read along with others: longer
	// than the operator waits between two looks at an operation.
	taskHold = 2 * time.Minute
)

// tasks reads tasks by their value.
type tasks struct {
	calls   *calls
	session *session
	batch   batch[string, taskState]
	// age is how old what is known of a task may be.
	age time.Duration
}

// taskState is what was read of a task.
type taskState struct {
	info types.TaskInfo
	err  error
}

// started records a task that this client began, so that it is read along with others.
func (t *tasks) started(task types.ManagedObjectReference) {
	t.batch.add(task.Value, time.Now().Add(taskHold))
}

// get returns a task as it was at since or later, nil if the vCenter does not know it any
// more.
func (t *tasks) get(ctx context.Context, at *site, name string, since time.Time) (*types.TaskInfo, error) {
	state, known, err := t.batch.get(ctx, name, since, func(names []string, end func(map[string]taskState, error)) error {
		return t.calls.shared(ctx, func(ctx context.Context) {
			found, err := t.read(ctx, at, names)
			end(found, err)
		})
	})
	switch {
	case err != nil:
		return nil, err
	case !known:
		t.batch.drop(name)
		return nil, nil //nolint:nilnil // there is none, and that is no error
	case state.err != nil:
		return nil, state.err
	}
	if ended(&state.info) {
		t.batch.drop(name)
	} else {
		t.batch.add(name, time.Now().Add(taskHold))
	}
	return &state.info, nil
}

// ended reports whether a task has succeeded or failed.
func ended(info *types.TaskInfo) bool {
	return info.State == types.TaskInfoStateSuccess || info.State == types.TaskInfoStateError
}

// taskLook is the pause before the second look at a task that is waited for; it doubles after.
const taskLook = 50 * time.Millisecond

// waitFor waits up to a time for the end of a task, and returns it as it is then, nil if the
// vCenter does not know it any more.
func (t *tasks) waitFor(ctx context.Context, at *site, task types.ManagedObjectReference, hold time.Duration) (info *types.TaskInfo, err error) {
	end := time.Now().Add(hold)
	for pause := taskLook; ; pause *= 2 {
		info, err = t.get(ctx, at, task.Value, time.Now())
		if err != nil || info == nil || ended(info) {
			return info, err
		}
		if !time.Now().Before(end) || !transport.Sleep(ctx, pause) {
			return info, nil
		}
	}
}

// read reads tasks in one call. Those that the vCenter has forgotten are not in the
// result.
func (t *tasks) read(ctx context.Context, at *site, names []string) (map[string]taskState, error) {
	spec := types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{{Type: "Task", PathSet: []string{"info"}}}, ReportMissingObjectsInResults: new(true),
	}
	for _, name := range names {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: types.ManagedObjectReference{Type: "Task", Value: name}})
	}
	var found []entity
	err := t.session.sure(ctx, func() (missing bool, err error) {
		found, err = collect(ctx, at.vim, spec)
		return err == nil && len(found) < len(names), err
	})
	if err != nil {
		return nil, err
	}
	states := make(map[string]taskState, len(found))
	for _, task := range found {
		if task.deleted() {
			continue
		}
		info, ok := task.props["info"].(types.TaskInfo)
		state := taskState{info: info}
		if !ok {
			state.err = refuse("", cloud.Unreadable, "the task has no state")
		}
		states[task.ref.Value] = state
	}
	return states, nil
}
