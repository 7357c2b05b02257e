// Package v1alpha1 implements two webhooks. The name check webhook checks a VM's
// name with the cloud before the API server stores the VM. The allowedNamespaces
// webhook refuses Clouds that do not say which namespaces may use them.
//
//	vm_webhook.go     which VMs are checked, and how their reviews are answered
//	vm_fields.go      the fields of a VM that the check uses
//	reviews.go        how many checks may be under way
//	metrics.go        the number of checks by outcome
//	cloud_webhook.go  which Clouds are refused
//	handler.go        the bounds of reviews
//	decode.go         decodes parts of a review
package v1alpha1

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/tenancy"
)

// checkTimeout bounds a name check. It is shorter than the webhook's timeout, so
// that users get this webhook's warning, not the API server's.
const checkTimeout = 2 * time.Second

const (
	// namespaceWait is how long a check waits for a namespace that was created
	// together with the VM, and namespaceInterval how often it looks.
	namespaceWait     = time.Second
	namespaceInterval = 50 * time.Millisecond
)

// The matchConditions repeat what validateCreate and validateUpdate leave out, so
// that the API server does not call the webhook for it: above all the writes of
// the operator itself. OLM has no matchConditions.
// +kubebuilder:webhook:path=/validate-samplecontroller-k8s-io-v1alpha1-vm,mutating=false,failurePolicy=ignore,matchPolicy=Equivalent,sideEffects=None,timeoutSeconds=3,groups=samplecontroller.k8s.io,resources=vms,verbs=create;update,versions=v1alpha1,name=vmname.samplecontroller.k8s.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"new-name","expression":"request.operation == 'CREATE' || object.spec.vmname != oldObject.spec.vmname"},{"name":"no-import","expression":"!has(object.spec.import)"},{"name":"no-member","expression":"!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, o.kind == 'VmGroup' && o.apiVersion == 'samplecontroller.k8s.io/v1alpha1' && has(o.controller) && o.controller)"},{"name":"no-server","expression":"!has(object.status) || !has(object.status.vmId) || object.status.vmId == ''"},{"name":"not-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// vmPath is the path of the name check webhook.
const vmPath = "/validate-samplecontroller-k8s-io-v1alpha1-vm"

// SetupVMWebhookWithManager registers the name check webhook with the Manager.
func SetupVMWebhookWithManager(mgr ctrl.Manager, clients *clouds.Clients) {
	v := &validator{reader: mgr.GetCache(), getShared: clients.GetShared, count: sharedCount}
	mgr.GetWebhookServer().Register(vmPath, newVMHandler(reviewTimeout, v))
}

// newVMHandler lets more reviews in than there may be checks: the VMs of the others are
// allowed with a warning. VMs that have larger reviews, by their annotations, are not checked.
func newVMHandler(timeout time.Duration, v *validator) *handler {
	return newHandler(limits{requests: mostReviews, largest: smallReview, timeout: timeout}, v.judge)
}

// validator checks names. It allows a VM whose name it cannot check, with a
// warning: the controller checks each name again before it creates a server.
type validator struct {
	// reader reads Clouds and namespaces from the cache.
	reader client.Reader
	// getShared returns the client of a Cloud.
	getShared func(context.Context, *pcapi.Cloud) (cloud.Client, error)
	count     func(outcome)
	// reviews are the checks under way.
	reviews reviews
}

// judge answers a review of a VM.
func (v *validator) judge(ctx context.Context, body []byte) (*admissionv1.AdmissionReview, error) {
	r, err := decodeReview(body)
	if err != nil {
		return nil, err
	}
	return r.answer(v.response(ctx, r)), nil
}

// response allows or refuses a VM. Deletions are allowed: the webhook is not registered for
// them.
func (v *validator) response(ctx context.Context, r request) admissionv1.AdmissionResponse {
	vm, err := decodeVM(r.object)
	old, oldErr := decodeVM(r.old)
	if err != nil || oldErr != nil {
		v.count(unchecked)
		return admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"the name of the VM was not checked: " + errUnreadable.Error()}}
	}
	ctx = log.IntoContext(ctx, log.Log.WithName("admission").WithValues("namespace", vm.Namespace, "name", vm.Name))
	var warnings []string
	switch r.operation {
	case admissionv1.Create:
		warnings, err = v.validateCreate(ctx, vm)
	case admissionv1.Update:
		warnings, err = v.validateUpdate(ctx, old, vm)
	case admissionv1.Delete, admissionv1.Connect:
	}
	response := admissionv1.AdmissionResponse{Allowed: err == nil, Warnings: warnings}
	if invalid, ok := errors.AsType[*apierrors.StatusError](err); ok {
		response.Result = &invalid.ErrStatus
	}
	return response
}

// validateCreate checks the name of a VM that the operator is going to create.
func (v *validator) validateCreate(ctx context.Context, vm *pcapi.VM) ([]string, error) {
	if vm.Spec.Import != nil || ownedByGroup(vm) {
		return nil, nil
	}
	return v.check(ctx, vm)
}

