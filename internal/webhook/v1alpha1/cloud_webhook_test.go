package v1alpha1

import (
	"os"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestCloudsMustSayWhichNamespacesMayUseThem(t *testing.T) {
	for name, tc := range map[string]struct {
		// old is nil for a create.
		old, c  *pcapi.Cloud
		refused bool
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
	} {
		t.Run(name, func(t *testing.T) {
			var warnings []string
			var err error
			if tc.old == nil {
				warnings, err = cloudValidator{}.ValidateCreate(t.Context(), tc.c)
			} else {
				warnings, err = cloudValidator{}.ValidateUpdate(t.Context(), tc.old, tc.c)
			}
			expect(t, "warnings", []string(nil), warnings)
			if !tc.refused {
				expect(t, "error", nil, err)
				return
			}
			expect(t, "message", allowedNamespacesRequired, text(err))
			if !apierrors.IsInvalid(err) {
				t.Errorf("%v is not an Invalid error, which the policy returns", err)
			}
		})
	}
	if warnings, err := (cloudValidator{}).ValidateDelete(t.Context(), aCloud("c")); warnings != nil || err != nil {
		t.Errorf("a deletion: %v, %v; want it allowed", warnings, err)
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
