package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// orphanPatch makes the operator leave the server of a VM, or a snapshot, in the cloud.
var orphanPatch = client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletionPolicy":"Orphan"}}`))

type drain struct {
	Options

	client client.Client
	out    io.Writer
}

// Run drains until nothing is left, and writes plan, progress and what is left to out.
// It fails if anything is left when the timeout is over or ctx ends, if an option is
// invalid, or if a right is missing. It can be run again at any time.
func Run(ctx context.Context, c client.Client, options Options, out io.Writer) error {
	if err := options.Validate(); err != nil {
		return err
	}
	if options.Interval == 0 {
		options.Interval = interval
	}
	if err := checkNamespace(ctx, c, options.Namespace); err != nil {
		return err
	}
	if err := reportMissing(ctx, c, options.Cloud, out); err != nil {
		return err
	}
	d := &drain{Options: options, client: c, out: out}
	if !d.Yes {
		return d.plan(ctx)
	}
	return d.wait(ctx)
}

// checkNamespace fails if a namespace is given and does not exist.
func checkNamespace(ctx context.Context, reader client.Reader, name string) error {
	if name == "" {
		return nil
	}
	err := reader.Get(ctx, client.ObjectKey{Name: name}, tenancy.NamespaceMetadata())
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("namespace %q does not exist: correct --namespace", name)
	}
	if err != nil {
		return fmt.Errorf("read namespace %q: %w", name, err)
	}
	return nil
}

// reportMissing writes to out if a Cloud is given and does not exist: its name may be
// wrong, or an earlier drain has removed it.
func reportMissing(ctx context.Context, reader client.Reader, cloud string, out io.Writer) error {
	if cloud == "" {
		return nil
	}
	exists := false
	s := &scope{reader: reader, cloud: cloud}
	err := s.each(ctx, clouds, func(object) error {
		exists = true
		return nil
	})
	if err == nil && !exists {
		_, err = fmt.Fprintf(out, "Cloud %q does not exist: correct --cloud, unless an earlier drain has removed it.\n", cloud)
	}
	return err
}

// wait repeats rounds until nothing is left.
func (d *drain) wait(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	ticker := time.NewTicker(d.Interval)
	defer ticker.Stop()
	progress := newProgress(d.out)
	var failed error
	for {
		left, err := d.round(bounded)
		switch {
		case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
			return err
		case err == nil && left.count() == 0:
			fmt.Fprintln(d.out, "Nothing is left.")
			return nil
		case err == nil:
			progress.report(left)
			failed = nil
		case bounded.Err() == nil:
			fmt.Fprintf(d.out, "%v; trying again\n", err)
			failed = err
		}
		select {
		case <-bounded.Done():
			return progress.unfinished(ctx.Err() != nil, failed)
		case <-ticker.C:
		}
	}
}

// round requests what has not been requested yet, and returns all that still exists.
func (d *drain) round(ctx context.Context) (remains, error) {
	left := remains{}
	s, err := newScope(ctx, d.client, d.Options)
	if err != nil {
		return nil, err
	}
	inUse := map[string]bool{}
	for _, k := range kinds {
		err := s.each(ctx, k, func(o object) error {
			kept := d.kept(o, inUse)
			if k.name == vms.name {
				inUse[o.GetNamespace()] = true
			}
			left[k.name] = append(left[k.name], waitingFor(o, kept))
			return d.request(ctx, o, kept != "")
		})
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// kept returns why the deletion of an object is not requested yet, or "".
func (d *drain) kept(o object, inUse map[string]bool) string {
	orphan := d.Policy == PolicyOrphan
	switch o := o.(type) {
	case *pcapi.VM:
		if orphan && metav1.GetControllerOf(o) != nil {
			return "deleted once its group has released it"
		}
	case *pcapi.Network:
		switch {
		case d.stays(o):
			return "a network that the operator created cannot be orphaned: drain with --policy=delete when no server needs it"
		case inUse[o.Namespace]:
			return "deleted once its namespace has no VM in this drain"
		}
	}
	return ""
}

// stays reports whether a drain with this policy never deletes an object: a network that
// the operator created cannot be left in the cloud without its object.
func (d *drain) stays(o object) bool {
	network, ok := o.(*pcapi.Network)
	return ok && d.Policy == PolicyOrphan && network.Spec.Import == nil
}

// request sends what an object needs so that the operator removes it.
func (d *drain) request(ctx context.Context, o object, kept bool) error {
	_, group := o.(*pcapi.VmGroup)
	vm, server := o.(*pcapi.VM)
	if snap, ok := o.(*pcapi.VMSnapshot); ok && d.Policy == PolicyOrphan && snap.Spec.DeletionPolicy != pcapi.DeletionPolicyOrphan {
		if err := client.IgnoreNotFound(d.client.Patch(ctx, snap, orphanPatch)); err != nil {
			return fmt.Errorf("set deletionPolicy Orphan on VMSnapshot %s: %w", client.ObjectKeyFromObject(snap), err)
		}
	}
	if server && d.Policy == PolicyOrphan && vm.Spec.DeletionPolicy != pcapi.DeletionPolicyOrphan {
		if err := client.IgnoreNotFound(d.client.Patch(ctx, vm, orphanPatch)); err != nil {
			return fmt.Errorf("set deletionPolicy Orphan on VM %s: %w", client.ObjectKeyFromObject(vm), err)
		}
	}
	if kept || !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	uid := o.GetUID()
	options := []client.DeleteOption{client.Preconditions{UID: &uid}}
	if group && d.Policy == PolicyOrphan {
		// Members become VMs of their own; the group could create others until it is gone.
		options = append(options, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	}
	err := d.client.Delete(ctx, o, options...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // removed, or replaced: the next round reads it again
	}
	if err != nil {
		return fmt.Errorf("delete %T %s: %w", o, client.ObjectKeyFromObject(o), err)
	}
	return nil
}

// errLeft is returned if objects are left.
var errLeft = errors.New("the drain is not complete: resolve what is listed above and run it again; do not remove finalizers or the operator")
