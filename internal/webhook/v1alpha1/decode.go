package v1alpha1

import (
	"bytes"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	casesensitive "k8s.io/apimachinery/pkg/util/json"
)

// request is what the webhooks read of an AdmissionReview. It is decoded by parts, and only
// as far as it decides: objects take many times the memory of their JSON, and anybody who
// reaches the port can send reviews.
type request struct {
	uid         types.UID
	operation   admissionv1.Operation
	object, old view
}

// decodeReview returns the request of an AdmissionReview of version v1.
func decodeReview(body []byte) (request, error) {
	var review struct {
		APIVersion view `json:"apiVersion"`
		Request    view `json:"request"`
	}
	var members struct {
		UID       view `json:"uid"`
		Operation view `json:"operation"`
		Object    view `json:"object"`
		OldObject view `json:"oldObject"`
	}
	if err := view(body).decode(&review); err != nil {
		return request{}, errNoReview
	}
	if err := review.Request.decode(&members); err != nil {
		return request{}, errNoReview
	}
	r := request{
		uid: types.UID(members.UID.text()), operation: admissionv1.Operation(members.Operation.text()),
		object: members.Object, old: members.OldObject,
	}
	if r.uid == "" || r.operation == "" || review.APIVersion.text() != admissionv1.SchemeGroupVersion.String() {
		return request{}, errNoReview
	}
	return r, nil
}

// answer returns the AdmissionReview with the response to the request.
func (r request) answer(response admissionv1.AdmissionResponse) *admissionv1.AdmissionReview {
	response.UID = r.uid
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: &response,
	}
}

// view is a JSON value as it is in the body, which is not copied.
type view []byte

var (
	errNoObject = errors.New("the value is not an object")
	errLong     = errors.New("the value is too long")
)

// UnmarshalJSON implements json.Unmarshaler.
func (v *view) UnmarshalJSON(value []byte) error {
	*v = value
	return nil
}

// absent reports whether there is no value, or null.
func (v view) absent() bool { return v == nil || string(v) == "null" }

// decode decodes the members of an object into a struct of views. If the value is
// absent, it changes nothing.
func (v view) decode(members any) error {
	if v.absent() {
		return nil
	}
	if begin := bytes.TrimLeft(v, " \t\r\n"); len(begin) == 0 || begin[0] != '{' {
		return errNoObject
	}
	return casesensitive.Unmarshal(v, members)
}

// text returns a string that an API server makes, such as a UID, or "" if the value is not one.
func (v view) text() string {
	const longest = 128
	if len(v) < 2 || len(v) > longest || v[0] != '"' || bytes.ContainsRune(v, '\\') {
		return ""
	}
	return string(v[1 : len(v)-1])
}

// scalar decodes a string, boolean or time into a variable. It changes nothing if the value
// is absent.
func (v view) scalar(into any) error {
	const longest = 4096 // a folder of 253 characters, each of them escaped, is shorter
	if v.absent() {
		return nil
	}
	if len(v) > longest {
		return errLong
	}
	return casesensitive.Unmarshal(v, into)
}
