package v1alpha1

import (
	"bytes"
	"errors"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	casesensitive "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
)

// CloudPath is the path of the allowedNamespaces webhook. It has no marker: only
// config/manifests registers it, for the bundle, which cannot have the policy of
// config/components/allowed-namespaces.
const CloudPath = "/validate-samplecontroller-k8s-io-v1alpha1-cloud"

// allowedNamespacesRequired is the message of that policy, too.
const allowedNamespacesRequired = "spec.allowedNamespaces is required: without it, all namespaces could use the Cloud. " +
	"Select namespaces by their labels, or set it to {} for all namespaces"

// SetupCloudWebhookWithManager registers the allowedNamespaces webhook with the Manager.
func SetupCloudWebhookWithManager(mgr ctrl.Manager) {
	mgr.GetWebhookServer().Register(CloudPath, newCloudHandler(cloudTimeout))
}

// judgeCloud answers the AdmissionReview in a body. It returns false if the body is none of
// version v1. It decodes only what decides, and skips the rest: objects take many times the
// memory of their JSON, and anybody who reaches the port can send reviews. A Cloud that
// cannot be decoded is judged by the same field, as the policy does.
func judgeCloud(body []byte) (*admissionv1.AdmissionReview, bool) {
	var review struct {
		APIVersion view `json:"apiVersion"`
		Request    view `json:"request"`
	}
	var request struct {
		UID       view `json:"uid"`
		Operation view `json:"operation"`
		Object    view `json:"object"`
		OldObject view `json:"oldObject"`
	}
	if err := view(body).decode(&review); err != nil {
		return nil, false
	}
	if err := review.Request.decode(&request); err != nil {
		return nil, false
	}
	has, err := hasAllowedNamespaces(request.Object)
	had, oldErr := hasAllowedNamespaces(request.OldObject)
	uid, operation := request.UID.text(), request.Operation.text()
	if err != nil || oldErr != nil || uid == "" || operation == "" || review.APIVersion.text() != admissionv1.SchemeGroupVersion.String() {
		return nil, false
	}
	response := &admissionv1.AdmissionResponse{UID: types.UID(uid), Allowed: true}
	switch admissionv1.Operation(operation) {
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
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: response,
	}, true
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

// view is a JSON value as it is in the body, which is not copied.
type view []byte

var errNoObject = errors.New("the value is not an object")

// UnmarshalJSON implements json.Unmarshaler.
func (v *view) UnmarshalJSON(value []byte) error {
	*v = value
	return nil
}

// absent reports whether there is no value, or null.
func (v view) absent() bool { return v == nil || string(v) == "null" }

// decode decodes the members of an object into a struct of views. It leaves alone what has
// none because it is absent.
func (v view) decode(members any) error {
	if v.absent() {
		return nil
	}
	if begin := bytes.TrimLeft(v, " \t\r\n"); len(begin) == 0 || begin[0] != '{' {
		return errNoObject
	}
	return casesensitive.Unmarshal(v, members)
}

// text returns a string that an API server makes, such as a UID, or "" if the value is none.
func (v view) text() string {
	const longest = 128
	if len(v) < 2 || len(v) > longest || v[0] != '"' || bytes.ContainsRune(v, '\\') {
		return ""
	}
	return string(v[1 : len(v)-1])
}
