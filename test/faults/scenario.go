package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// scenario is what a user does, step by step; each step begins when what the
// one before it wants has come about.
type scenario struct {
	name string
	// build and remove are the time that the cloud takes for it.
	build, remove mockcloud.Duration
	// spec of the Cloud, where it matters.
	spec v1alpha1.CloudSpec
	// counts says which effects are numbered, those of VMs if nil.
	counts func(effect) bool
	// pair: two managers act at a time, without leader election; one is killed.
	pair bool
	// arrange comes before the effects are counted.
	arrange, act []step
	// crashed, where set, is done while no manager is at work, and what it
	// wants is wanted then; what is left of act is not done.
	crashed step
}

// step does something and says what it leads to through world.wants.
type step func(ctx context.Context, w *world) error

// outcome is what a run of a scenario showed.
type outcome struct {
	// effects that came by after arrange.
	effects []effect
	// killed is the effect that the manager died of; its n is 0 if none.
	killed effect
	took   time.Duration
	err    error
	// story is what to read where err is not nil.
	story string
}

// run lives the scenario through with the manager killed at the k-th effect,
// or undisturbed if k is 0.
func (s scenario) run(ctx context.Context, l *lab, p profile, k int, at phase) (out outcome) {
	began := time.Now()
	p.mock.BuildTime, p.mock.DeleteTime = s.build, s.remove
	w, err := l.newWorld(ctx, setting{profile: p, spec: s.spec})
	if err != nil {
		return outcome{err: err}
	}
	defer w.close()
	if s.counts != nil {
		w.gate.counts = s.counts
	}
	out.killed, out.err = s.live(ctx, w, k, at)
	out.effects = w.gate.seen()
	if out.err == nil {
		out.err = w.settled(ctx)
	}
	if out.err != nil {
		out.story = w.story()
	}
	out.took = time.Since(began)
	return out
}

func (s scenario) live(ctx context.Context, w *world, k int, at phase) (killed effect, err error) {
	if err := s.staff(ctx, w); err != nil {
		return killed, err
	}
	for _, do := range s.arrange {
		if err := w.take(ctx, do); err != nil {
			return killed, fmt.Errorf("arranging: %w", err)
		}
	}
	w.gate.reset()
	stop := w.gate.stopAt(k, at)
	for i, do := range s.act {
		if err := do(ctx, w); err != nil {
			return killed, err
		}
		if err := w.until(ctx, func() error {
			if len(stop.held) > 0 {
				return nil
			}
			return w.reached()
		}); err != nil {
			return killed, err
		}
		hit := len(stop.held) > 0
		if k > 0 && killed.n == 0 && i == len(s.act)-1 {
			if hit, err = w.comes(ctx, stop); err != nil {
				return killed, err
			}
		}
		if !hit {
			continue
		}
		killed = <-stop.held
		if err := w.crash(ctx, stop, s.crashed); err != nil {
			return killed, err
		}
		if err := w.until(ctx, w.reached); err != nil || s.crashed != nil {
			return killed, err
		}
	}
	return killed, nil
}

// comes waits for the effect of a stop as long as one may still come, and calls
// the stop off if none does: of two runs one may have an effect more, for a
// write that came too late is made again.
func (w *world) comes(ctx context.Context, at *stop) (bool, error) {
	before := w.gate.listingsSoFar()
	err := w.until(ctx, func() error {
		if len(at.held) == 0 && w.gate.listingsSoFar() < before+3 {
			return errors.New("the cloud is not listed any more")
		}
		return nil
	})
	return err == nil && !w.gate.disarm(at), err
}

// staff starts the manager; of two it waits until both know the cloud so long
// that neither holds back.
func (s scenario) staff(ctx context.Context, w *world) error {
	if _, err := w.start(); err != nil || !s.pair {
		return err
	}
	if _, err := w.start(); err != nil {
		return err
	}
	if err := w.working(ctx, 2); err != nil {
		return err
	}
	return w.listings(ctx, 6)
}

// working waits until the controllers of that many managers are at work.
func (w *world) working(ctx context.Context, managers int) error {
	return w.until(ctx, func() error {
		for _, controller := range []string{"vm", "vmgroup", "network", "cloud"} {
			if n := strings.Count(w.log.String(), `"msg":"Starting workers","controller":"`+controller+`"`); n < managers {
				return fmt.Errorf("%d controllers of kind %s are at work", n, controller)
			}
		}
		return nil
	})
}

// take does a step and waits for what it wants.
func (w *world) take(ctx context.Context, do step) error {
	if err := do(ctx, w); err != nil {
		return err
	}
	return w.until(ctx, w.reached)
}

// settled waits until all is at rest, and returns what is wrong then or ever was.
func (w *world) settled(ctx context.Context) error {
	if err := w.rest(ctx); err != nil {
		return errors.Join(append(w.violations(), err)...)
	}
	return errors.Join(w.violations()...)
}

