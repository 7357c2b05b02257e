package vm

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloudinit"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// secretOf returns the reference to the Secret with the user data; nil if there is none.
func secretOf(vm *pcapi.VM) *pcapi.SecretKeyReference {
	if vm.Spec.Bootstrap == nil {
		return nil
	}
	return vm.Spec.Bootstrap.CloudInit.UserDataSecretRef
}

// readUserData reads the Secret from the API server: a cache would hold the Secrets of
// all tenants. It reads nothing of a Secret without the label: whoever may create VMs
// may not be allowed to read each Secret of the namespace, which can be the operator's.
func (k *kind) readUserData(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	ref := secretOf(vm)
	var secret corev1.Secret
	err := k.Live.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: ref.Name}, &secret)
	unavailable := func(format string, args ...any) error {
		return reconciler.Wait(k.Backoff.When(vm.UID), pcapi.UserDataUnavailableReason, "Secret %q with the user data %s", ref.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case apierrors.IsNotFound(err):
		return unavailable("does not exist in this namespace: create it with the key %s and the label %s=true", ref.Key, pcapi.UserDataLabel)
	case apierrors.IsForbidden(err):
		return unavailable("cannot be read by the operator: allow its service account to get it, by a Role and a RoleBinding in this namespace")
	case err != nil:
		return fmt.Errorf("read Secret %q: %w", ref.Name, err)
	case secret.Labels[pcapi.UserDataLabel] != "true":
		return unavailable("lacks the label %s=true, which allows that VMs use it: add the label", pcapi.UserDataLabel)
	case len(secret.Data[ref.Key]) == 0:
		return unavailable("has nothing under the key %s: add it, or set spec.bootstrap.cloudInit.userDataSecretRef.key", ref.Key)
	}
	obs.userData = secret.Data[ref.Key]
	return nil
}

// observeQuotes removes from the reason why the operation of a create failed what it quotes
// of the user data. This process may not have sent the create, so the Secret is read again.
// If that fails, nothing says what is a quote, and the reason is left out.
func (o *observer) observeQuotes(ctx context.Context, vm *pcapi.VM, obs *observation) {
	ref := secretOf(vm)
	if obs.Fault == nil || obs.FaultOf != external.OperationCreate || ref == nil {
		return
	}
	fault := *obs.Fault
	var secret corev1.Secret
	err := o.Live.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: ref.Name}, &secret)
	if data := secret.Data[ref.Key]; err == nil && secret.Labels[pcapi.UserDataLabel] == "true" && len(data) > 0 {
		obs.Fault = quoteless(fault, cloudinit.Compose(data, vm.Spec.Bootstrap.CloudInit.SSHAuthorizedKeys), data)
		return
	}
	fault.Detail, fault.Err = "the cloud gives a reason, which may quote the user data: look in the cloud", nil
	obs.Fault = &fault
}

// withoutUserData returns the error of a create without what it quotes of the user data:
// as it was sent, and as the Secret has it.
func withoutUserData(err error, sent, secret cloud.UserData) error {
	e, ok := errors.AsType[*cloud.Error](err)
	if !ok || len(sent) == 0 {
		return err
	}
	return quoteless(*e, sent, secret)
}

func quoteless(e cloud.Error, data ...[]byte) *cloud.Error {
	if e.Detail == "" && e.Err != nil {
		e.Detail = e.Err.Error()
	}
	e.Detail = cloudinit.WithoutQuotes(e.Detail, data...)
	return &e
}
