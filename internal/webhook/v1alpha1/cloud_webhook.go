package v1alpha1

import (
	"context"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// cloudPath is the path of the allowedNamespaces webhook. It has no marker: only
// config/manifests registers it, for the bundle, which cannot have the policy of
// config/components/allowed-namespaces.
const cloudPath = "/validate-samplecontroller-k8s-io-v1alpha1-cloud"

// allowedNamespacesRequired is the message of that policy, too.
const allowedNamespacesRequired = "spec.allowedNamespaces is required: without it, all namespaces could use the Cloud. " +
	"Select namespaces by their labels, or set it to {} for all namespaces"

const (
	// largeReviews is how many reviews of Clouds are larger than smallReview at most. So
	// all take at most 48 MiB.
	largeReviews = 8
	// largestReview is larger than the review of each Cloud that etcd can store, of up to
	// 1.5 MiB, which an update has twice: a Cloud whose review is larger could not be changed.
	largestReview = 4 << 20
)

// SetupCloudWebhookWithManager registers the allowedNamespaces webhook with the Manager.
func SetupCloudWebhookWithManager(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register(cloudPath, newCloudHandler(reviewTimeout))
}

func newCloudHandler(timeout time.Duration) *handler {
	return newHandler(limits{requests: mostReviews, large: largeReviews, largest: largestReview, timeout: timeout, retried: true}, judgeCloud)
}

// judgeCloud answers a review of a Cloud by one field, as the policy does, also if the type Cloud does
// not have its other fields.
func judgeCloud(_ context.Context, body []byte) (*admissionv1.AdmissionReview, error) {
	r, err := decodeReview(body)
	if err != nil {
		return nil, err
	}
	has, err := hasAllowedNamespaces(r.object)
	had, oldErr := hasAllowedNamespaces(r.old)
	if err != nil || oldErr != nil {
		return nil, errUnreadable
	}
	response := admissionv1.AdmissionResponse{Allowed: true}
	switch r.operation {
	case admissionv1.Create:
		response.Allowed = has
	case admissionv1.Update: // a Cloud that has none already can still be changed
		response.Allowed = has || !had
	case admissionv1.Delete, admissionv1.Connect: // the webhook is not registered for them
	}
	if !response.Allowed {
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: allowedNamespacesRequired,
		}
	}
	return r.answer(response), nil
}

// hasAllowedNamespaces reports whether a Cloud has the field. An absent Cloud has not.
func hasAllowedNamespaces(cloud view) (bool, error) {
	var object struct {
		Spec view `json:"spec"`
	}
	var spec struct {
		AllowedNamespaces view `json:"allowedNamespaces"`
	}
	if err := cloud.decode(&object); err != nil {
		return false, err
	}
	err := object.Spec.decode(&spec)
	return !spec.AllowedNamespaces.absent(), err
}