// validateUpdate checks a name that changes before the VM exists in the cloud.
func (v *validator) validateUpdate(ctx context.Context, old, vm *pcapi.VM) ([]string, error) {
	if vm.Spec.VMName == old.Spec.VMName || vm.Status.VMID != "" || vm.Spec.Import != nil || !vm.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	return v.check(ctx, vm)
}

// ownedByGroup reports whether a VmGroup created the VM. The status of the
// VmGroup reports a rejected name.
func ownedByGroup(vm *pcapi.VM) bool {
	owner := metav1.GetControllerOf(vm)
	return owner != nil && owner.Kind == "VmGroup" && owner.APIVersion == pcapi.GroupVersion.String()
}

func (v *validator) check(ctx context.Context, vm *pcapi.VM) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	name, err := "", errBusy
	if end, ok := v.reviews.begin(vm.Namespace); ok {
		name, err = v.checkName(ctx, vm)
		end()
	}
	result := outcomeOf(err)
	v.count(result)
	switch result {
	case allowed:
		return nil, nil
	case prohibited:
		invalid := field.Invalid(field.NewPath("spec", "vmname"), vm.Spec.VMName,
			fmt.Sprintf("rejected by Cloud %q: %s; choose another name", name, rejection(err)))
		return nil, apierrors.NewInvalid(pcapi.GroupVersion.WithKind("VM").GroupKind(), vm.Name, field.ErrorList{invalid})
	case taken:
		return []string{fmt.Sprintf("vmname %[1]q is not available in Cloud %[2]q: the name %[1]q is taken; the VM is created once the name is free",
			vm.Spec.VMName, name)}, nil
	default:
		log.FromContext(ctx).V(1).Info("name was not checked", "cloud", name, "vmname", vm.Spec.VMName, "reason", reasonFor(err))
		return []string{fmt.Sprintf("vmname %q was not checked: %s; the operator checks it before it creates the VM",
			vm.Spec.VMName, uncheckedReason(name, err))}, nil
	}
}

// checkName calls the VM's Cloud and returns the name of that Cloud, or "" if it
// is unknown.
func (v *validator) checkName(ctx context.Context, vm *pcapi.VM) (string, error) {
	name, c, err := v.awaitCloud(ctx, vm)
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
	return name, shared.CheckName(cloud.WithReviewFlow(ctx, vm.Namespace), cloud.Name{Name: vm.Spec.VMName, Folder: vm.Spec.Folder})
}

// awaitCloud returns the Cloud that the VM uses, with its name. If the cache does
// not have the VM's namespace yet, awaitCloud waits for it.
func (v *validator) awaitCloud(ctx context.Context, vm *pcapi.VM) (string, *pcapi.Cloud, error) {
	wait, cancel := context.WithTimeout(ctx, namespaceWait)
	defer cancel()
	look := time.NewTicker(namespaceInterval)
	defer look.Stop()
	for {
		name, c, err := v.openCloud(ctx, vm)
		if _, pending := errors.AsType[*tenancy.NamespacePendingError](err); !pending {
			return name, c, err
		}
		select {
		case <-look.C:
		case <-wait.Done():
			return name, nil, err
		}
	}
}

func (v *validator) openCloud(ctx context.Context, vm *pcapi.VM) (string, *pcapi.Cloud, error) {
	name, err := tenancy.CloudFor(ctx, v.reader, vm.Namespace, vm.Spec.CloudRef)
	if err != nil {
		return name, nil, err
	}
	c, err := tenancy.Open(ctx, v.reader, vm.Namespace, name)
	return name, c, err
}

var (
	errNotReady = errors.New("the Cloud is not ready")
	errBusy     = errors.New("too many names are being checked")
)

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

// uncheckedReason returns why a name was not checked, for a warning. It does not reveal whether
// a Cloud exists that the namespace may not use.
func uncheckedReason(name string, err error) string {
	if denied, ok := errors.AsType[*tenancy.AccessError](err); ok {
		return denied.Fact()
	}
	if pending, ok := errors.AsType[*tenancy.NamespacePendingError](err); ok {
		return fmt.Sprintf("the operator has not observed namespace %q yet", pending.Namespace)
	}
	switch {
	case errors.Is(err, errBusy):
		return "too many names are being checked at this time"
	case errors.Is(err, errNotReady):
		return fmt.Sprintf("Cloud %q is not ready", name)
	case cloud.KindOf(err) != "":
		return fmt.Sprintf("Cloud %q did not complete the check", name)
	}
	return "the operator could not call the cloud"
}

// reasonFor returns why a name was not checked, for the log.
func reasonFor(err error) string {
	if denied, ok := errors.AsType[*tenancy.AccessError](err); ok {
		return denied.Cause()
	}
	return err.Error()
}

// rejection returns why the cloud rejected a name, as far as users may read it.
func rejection(err error) string {
	text := cloud.PublicMessage(err)
	if rejected, ok := errors.AsType[*cloud.Error](err); ok && rejected.Detail != "" {
		return strings.TrimPrefix(text, rejected.Op+": ")
	}
	return text
}
