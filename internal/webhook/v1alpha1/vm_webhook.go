// Package v1alpha1 implements the name check webhook: it checks a VM's name with
// the cloud before the API server stores the VM.
//
//	vm_webhook.go  which requests are checked, and how they are answered
//	metrics.go     the number of checks by outcome
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

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/tenancy"
)

// checkTimeout bounds a name check. It is shorter than the webhook's timeout, so
// that users get this webhook's warning, not the API server's.
const checkTimeout = 2 * time.Second

// +kubebuilder:webhook:path=/validate-samplecontroller-k8s-io-v1alpha1-vm,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=3,groups=samplecontroller.k8s.io,resources=vms,verbs=create;update,versions=v1alpha1,name=vmname.samplecontroller.k8s.io,admissionReviewVersions=v1

// SetupVMWebhookWithManager registers the name check webhook with the Manager.
func SetupVMWebhookWithManager(mgr ctrl.Manager, clients *clouds.Clients) error {
	return ctrl.NewWebhookManagedBy(mgr, &pcapi.VM{}).
		WithValidator(&validator{reader: mgr.GetCache(), getShared: clients.GetShared, count: sharedCount}).
		Complete()
}

// validator checks names. It allows a VM whose name it cannot check, with a
// warning: the controller checks each name again before it creates a server.
type validator struct {
	// reader reads Clouds and namespaces from the cache.
	reader client.Reader
	// getShared returns the client of a Cloud.
	getShared func(context.Context, *pcapi.Cloud) (cloud.Client, error)
	count     func(outcome)
}

var _ admission.Validator[*pcapi.VM] = (*validator)(nil)

// ValidateCreate checks the name of a VM that the operator is going to create.
func (v *validator) ValidateCreate(ctx context.Context, vm *pcapi.VM) (admission.Warnings, error) {
	if vm.Spec.Import != nil || ownedByGroup(vm) {
		return nil, nil
	}
	return v.check(ctx, vm)
}

// ValidateUpdate checks a name that changes before the VM exists in the cloud.
func (v *validator) ValidateUpdate(ctx context.Context, old, vm *pcapi.VM) (admission.Warnings, error) {
	if vm.Spec.VMName == old.Spec.VMName || vm.Status.VMID != "" || vm.Spec.Import != nil || !vm.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return v.check(ctx, vm)
}

// ValidateDelete allows every deletion. The webhook is not registered for deletions.
func (v *validator) ValidateDelete(context.Context, *pcapi.VM) (admission.Warnings, error) {
	return nil, nil
}

// ownedByGroup reports whether a VmGroup created the VM. The status of the
// VmGroup reports a rejected name.
func ownedByGroup(vm *pcapi.VM) bool {
	owner := metav1.GetControllerOf(vm)
	return owner != nil && owner.Kind == "VmGroup" && owner.APIVersion == pcapi.GroupVersion.String()
}

func (v *validator) check(ctx context.Context, vm *pcapi.VM) (admission.Warnings, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	name, err := v.checkName(ctx, vm)
	result := outcomeOf(err)
	v.count(result)
	switch result {
	case allowed:
		return nil, nil
	case prohibited:
		invalid := field.Invalid(field.NewPath("spec", "vmname"), vm.Spec.VMName,
			fmt.Sprintf("rejected by Cloud %q: %s; choose another name", name, detail(err)))
		return nil, apierrors.NewInvalid(pcapi.GroupVersion.WithKind("VM").GroupKind(), vm.Name, field.ErrorList{invalid})
	case taken:
		return admission.Warnings{fmt.Sprintf("vmname %q is not available in Cloud %q: %s; the VM is created once the name is free",
			vm.Spec.VMName, name, detail(err))}, nil
	default:
		log.FromContext(ctx).V(1).Info("name was not checked", "cloud", name, "vmname", vm.Spec.VMName, "reason", err.Error())
		return admission.Warnings{fmt.Sprintf("vmname %q was not checked: %s; the operator checks it before it creates the VM",
			vm.Spec.VMName, uncheckedReason(name, err))}, nil
	}
}

// checkName calls the VM's Cloud and returns the name of that Cloud, or "" if it
// is unknown.
func (v *validator) checkName(ctx context.Context, vm *pcapi.VM) (string, error) {
	name, err := tenancy.CloudFor(ctx, v.reader, vm.Namespace, vm.Spec.CloudRef)
	if err != nil {
		return name, err
	}
	c, err := tenancy.Open(ctx, v.reader, vm.Namespace, name)
	if err != nil {
		return name, err
	}
	// The status saves waiting for a cloud that is known to be unavailable, on all replicas.
	if !meta.IsStatusConditionTrue(c.Status.Conditions, pcapi.ReadyCondition) {
		return name, errNotReady
	}
	shared, err := v.getShared(ctx, c)
	if err != nil {
		return name, err
	}
	return name, shared.CheckName(cloud.WithFlow(ctx, vm.Namespace), vm.Spec.VMName)
}

var errNotReady = errors.New("the Cloud is not ready")

// outcomeOf returns the outcome of a check that ended with err.
func outcomeOf(err error) outcome {
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

// uncheckedReason returns why a name was not checked, for a warning. It reveals
// nothing about a Cloud that the namespace may not use.
func uncheckedReason(name string, err error) string {
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
		return fmt.Sprintf("Cloud %q did not complete the check", name)
	}
	return "the operator could not call the cloud"
}

// detail returns the cloud's own explanation of a rejected name.
func detail(err error) string {
	if rejection, ok := errors.AsType[*cloud.Error](err); ok && rejection.Detail != "" {
		return rejection.Detail
	}
	return err.Error()
}
