package faults

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// each makes one step of a step for each name.
func each(names []string, do func(name string) step) step {
	return func(ctx context.Context, w *world) error {
		for _, name := range names {
			if err := do(name)(ctx, w); err != nil {
				return err
			}
		}
		return nil
	}
}

func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", prefix, i)
	}
	return names
}

// create creates a VM object, changed by spec, and expects it to run.
func create(name string, spec ...func(*pcapi.VM)) step {
	return func(ctx context.Context, w *world) error {
		vm := testkit.VM(w.name, name, func(vm *pcapi.VM) {
			vm.Spec.CloudRef, vm.Spec.VMName = &pcapi.CloudReference{Name: w.name}, w.spelled(name)
		})
		for _, change := range spec {
			change(vm)
		}
		w.expect(name, runs)
		if err := w.awaitClaims(ctx, vm); err != nil {
			return err
		}
		return w.env.client.Create(ctx, vm)
	}
}

// awaitClaims waits until the API server creates the VM with its claim, if the profile
// has that.
func (w *world) awaitClaims(ctx context.Context, vm *pcapi.VM) error {
	if !w.profile.claimed {
		return nil
	}
	return w.until(ctx, func() error {
		claimed, err := testkit.ClaimedAtCreation(ctx, w.env.client, vm)
		if err == nil && !claimed {
			err = fmt.Errorf("VM %s is not created with its claim", vm.Name)
		}
		return err
	})
}

// remove deletes the object.
func remove(name string, to goal) step {
	return func(ctx context.Context, w *world) error {
		w.expect(name, to)
		return w.env.client.Delete(ctx, w.object(name))
	}
}

// edit merges a patch into the object, and waits until the recorder has observed it.
func edit(name, patch string) step {
	return func(ctx context.Context, w *world) error {
		edited := w.object(name)
		if err := w.env.client.Patch(ctx, edited, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return err
		}
		return w.until(ctx, func() error {
			if observed := w.recorder.vm(name); observed != nil && observed.Generation < edited.Generation {
				return fmt.Errorf("the edit of %s is not observed", name)
			}
			return nil
		})
	}
}

// rename changes spec.vmname, which is allowed as long as there is no server.
func rename(name, to string) step {
	return func(ctx context.Context, w *world) error {
		err := edit(name, fmt.Sprintf(`{"spec":{"vmname":%q}}`, to))(ctx, w)
		if apierrors.IsInvalid(err) { // the recorder may not have observed the id yet
			object := w.object(name)
			if e := w.env.client.Get(ctx, client.ObjectKeyFromObject(object), object); e != nil || object.Status.VMID != "" {
				return e
			}
		}
		if err != nil {
			return err
		}
		w.expect(name, readyOrUndecided)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.renamed[to] = name
		return nil
	}
}

// createUndecided creates a VM object on a cloud that does not prove which object
// owns a server: it becomes ready, or a user has to decide.
func createUndecided(ctx context.Context, w *world) error {
	err := create(vm)(ctx, w)
	w.expect(vm, readyOrUndecided)
	return err
}

// createContenders creates two VM objects with the same vmname.
func createContenders(ctx context.Context, w *world) error {
	for _, name := range []string{"one", "other"} {
		if err := create(name, func(vm *pcapi.VM) { vm.Spec.VMName = w.spelled(contested) })(ctx, w); err != nil {
			return err
		}
		w.expect(name, contends)
	}
	return nil
}

// removeLoser deletes the VM that did not get the name.
func removeLoser(ctx context.Context, w *world) error {
	for _, name := range []string{"one", "other"} {
		if !w.has(w.recorder.vm(name)) {
			return remove(name, gone)(ctx, w)
		}
	}
	return errors.New("both got the name")
}

func createOne(name string) step { return create(name) }
func removeOne(name string) step { return remove(name, gone) }

func (w *world) object(name string) *pcapi.VM {
	vm := &pcapi.VM{}
	vm.Namespace, vm.Name = w.name, name
	return vm
}

// createBesideForged creates a VM object, and a server with the owner labels of
// this object but of another cluster.
func createBesideForged(name string) step {
	return func(ctx context.Context, w *world) error {
		if err := create(name)(ctx, w); err != nil {
			return err
		}
		vm := w.object(name)
		if err := w.env.client.Get(ctx, client.ObjectKeyFromObject(vm), vm); err != nil {
			return err
		}
		return w.putForeignServer(mockcloud.Server{Name: "forged", Labels: map[string]string{
			inventory.UIDLabel: string(vm.UID), inventory.NamespaceLabel: w.name, inventory.NameLabel: name, inventory.ClusterLabel: "another",
		}})
	}
}

// createRefused creates a VM object with the name of a foreign server.
func createRefused(name string) step {
	return func(ctx context.Context, w *world) error {
		err := create(name)(ctx, w)
		w.expect(name, refused)
		return err
	}
}

// importVM creates an object that imports a server that exists already.
func importVM(name string) step {
	return func(ctx context.Context, w *world) error {
		server, err := w.stock.PutServer(mockcloud.Server{Name: name})
		if err != nil {
			return err
		}
		return create(name, func(vm *pcapi.VM) {
			vm.Spec.VMName, vm.Spec.Import = name, &pcapi.VMImport{VMID: server.ID}
		})(ctx, w)
	}
}
