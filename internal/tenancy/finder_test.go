package tenancy

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestCloudKeys(t *testing.T) {
	home := &pcapi.CloudReference{Name: "home"}
	for name, test := range map[string]struct {
		ref      *pcapi.CloudReference
		recorded string
		want     []string
	}{
		"no reference, nothing recorded: not resolved":               {nil, "", []string{""}},
		"a reference, nothing recorded: the reference":               {home, "", []string{"home"}},
		"no reference, recorded: not resolved, and the recorded one": {nil, "away", []string{"", "away"}},
		"recorded on the same Cloud: once":                           {home, "home", []string{"home"}},
		"recorded on another Cloud: both":                            {home, "away", []string{"home", "away"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, CloudKeys(test.ref, test.recorded)); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
		})
	}
}

// indexer registers indexes with a builder of fake clients.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, keys client.IndexerFunc) error {
	if field != CloudIndex && field != identityIndex {
		return errors.New("another index")
	}
	i.WithIndex(obj, field, keys)
	return nil
}

func groups(t *testing.T) *fake.ClientBuilder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	err := IndexByCloud(t.Context(), indexer{b}, &pcapi.VmGroup{}, func(o client.Object) []string {
		return CloudKeys(o.(*pcapi.VmGroup).Spec.CloudRef, "")
	})
	if err != nil {
		t.Fatalf("IndexByCloud: %v", err)
	}
	for _, g := range []struct{ namespace, name, cloud string }{{"a", "home", "home"}, {"a", "away", "away"}, {"a", "default", ""}, {"b", "home", "home"}} {
		group := &pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: g.name, Labels: map[string]string{"cloud": g.cloud}}}
		if g.cloud != "" {
			group.Spec.CloudRef = &pcapi.CloudReference{Name: g.cloud}
		}
		b.WithObjects(group)
	}
	return b
}

func TestFinderFinds(t *testing.T) {
	f := NewFinder(groups(t).Build(), &pcapi.VmGroupList{})
	for name, test := range map[string]struct {
		got  []reconcile.Request
		want []string
	}{
		"by namespace: its objects":                              {f.ByNamespace(t.Context(), "a"), []string{"a/away", "a/default", "a/home"}},
		"by namespace: none in another":                          {f.ByNamespace(t.Context(), "c"), nil},
		"by Cloud: those that name it, and those that name none": {f.ByCloud(t.Context(), "home"), []string{"a/default", "a/home", "b/home"}},
		"by Cloud: a Cloud that none names":                      {f.ByCloud(t.Context(), "other"), []string{"a/default"}},
		"without options: all":                                   {f.Matching(t.Context()), []string{"a/away", "a/default", "a/home", "b/home"}},
		"with two options: those that match both":                {f.Matching(t.Context(), client.InNamespace("b"), client.MatchingLabels{"cloud": "home"}), []string{"b/home"}},
		"accepted: those that match and are accepted": {
			f.Accepted(t.Context(), func(o client.Object) bool { return o.GetName() != "away" }, client.InNamespace("a")), []string{"a/default", "a/home"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, request := range test.got {
				got = append(got, request.String())
			}
			if diff := cmp.Diff(test.want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFinderReadsWithoutCopies(t *testing.T) {
	var asked client.ListOptions
	c := groups(t).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			asked.ApplyOptions(opts)
			return c.List(ctx, list, opts...)
		},
	}).Build()
	if got := NewFinder(c, &pcapi.VmGroupList{}).ByNamespace(t.Context(), "a"); len(got) != 3 {
		t.Errorf("got %v, want three requests", got)
	}
	if asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy {
		t.Error("the cache copies each object that is listed")
	}
}

func TestFinderReturnsNothingIfTheListFails(t *testing.T) {
	c := groups(t).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the cache is closed")
		},
	}).Build()
	f := NewFinder(c, &pcapi.VmGroupList{})
	for name, got := range map[string][]reconcile.Request{
		"ByNamespace": f.ByNamespace(t.Context(), "a"), "ByCloud": f.ByCloud(t.Context(), "home"), "Matching": f.Matching(t.Context()),
	} {
		t.Run(name, func(t *testing.T) {
			if got != nil {
				t.Errorf("got %v, want nil", got)
			}
		})
	}
}
