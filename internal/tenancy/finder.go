package tenancy

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// CloudIndex is the cache index of objects by the names of their Clouds.
const CloudIndex = "cloud"

// unresolved is the key in CloudIndex of an object that names no Cloud: the
// labels of its namespace decide which one it uses.
const unresolved = ""

// CloudKeys returns the keys of an object in CloudIndex: the name of the Cloud
// that ref refers to, or "" without ref, and the name of the Cloud that the
// object is recorded to be on, unless recorded is empty or the same.
func CloudKeys(ref *pcapi.CloudReference, recorded string) []string {
	wanted := unresolved
	if ref != nil {
		wanted = ref.Name
	}
	if recorded == "" {
		return []string{wanted}
	}
	return slices.Compact([]string{wanted, recorded})
}

// IndexByCloud registers CloudIndex for the kind of obj. keys returns the keys
// of an object; see CloudKeys.
func IndexByCloud(ctx context.Context, indexer client.FieldIndexer, obj client.Object, keys func(client.Object) []string) error {
	if err := indexer.IndexField(ctx, obj, CloudIndex, keys); err != nil {
		return fmt.Errorf("index %T by Cloud: %w", obj, err)
	}
	return nil
}

// Finder finds the objects of one kind in the cache. Its methods return
// requests for them. If the list fails, they log the error and return nil.
type Finder struct {
	reader client.Reader
	list   client.ObjectList
}

// NewFinder returns a Finder that reads the kind of list from reader.
func NewFinder(reader client.Reader, list client.ObjectList) Finder {
	return Finder{reader: reader, list: list}
}

// ByNamespace returns requests for the objects in a namespace.
func (f Finder) ByNamespace(ctx context.Context, name string) []reconcile.Request {
	return f.Matching(ctx, client.InNamespace(name))
}

// ByCloud returns requests for the objects with the key name in CloudIndex, and
// for those with the key "", which may use the Cloud, too.
func (f Finder) ByCloud(ctx context.Context, name string) []reconcile.Request {
	return slices.Concat(
		f.Matching(ctx, client.MatchingFields{CloudIndex: name}),
		f.Matching(ctx, client.MatchingFields{CloudIndex: unresolved}),
	)
}

// Matching returns requests for the objects that match all options.
func (f Finder) Matching(ctx context.Context, match ...client.ListOption) []reconcile.Request {
	return f.Accepted(ctx, func(client.Object) bool { return true }, match...)
}

// Accepted returns requests for the objects that match all options and that
// accept returns true for. The objects are shared with the cache and must not be
// changed.
func (f Finder) Accepted(ctx context.Context, accept func(client.Object) bool, match ...client.ListOption) []reconcile.Request {
	list := f.list.DeepCopyObject().(client.ObjectList)
	var requests []reconcile.Request
	err := f.reader.List(ctx, list, append(slices.Clone(match), client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			if o := item.(client.Object); accept(o) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			}
			return nil
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "list the objects to enqueue", "list", fmt.Sprintf("%T", list))
		return nil
	}
	return requests
}
