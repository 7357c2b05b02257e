package v1alpha1

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// review returns the AdmissionReview that an API server sends for a change from old to an
// object. A nil one is absent, as in a create.
func review[T any](t *testing.T, operation admissionv1.Operation, old, object *T) []byte {
	t.Helper()
	request := admissionv1.AdmissionRequest{UID: "705ab4f5", Operation: operation}
	for _, side := range []struct {
		object *T
		raw    *runtime.RawExtension
	}{{old, &request.OldObject}, {object, &request.Object}} {
		if side.object != nil {
			side.raw.Raw = encode(t, side.object)
		}
	}
	return encode(t, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request,
	})
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCloudsMustSayWhichNamespacesMayUseThem(t *testing.T) {
	for name, tc := range map[string]struct {
		operation admissionv1.Operation
		old, c    *pcapi.Cloud
		refused   bool
	}{
		"create without: refused":                     {c: aCloud("c"), refused: true},
		"create for all namespaces: allowed":          {c: aCloud("c", allows())},
		"create for some: allowed":                    {c: aCloud("c", allows("platform"))},
		"removed: refused":                            {old: aCloud("c", allows("platform")), c: aCloud("c"), refused: true},
		"removed where it selected all: refused":      {old: aCloud("c", allows()), c: aCloud("c"), refused: true},
		"changed to all: allowed":                     {old: aCloud("c", allows("platform")), c: aCloud("c", allows())},
		"added: allowed":                              {old: aCloud("c"), c: aCloud("c", allows())},
		"edit of one that had none: allowed":          {old: aCloud("c"), c: aCloud("c", stepped)},
		"edit of one that keeps it: allowed":          {old: aCloud("c", allows()), c: aCloud("c", allows(), stepped)},
		"finalizer of one that had none: allowed":     {old: aCloud("c", claimed), c: aCloud("c")},
		"finalizer of one that keeps it: allowed":     {old: aCloud("c", claimed, allows()), c: aCloud("c", allows())},
		"a selector that cannot be read: not refused": {c: aCloud("c", func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = unreadable() })},
		"a deletion: allowed":                         {operation: admissionv1.Delete, old: aCloud("c", allows())},
	} {
		t.Run(name, func(t *testing.T) {
			operation := tc.operation
			if operation == "" && tc.old == nil {
				operation = admissionv1.Create
			} else if operation == "" {
				operation = admissionv1.Update
			}
			want := &admissionv1.AdmissionReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
				Response: &admissionv1.AdmissionResponse{UID: "705ab4f5", Allowed: !tc.refused},
			}
			if tc.refused {
				// As the policy: an Invalid error.
				want.Response.Result = &metav1.Status{Status: "Failure", Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: allowedNamespacesRequired}
			}
			got, err := judgeCloud(t.Context(), review(t, operation, tc.old, tc.c))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "answer", want, got)
		})
	}
}

// TestCloudIsJudgedByOneField has Clouds that do not match the type Cloud, as those of a newer CRD
// may not.
func TestCloudIsJudgedByOneField(t *testing.T) {
	const create = `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","object":%s}}`
	for object, allowed := range map[string]bool{
		`{"spec":{"allowedNamespaces":{},"pollInterval":7,"limits":[]},"status":"none"}`:  true,
		`{"metadata":7,"spec":{"allowedNamespaces":[true]}}`:                              true,
		`{"spec":{"allowedNamespaces":null}}`:                                             false,
		`{"spec":{"allowednamespaces":{},"AllowedNamespaces":{}},"allowedNamespaces":{}}`: false,
		`{"Spec":{"allowedNamespaces":{}}}`:                                               false,
		`{"spec":null}`:                                                                   false,
		`null`:                                                                            false,
	} {
		got, err := judgeCloud(t.Context(), fmt.Appendf(nil, create, object))
		if err != nil || got.Response.Allowed != allowed {
			t.Errorf("%s: answer %v, want allowed: %t", object, got, allowed)
		}
	}
}

func TestBodyThatIsNotAReviewOfACloudIsNotAnswered(t *testing.T) {
	for name, body := range map[string]string{
		"empty":                    ``,
		"YAML":                     "apiVersion: admission.k8s.io/v1\nrequest: {uid: '1', operation: CREATE}",
		"cut off":                  `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","object":{"spec":{"allowedNamespaces":{}}`,
		"two":                      `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1"}}{}`,
		"another version":          `{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"1","operation":"CREATE"}}`,
		"no version":               `{"request":{"uid":"1","operation":"CREATE"}}`,
		"no request":               `{"apiVersion":"admission.k8s.io/v1"}`,
		"no operation":             `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1","object":{}}}`,
		"no UID":                   `{"apiVersion":"admission.k8s.io/v1","request":{"operation":"CREATE"}}`,
		"a UID that is long":       `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"` + strings.Repeat("1", 200) + `","operation":"CREATE"}}`,
		"a UID that is a number":   `{"apiVersion":"admission.k8s.io/v1","request":{"uid":1,"operation":"CREATE"}}`,
		"an object that is a list": `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","object":[]}}`,
	} {
		if answer, err := judgeCloud(t.Context(), []byte(body)); err == nil {
			t.Errorf("%s: answered with %v", name, answer.Response)
		}
	}
}

func TestPolicyAndWebhookHaveTheSameMessage(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "..", "config", "components", "allowed-namespaces", "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	if err := yaml.NewYAMLOrJSONDecoder(file, 4096).Decode(&policy); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, validation := range policy.Spec.Validations {
		got = append(got, validation.Message)
	}
	expect(t, "messages of "+file.Name(), []string{allowedNamespacesRequired}, got)
}

// allows makes a Cloud select the namespaces of a team, or all without one.
func allows(team ...string) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{}
		for _, value := range team {
			c.Spec.AllowedNamespaces.MatchLabels = map[string]string{"team": value}
		}
	}
}

func unreadable() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Unknown"}}}
}

func stepped(c *pcapi.Cloud) { c.Spec.UtilizationStep = 7 }

func claimed(c *pcapi.Cloud) { c.Finalizers = []string{pcapi.CloudFinalizer} }
