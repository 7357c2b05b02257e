package v1alpha1

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// CloudPath is the path of the allowedNamespaces webhook. It has no marker: only
// config/manifests registers it, for the bundle, which cannot have the policy of
// config/components/allowed-namespaces.
const CloudPath = "/validate-samplecontroller-k8s-io-v1alpha1-cloud"

// allowedNamespacesRequired is the message of that policy, too.
const allowedNamespacesRequired = "spec.allowedNamespaces is required: without it, all namespaces could use the Cloud. " +
	"Select namespaces by their labels, or set it to {} for all namespaces"

// SetupCloudWebhookWithManager registers the allowedNamespaces webhook with the Manager.
func SetupCloudWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &pcapi.Cloud{}).
		WithValidator(cloudValidator{}).
		WithValidatorCustomPath(CloudPath).
		Complete()
}

// cloudValidator refuses Clouds that do not say which namespaces may use them. It reads
// nothing but the review, since a review that fails refuses the write.
type cloudValidator struct{}

var _ admission.Validator[*pcapi.Cloud] = cloudValidator{}

// ValidateCreate refuses a Cloud without allowedNamespaces.
func (cloudValidator) ValidateCreate(_ context.Context, c *pcapi.Cloud) (admission.Warnings, error) {
	return nil, requireAllowedNamespaces(c)
}

// ValidateUpdate refuses to remove allowedNamespaces. A Cloud that has none already can
// still be changed.
func (cloudValidator) ValidateUpdate(_ context.Context, old, c *pcapi.Cloud) (admission.Warnings, error) {
	if old.Spec.AllowedNamespaces == nil {
		return nil, nil
	}
	return nil, requireAllowedNamespaces(c)
}

// ValidateDelete allows every deletion. The webhook is not registered for deletions.
func (cloudValidator) ValidateDelete(context.Context, *pcapi.Cloud) (admission.Warnings, error) {
	return nil, nil
}

func requireAllowedNamespaces(c *pcapi.Cloud) error {
	if c.Spec.AllowedNamespaces != nil {
		return nil
	}
	// NewInvalid would put more around the message than the policy does.
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: allowedNamespacesRequired,
	}}
}
