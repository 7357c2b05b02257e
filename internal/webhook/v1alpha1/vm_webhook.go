// Package v1alpha1 asks the cloud about a VM's name before the API server
// stores it.
//
//	vm_webhook.go  which objects are asked about, and what is said
//	metrics.go     how often what was said
package v1alpha1

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/tenancy"
)

// budget is how long a cloud may take to answer. It ends before the webhook's
// timeout, so that what is said in its place is ours.
const budget = 2 * time.Second

// +kubebuilder:webhook:path=/validate-samplecontroller-k8s-io-v1alpha1-vm,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=3,groups=samplecontroller.k8s.io,resources=vms,verbs=create;update,versions=v1alpha1,name=vmname.samplecontroller.k8s.io,admissionReviewVersions=v1

// SetupVMWebhookWithManager has the manager answer for the API server.
func SetupVMWebhookWithManager(mgr ctrl.Manager, clients *clouds.Clients) error {
	return ctrl.NewWebhookManagedBy(mgr, &v1alpha1.VM{}).
		WithValidator(&validator{reader: mgr.GetCache(), getShared: clients.GetShared, count: sharedCount}).
		Complete()
}

// validator checks names. It never refuses what it could not check: the
// controller checks each name once more before it creates a VM.
type validator struct {
	// reader reads Clouds and namespaces from the cache.
	reader client.Reader
	// getShared returns the client of a Cloud.
	getShared func(context.Context, *v1alpha1.Cloud) (cloud.Client, error)
	count     func(outcome)
}

var _ admission.Validator[*v1alpha1.VM] = (*validator)(nil)

// ValidateCreate asks for the name of a VM that the operator is to create.
func (v *validator) ValidateCreate(ctx context.Context, vm *v1alpha1.VM) (admission.Warnings, error) {
	if vm.Spec.Import != nil || ofGroup(vm) {
		return nil, nil
	}
	return v.check(ctx, vm)
}

// ValidateUpdate asks for a name that was edited while there is no server yet.
func (v *validator) ValidateUpdate(ctx context.Context, old, vm *v1alpha1.VM) (admission.Warnings, error) {
	if vm.Spec.VMName == old.Spec.VMName || vm.Status.VMID != "" || vm.Spec.Import != nil || !vm.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return v.check(ctx, vm)
}

// ValidateDelete is not asked: the webhook is registered for creates and updates.
func (v *validator) ValidateDelete(context.Context, *v1alpha1.VM) (admission.Warnings, error) {
	return nil, nil
}

// ofGroup tells whether a VmGroup made the VM: its status tells of a refused name.
func ofGroup(vm *v1alpha1.VM) bool {
	owner := metav1.GetControllerOf(vm)
	return owner != nil && owner.Kind == "VmGroup" && owner.APIVersion == v1alpha1.GroupVersion.String()
}

func (v *validator) check(ctx context.Context, vm *v1alpha1.VM) (admission.Warnings, error) {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	name, err := v.ask(ctx, vm)
	said := result(err)
	v.count(said)
	switch said {
	case allowed:
		return nil, nil
	case prohibited:
		refusal := field.Invalid(field.NewPath("spec", "vmname"), vm.Spec.VMName, fmt.Sprintf("Cloud %q says: %s; choose another name", name, words(err)))
		return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("VM").GroupKind(), vm.Name, field.ErrorList{refusal})
	case taken:
		return admission.Warnings{fmt.Sprintf("Cloud %q says of vmname %q: %s; the VM is created once it is free", name, vm.Spec.VMName, words(err))}, nil
	default:
		log.FromContext(ctx).V(1).Info("did not check a name", "cloud", name, "reason", err.Error())
		return admission.Warnings{fmt.Sprintf("vmname %q was not checked: %s; the operator checks it before it creates the VM", vm.Spec.VMName, why(name, err))}, nil
	}
}

// ask asks the VM's Cloud, whose name it returns as far as that is known.
func (v *validator) ask(ctx context.Context, vm *v1alpha1.VM) (string, error) {
	name, err := tenancy.CloudFor(ctx, v.reader, vm.Namespace, vm.Spec.CloudRef)
	if err != nil {
		return name, err
	}
	c, err := tenancy.Open(ctx, v.reader, vm.Namespace, name)
	if err != nil {
		return name, err
	}
	// Its status is the same on all replicas, and saves waiting for a cloud that is away.
	if !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ReadyCondition) {
		return name, errNotReady
	}
	shared, err := v.getShared(ctx, c)
	if err != nil {
		return name, err
	}
	return name, shared.CheckName(cloud.WithFlow(ctx, vm.Namespace), vm.Spec.VMName)
}

var errNotReady = errors.New("the Cloud is not ready")

// result tells what came of asking.
func result(err error) outcome {
	switch {
	case err == nil:
		return allowed
	case cloud.Is(err, cloud.Prohibited):
		return prohibited
	case cloud.Is(err, cloud.Taken):
		return taken
	}
	return unchecked
}

// why says in a few words why a name was not checked; of a Cloud that is denied
// to the namespace nothing but that.
func why(name string, err error) string {
	if _, ok := errors.AsType[*tenancy.MissingError](err); ok {
		return fmt.Sprintf("Cloud %q does not exist", name)
	}
	if denied, ok := errors.AsType[*tenancy.DeniedError](err); ok {
		return fmt.Sprintf("namespace %q may not use Cloud %q", denied.Namespace, denied.Cloud)
	}
	switch {
	case errors.Is(err, errNotReady):
		return fmt.Sprintf("Cloud %q is not ready", name)
	case cloud.KindOf(err) != "":
		return fmt.Sprintf("Cloud %q did not say whether it may be used", name)
	}
	return "the operator could not ask"
}

// words are the cloud's own.
func words(err error) string {
	if refusal, ok := errors.AsType[*cloud.Error](err); ok && refusal.Detail != "" {
		return refusal.Detail
	}
	return err.Error()
}
