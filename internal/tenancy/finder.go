package tenancy

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// CloudIndex is the cache index that finds objects by the name of their Cloud.
const CloudIndex = "cloud"

// unresolved is the key of objects that name no Cloud and use none yet.
const unresolved = ""

// CloudKeys returns the keys of an object in CloudIndex: the Cloud that its spec
// names, and the one that it uses already, which is empty for none.
func CloudKeys(ref *v1alpha1.CloudReference, recorded string) []string {
	wanted := unresolved
	if ref != nil {
		wanted = ref.Name
	}
	if recorded == "" {
		return []string{wanted}
	}
	return slices.Compact([]string{wanted, recorded})
}

// IndexByCloud adds CloudIndex for a kind.
func IndexByCloud(ctx context.Context, indexer client.FieldIndexer, obj client.Object, keys func(client.Object) []string) error {
	return indexer.IndexField(ctx, obj, CloudIndex, keys)
}

// Finder finds the objects of one kind in the cache.
type Finder struct {
	reader client.Reader
	list   client.ObjectList
}

// NewFinder returns a Finder of the kind that list is of.
func NewFinder(reader client.Reader, list client.ObjectList) Finder {
	return Finder{reader: reader, list: list}
}

// ByNamespace returns requests for all objects of a namespace.
func (f Finder) ByNamespace(ctx context.Context, name string) []reconcile.Request {
	return f.Matching(ctx, client.InNamespace(name))
}

// ByCloud returns requests for the objects that use a Cloud or name it, and for
// those whose Cloud is not resolved yet.
func (f Finder) ByCloud(ctx context.Context, name string) []reconcile.Request {
	return slices.Concat(f.Matching(ctx, client.MatchingFields{CloudIndex: name}), f.Matching(ctx, client.MatchingFields{CloudIndex: unresolved}))
}

// Matching returns requests for the objects that match, or nil if the cache cannot be read.
func (f Finder) Matching(ctx context.Context, match ...client.ListOption) []reconcile.Request {
	list := f.list.DeepCopyObject().(client.ObjectList)
	if err := f.reader.List(ctx, list, append(match, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "cannot list the objects to enqueue", "match", match)
		return nil
	}
	requests := make([]reconcile.Request, 0, meta.LenList(list))
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o.(client.Object))})
		return nil
	})
	return requests
}
