package tenancy

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// readerOf returns a reader of these objects and of the namespace team-a, which
// has the label team=a.
func readerOf(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a", Labels: map[string]string{"team": "a"}}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, namespace)...)
	if err := IndexByIdentity(t.Context(), indexer{builder}); err != nil {
		t.Fatalf("IndexByIdentity: %v", err)
	}
	return builder.Build()
}

func cloudWith(name string, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func allows(selector *metav1.LabelSelector) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = selector }
}

// invalidSelectors are accepted by the schema of a Cloud and are no selectors.
var invalidSelectors = map[string]*metav1.LabelSelector{
	"an unknown operator": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like", Values: []string{"a"}}}},
	"In without values":   {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpIn}}},
	"Exists with a value": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpExists, Values: []string{"a"}}}},
	"a key that is none":  {MatchLabels: map[string]string{"not a key": "a"}},
	"a value that is too long": {MatchLabels: map[string]string{
		"team": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	}},
}

func TestOpen(t *testing.T) {
	t.Parallel()
	teamA := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	type kind string
	const (
		opened, missing, denied, pending kind = "opened", "missing", "denied", "pending"
	)
	type test struct {
		clouds    []client.Object
		namespace string
		want      kind
	}
	tests := map[string]test{
		"a Cloud for all namespaces: opened":                         {[]client.Object{cloudWith("home")}, "team-a", opened},
		"a Cloud for all, a namespace that is not in the cache":      {[]client.Object{cloudWith("home")}, "new", opened},
		"the namespace has the label: opened":                        {[]client.Object{cloudWith("home", allows(teamA))}, "team-a", opened},
		"an empty selector selects all: opened":                      {[]client.Object{cloudWith("home", allows(&metav1.LabelSelector{}))}, "team-a", opened},
		"the namespace has another label: denied":                    {[]client.Object{cloudWith("home", allows(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}))}, "team-a", denied},
		"the namespace is not in the cache: pending":                 {[]client.Object{cloudWith("home", allows(teamA))}, "new", pending},
		"the Cloud does not exist: missing":                          {nil, "team-a", missing},
		"the Cloud does not exist, nor the namespace: still missing": {nil, "new", missing},
	}
	for name, selector := range invalidSelectors {
		tests["the selector has "+name+": denied"] = test{[]client.Object{cloudWith("home", allows(selector))}, "team-a", denied}
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := readerOf(t, tc.clouds...)
			c, err := Open(t.Context(), reader, tc.namespace, "home")
			got := opened
			if refused, is := errors.AsType[*AccessError](err); is {
				got = map[bool]kind{true: missing, false: denied}[refused.Missing]
			} else if _, is := errors.AsType[*NamespacePendingError](err); is {
				got = pending
			} else if err != nil || c == nil || c.Name != "home" {
				t.Fatalf("Cloud %v, %v", c, err)
			}
			if got != tc.want {
				t.Errorf("%s (%v), want %s", got, err, tc.want)
			}
			allowed, err := Allowed(t.Context(), reader, tc.namespace, "home")
			if _, is := errors.AsType[*NamespacePendingError](err); is != (tc.want == pending) || (err != nil && !is) {
				t.Errorf("Allowed failed with %v", err)
			}
			if allowed != (tc.want == opened) {
				t.Errorf("allowed: %t, and Open: %s", allowed, tc.want)
			}
		})
	}
}

func TestOpenRevealsNothingOfADeniedCloud(t *testing.T) {
	t.Parallel()
	for name, selector := range invalidSelectors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := cloudWith("home", allows(selector), func(c *pcapi.Cloud) {
				c.Spec.Endpoint = "https://cloud.internal"
				c.Spec.CredentialsSecretRef = &pcapi.SecretReference{Name: "login"}
			})
			_, err := Open(t.Context(), readerOf(t, secret), "team-a", "home")
			const want = `Cloud "home" does not exist, or namespace "team-a" may not use it: choose another in spec.cloudRef, or ask an administrator`
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestCloudFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		namespace string
		ref       *pcapi.CloudReference
		want      string
		pending   bool
	}{
		"a reference: that Cloud, whatever the namespace":             {"new", &pcapi.CloudReference{Name: "other"}, "other", false},
		"no reference, a namespace without the label: default":        {"team-a", nil, "default", false},
		"no reference, a namespace with the label: its Cloud":         {"team-b", nil, "blue", false},
		"no reference, a namespace that is not in the cache: pending": {"new", nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b", Labels: map[string]string{pcapi.DefaultCloudLabel: "blue"}}}
			got, err := CloudFor(t.Context(), readerOf(t, labelled), tc.namespace, tc.ref)
			if _, pending := errors.AsType[*NamespacePendingError](err); pending != tc.pending || (err != nil && !pending) {
				t.Errorf("%v, want pending: %t", err, tc.pending)
			}
			if err == nil && got != tc.want {
				t.Errorf("Cloud %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadErrorIsNeitherDenialNorAbsence(t *testing.T) {
	t.Parallel()
	broken := errors.New("the cache is closed")
	failing := func(kind string) client.Reader {
		restricted := cloudWith("home", allows(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}))
		return interceptor.NewClient(readerOf(t, restricted), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, is := o.(*pcapi.Cloud); is == (kind == "Cloud") {
					return broken
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
		})
	}
	for _, kind := range []string{"Cloud", "Namespace"} {
		if _, err := Open(t.Context(), failing(kind), "team-a", "home"); !errors.Is(err, broken) {
			t.Errorf("%s cannot be read: Open: %v, want %v", kind, err, broken)
		}
		if allowed, err := Allowed(t.Context(), failing(kind), "team-a", "home"); allowed || !errors.Is(err, broken) {
			t.Errorf("%s cannot be read: Allowed: %t, %v; want %v", kind, allowed, err, broken)
		}
	}
	if _, err := SameCloud(t.Context(), failing("Cloud"), "home"); !errors.Is(err, broken) {
		t.Errorf("SameCloud: %v, want %v", err, broken)
	}
}

func TestClosing(t *testing.T) {
	t.Parallel()
	if Closing(cloudWith("home")) {
		t.Error("a Cloud that nobody deleted is closing")
	}
	if !Closing(cloudWith("home", func(c *pcapi.Cloud) { c.DeletionTimestamp = new(metav1.Now()) })) {
		t.Error("a Cloud that is being deleted is not closing")
	}
}
