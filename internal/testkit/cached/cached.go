// Package cached is the harness of benchmarks whose cost may depend on the number of
// objects: a client that reads from the cache of a manager, without an API server.
package cached

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Sizes runs a benchmark beside 1,000, 10,000 and 50,000 objects.
func Sizes(b *testing.B, bench func(b *testing.B, n int)) {
	for _, n := range []int{1_000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			bench(b, n)
		})
	}
}

// Client returns a client that reads from the cache of a manager, without an API
// server: the cache holds these objects. Every request that is not a read from it fails.
// index adds the indexes of the cache.
func Client(tb testing.TB, index func(context.Context, client.FieldIndexer) error, objects ...client.Object) client.Client {
	tb.Helper()
	scheme := runtime.NewScheme()
	must(tb, "make the scheme", errors.Join(clientgoscheme.AddToScheme(scheme), pcapi.AddToScheme(scheme)))
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, t := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if reflect.PointerTo(t) == reflect.TypeFor[*pcapi.Cloud]() || kind.Kind == "Node" || kind.Kind == "Namespace" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	nowhere := &rest.Config{Host: "127.0.0.1:0"}
	kept, err := cache.New(nowhere, cache.Options{
		Scheme: scheme, Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return toolscache.NewSharedIndexInformer(listerOf(example, objects), example, resync, indexers)
		},
	})
	must(tb, "make the cache", err)
	must(tb, "add the indexes", index(tb.Context(), kept))
	for _, o := range objects {
		_, err := kept.GetInformer(tb.Context(), o, cache.BlockUntilSynced(false))
		must(tb, "make an informer", err)
	}
	go func() { _ = kept.Start(tb.Context()) }()
	if !kept.WaitForCacheSync(tb.Context()) {
		tb.Fatal("the cache was not filled")
	}
	c, err := client.New(nowhere, client.Options{Scheme: scheme, Mapper: mapper, Cache: &client.CacheOptions{Reader: kept}})
	must(tb, "make the client", err)
	return c
}

// listerOf lists the objects that have the type of example, which never change.
func listerOf(example runtime.Object, objects []client.Object) toolscache.ListerWatcher {
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for _, o := range objects {
				if reflect.TypeOf(o) == reflect.TypeOf(example) {
					list.Items = append(list.Items, runtime.RawExtension{Object: o})
				}
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, unsupported{})
}

// unsupported is a client that does not support listing by a watch.
type unsupported struct{}

func (unsupported) IsWatchListSemanticsUnSupported() bool { return true }

func must(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}
