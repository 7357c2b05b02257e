package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// start starts a manager, and waits until it leads.
func (r *replay) start(ctx context.Context) error {
	w := r.world
	if n := len(w.managers); n > 0 && !w.managers[n-1].Ended() && !slices.Contains(r.paused, w.managers[n-1]) { // it was asked to end
		r.resume()
		err := r.pass(ctx, converges, w.managers[n-1].Ended)
		r.hold()
		if err != nil {
			return err
		}
	}
	last, err := w.leader(ctx)
	if err != nil {
		return err
	}
	if err := r.startManager(); err != nil {
		return err
	}
	now := ""
	if err := r.pass(ctx, converges, func() bool {
		now, err = w.leader(ctx)
		return err == nil && now != "" && now != last
	}); err != nil {
		return err
	}
	if now == "" || now == last {
		return errors.Join(err, fmt.Errorf("no other manager leads within %s", converges))
	}
	return nil
}

func (r *replay) startManager() error {
	r.mu.Lock()
	r.started++
	r.mu.Unlock()
	_, err := r.world.start("--leader-elect")
	return err
}

// signal kills, stops, pauses or resumes a manager.
func (r *replay) signal(verb, name string) error {
	var n int
	if _, err := fmt.Sscanf(name, "manager-%d", &n); err != nil {
		return err
	}
	m := r.world.managers[n-1]
	switch verb {
	case "kill":
		r.paused = slices.DeleteFunc(r.paused, func(o *testkit.Process) bool { return o == m })
		defer r.killed(n)
		return m.Kill()
	case "pause":
		r.paused = append(r.paused, m)
		return m.Signal(syscall.SIGSTOP)
	case "resume":
		r.paused = slices.DeleteFunc(r.paused, func(o *testkit.Process) bool { return o == m })
		return m.Signal(syscall.SIGCONT)
	}
	return m.Signal(syscall.SIGTERM)
}

// setOutage has all calls of the cloud fail from now on; none if why is empty.
func (r *replay) setOutage(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outage = why
}

// user does what a user does.
func (r *replay) user(ctx context.Context, does string) error {
	w := r.world
	network := &pcapi.Network{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "n"}}
	switch does {
	case "create Network n":
		network.Spec = pcapi.NetworkSpec{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", CloudRef: &pcapi.CloudReference{Name: w.name}}
		return w.env.client.Create(ctx, network)
	case "delete Network n":
		return w.env.client.Delete(ctx, network)
	case "change the gateway of Network n":
		return r.patch(ctx, network, `{"spec":{"gateway":"10.0.0.2"}}`)
	}
	parts := strings.Fields(does) // a verb, VM and its name
	name := parts[2]
	switch parts[0] {
	case "create":
		return w.env.client.Create(ctx, testkit.VM(w.name, name, func(vm *pcapi.VM) {
			vm.Spec.CloudRef = &pcapi.CloudReference{Name: w.name}
			if strings.HasSuffix(does, " with approvals") {
				vm.Spec.Approval = pcapi.ApprovalRequired
			}
			if _, lacks := w.profile.mock.Capabilities[mockcloud.Networks]; name == "b" && !lacks {
				vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "n"}
			}
		}))
	case "delete":
		return w.env.client.Delete(ctx, w.object(name))
	case "resize":
		return r.patch(ctx, w.object(name), `{"spec":{"cpu":2}}`)
	case "switch":
		return r.patch(ctx, w.object(name), `{"spec":{"powerState":"Off"}}`)
	}
	return errors.New("a run with real processes has no such user")
}

func (r *replay) patch(ctx context.Context, object client.Object, patch string) error {
	return client.IgnoreNotFound(r.world.env.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// approve approves the plans that wait for it.
func (r *replay) approve(ctx context.Context) error {
	for _, name := range []string{"a", "b"} {
		vm := r.world.recorder.vm(name)
		if !waitsForApproval(vm) || approval.Approved(vm) {
			continue
		}
		if err := r.patch(ctx, r.world.object(name), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, pcapi.ApprovedPlanAnnotation, vm.Status.Plan.Hash)); err != nil {
			return err
		}
	}
	return nil
}

// deleteByHand deletes a server in the cloud once its create has taken effect.
func (r *replay) deleteByHand(ctx context.Context, server string) error {
	var n int
	if _, err := fmt.Sscanf(server, "s%d", &n); err != nil {
		return err
	}
	exists := func() bool { return len(r.servers()) >= n }
	if !exists() {
		r.resume()
		err := r.pass(ctx, busy, exists)
		r.hold()
		if err != nil {
			return err
		}
	}
	if !exists() {
		return errors.New("there is no such server")
	}
	return r.world.mock.DeleteServer(r.servers()[n-1])
}