// rest waits until all is well, and then until a listing, begun after another
// had been dealt with, brings no effect.
func (w *world) rest(ctx context.Context) error {
	if err := w.until(ctx, w.reached); err != nil {
		return err
	}
	for began := time.Now(); ; {
		if err := w.listings(ctx, 2); err != nil {
			return err
		}
		quiet := len(w.gate.seen())
		if err := w.listings(ctx, 1); err != nil {
			return err
		}
		restless := w.gate.seen()[quiet:]
		missing := w.reached()
		if len(restless) == 0 && missing == nil {
			return nil
		}
		if time.Since(began) > w.patience {
			return errors.Join(fmt.Errorf("no rest: %v", restless), missing)
		}
	}
}

func (w *world) listings(ctx context.Context, n int) error {
	before := w.gate.listingsSoFar()
	return w.until(ctx, func() error {
		if w.gate.listingsSoFar() < before+n {
			return errors.New("the cloud is not listed any more")
		}
		return nil
	})
}

// create makes a VM object, changed by spec, and wants it to run.
func create(name string, spec ...func(*v1alpha1.VM)) step {
	return func(ctx context.Context, w *world) error {
		vm := &v1alpha1.VM{Spec: v1alpha1.VMSpec{VMName: name, CloudRef: &v1alpha1.CloudReference{Name: w.name}}}
		vm.Namespace, vm.Name = w.name, name
		for _, change := range spec {
			change(vm)
		}
		w.want(name, runs)
		return w.lab.client.Create(ctx, vm)
	}
}

// remove deletes the object.
func remove(name string, to fate) step {
	return func(ctx context.Context, w *world) error {
		w.want(name, to)
		return w.lab.client.Delete(ctx, w.object(name))
	}
}

// edit merges a patch into the object, and waits until that is seen.
func edit(name, patch string) step {
	return func(ctx context.Context, w *world) error {
		edited := w.object(name)
		if err := w.lab.client.Patch(ctx, edited, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return err
		}
		return w.until(ctx, func() error {
			if seen := w.recorder.vm(name); seen != nil && seen.Generation < edited.Generation {
				return fmt.Errorf("the edit of %s is not seen", name)
			}
			return nil
		})
	}
}

// rename gives the VM another name in the cloud, as is allowed as long as none
// was made.
func rename(name, to string) step {
	return func(ctx context.Context, w *world) error {
		err := edit(name, fmt.Sprintf(`{"spec":{"vmname":%q}}`, to))(ctx, w)
		switch {
		case apierrors.IsInvalid(err) && w.recorder.vm(name).Status.VMID != "":
			return nil
		case err != nil:
			return err
		}
		w.want(name, told)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.renamed[to] = name
		return nil
	}
}

// unproved wants of a VM object what can be had where nothing proves whose a server is.
func unproved(name string) step {
	return func(ctx context.Context, w *world) error {
		err := create(name)(ctx, w)
		w.want(name, told)
		return err
	}
}

// contend makes two VM objects at a time that want the same name in the cloud.
func contend(ctx context.Context, w *world) error {
	for _, name := range []string{"one", "other"} {
		if err := create(name, func(vm *v1alpha1.VM) { vm.Spec.VMName = contested })(ctx, w); err != nil {
			return err
		}
		w.want(name, contends)
	}
	return nil
}

// removeRefused deletes the one that did not get the name.
func removeRefused(ctx context.Context, w *world) error {
	for _, name := range []string{"one", "other"} {
		if is, _ := stands(w.recorder.vm(name)); !is {
			return remove(name, gone)(ctx, w)
		}
	}
	return errors.New("both got the name")
}

func (w *world) object(name string) *v1alpha1.VM {
	vm := &v1alpha1.VM{}
	vm.Namespace, vm.Name = w.name, name
	return vm
}

// createBesideCounterfeit makes a VM object, and a server that bears the owner
// labels of this very object, but of another cluster.
func createBesideCounterfeit(name string) step {
	return func(ctx context.Context, w *world) error {
		if err := create(name)(ctx, w); err != nil {
			return err
		}
		vm := w.object(name)
		if err := w.lab.client.Get(ctx, client.ObjectKeyFromObject(vm), vm); err != nil {
			return err
		}
		return w.stranger(mockcloud.Server{Name: "counterfeit", Labels: map[string]string{
			inventory.UIDLabel: string(vm.UID), inventory.NamespaceLabel: w.name, inventory.NameLabel: name, inventory.ClusterLabel: "another",
		}})
	}
}

// createRefused makes a VM object whose name a stranger's server has.
func createRefused(name string) step {
	return func(ctx context.Context, w *world) error {
		err := create(name)(ctx, w)
		w.want(name, refused)
		return err
	}
}

// takeOver makes an object that imports a server which is there already.
func takeOver(name string) step {
	return func(ctx context.Context, w *world) error {
		server, err := w.mock.PutServer(mockcloud.Server{Name: name})
		if err != nil {
			return err
		}
		return create(name, func(vm *v1alpha1.VM) { vm.Spec.Import = &v1alpha1.VMImport{VMID: server.ID} })(ctx, w)
	}
}
