package simulation

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectCache is the cache of one process. It shows each kind as it was at some entry of the log
// of the API server, and moves on when the scheduler delivers the next one.
type objectCache struct {
	cache.Cache

	api *apiServer
	// transforms are what the manager makes of objects before they are cached.
	transforms map[schema.GroupVersionKind]toolscache.TransformFunc

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*informer
}

// informer is the cache of one kind.
type informer struct {
	cache    *objectCache
	gvk      schema.GroupVersionKind
	objects  map[client.ObjectKey]client.Object
	indexers map[string]client.IndexerFunc
	handlers []toolscache.ResourceEventHandler
	// next is the place in the log of the entry that is delivered next, and version the resource
	// version of the last one.
	next, version int
}

// newObjectCache returns a cache of the objects as they are.
func newObjectCache(api *apiServer, transforms map[schema.GroupVersionKind]toolscache.TransformFunc) *objectCache {
	c := &objectCache{api: api, transforms: transforms, kinds: map[schema.GroupVersionKind]*informer{}}
	for _, gvk := range kinds {
		i := &informer{cache: c, gvk: gvk, objects: map[client.ObjectKey]client.Object{}, indexers: map[string]client.IndexerFunc{}}
		for _, o := range api.all(gvk) {
			i.objects[client.ObjectKeyFromObject(o)] = i.transformed(o)
		}
		i.next, i.version = len(api.log[gvk]), api.version
		c.kinds[gvk] = i
	}
	return c
}

func (i *informer) transformed(o client.Object) client.Object {
	transform := i.cache.transforms[i.gvk]
	if transform == nil || o == nil {
		return o
	}
	made, err := transform(o.DeepCopyObject())
	if err != nil {
		panic(err)
	}
	return made.(client.Object)
}

// behind returns the kinds of which changes are left to deliver.
func (c *objectCache) behind() []schema.GroupVersionKind {
	return slices.DeleteFunc(slices.Clone(kinds), func(gvk schema.GroupVersionKind) bool {
		return c.kinds[gvk].next == len(c.api.log[gvk])
	})
}

// deliver shows the next change of a kind, and calls the handlers.
func (c *objectCache) deliver(gvk schema.GroupVersionKind) {
	c.mu.Lock()
	i := c.kinds[gvk]
	entry := c.api.log[gvk][i.next]
	i.next, i.version = i.next+1, entry.version
	before, after := i.transformed(entry.before), i.transformed(entry.after)
	if after == nil {
		delete(i.objects, client.ObjectKeyFromObject(before))
	} else {
		key := client.ObjectKeyFromObject(after)
		if cached := i.objects[key]; cached != nil {
			before = cached
		}
		i.objects[key] = after
	}
	handlers := slices.Clone(i.handlers)
	c.mu.Unlock()
	for _, h := range handlers {
		switch {
		case after == nil:
			h.OnDelete(i.shown(before))
		case before == nil:
			h.OnAdd(i.shown(after), false)
		default:
			h.OnUpdate(i.shown(before), i.shown(after))
		}
	}
}

// shown returns what handlers get of an object.
func (i *informer) shown(o client.Object) any {
	if i.gvk != namespaceKind {
		return o
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(i.gvk)
	copyInto(o, partial)
	return partial
}

// shows reports whether the cache shows a resource version of a kind.
func (c *objectCache) shows(gvk schema.GroupVersionKind, version int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.kinds[gvk]
	return i.version >= version || i.next == len(c.api.log[gvk])
}

func (c *objectCache) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	gvk := c.api.kindOf(obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := c.kinds[gvk].objects[key]
	if stored == nil {
		return apierrors.NewNotFound(resourceOf(gvk), key.Name)
	}
	copyInto(stored, obj)
	return nil
}

func (c *objectCache) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk := listed(c.api, list)
	c.mu.Lock()
	defer c.mu.Unlock()
	i := c.kinds[gvk]
	return selectInto(list, sorted(i.objects), i.indexers, opts)
}

// listed returns the kind of the items of a list.
func listed(api *apiServer, list client.ObjectList) schema.GroupVersionKind {
	gvk := api.kindOf(list)
	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]
	return gvk
}

// selectInto sets the items of a list to those objects that the options select.
func selectInto(list client.ObjectList, all []client.Object, indexers map[string]client.IndexerFunc, opts []client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	var items []runtime.Object
	for _, o := range all {
		if options.Namespace != "" && o.GetNamespace() != options.Namespace || !selects(options, indexers, o) {
			continue
		}
		if _, partial := list.(*metav1.PartialObjectMetadataList); partial {
			one := &metav1.PartialObjectMetadata{}
			copyInto(o, one)
			items = append(items, one)
			continue
		}
		items = append(items, o.DeepCopyObject())
	}
	return meta.SetList(list, items)
}

func selects(options *client.ListOptions, indexers map[string]client.IndexerFunc, o client.Object) bool {
	if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	if options.FieldSelector == nil {
		return true
	}
	for _, r := range options.FieldSelector.Requirements() {
		index := indexers[r.Field]
		if index == nil {
			panic("no index " + r.Field)
		}
		if !slices.Contains(index(o), r.Value) {
			return false
		}
	}
	return true
}

func (c *objectCache) GetInformer(_ context.Context, obj client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.kinds[c.api.kindOf(obj)], nil
}

func (c *objectCache) IndexField(_ context.Context, obj client.Object, name string, extract client.IndexerFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kinds[c.api.kindOf(obj)].indexers[name] = extract
	return nil
}

func (*objectCache) WaitForCacheSync(context.Context) bool { return true }

var _ cache.Informer = (*informer)(nil)

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.cache.mu.Lock()
	initial := sorted(i.objects)
	i.handlers = append(i.handlers, h)
	i.cache.mu.Unlock()
	for _, o := range initial {
		h.OnAdd(i.shown(o), true)
	}
	return synced{}, nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

func (i *informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}

func (*informer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error { return nil }
func (*informer) AddIndexers(toolscache.Indexers) error                                { return nil }
func (*informer) HasSynced() bool                                                      { return true }
func (*informer) HasSyncedChecker() toolscache.DoneChecker                             { return synced{} }
func (*informer) IsStopped() bool                                                      { return false }

// synced is the state of a cache that has begun with all objects.
type synced struct{}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (synced) HasSynced() bool                          { return true }
func (synced) HasSyncedChecker() toolscache.DoneChecker { return synced{} }
func (synced) Name() string                             { return "cache" }
func (synced) Done() <-chan struct{}                    { return closed }
