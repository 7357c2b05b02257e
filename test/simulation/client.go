package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectClient is the client of a process. It reads from the cache, once that shows what the client
// wrote: a read of an object waits for the writes of that object, and a list for those of its kind,
// as in controller-runtime. Writes go to the API server.
type objectClient struct {
	client.Client

	process *process

	mu sync.Mutex
	// written are the resource versions of the last writes, and writing the writes that were sent
	// and have not ended.
	written map[schema.GroupVersionKind]map[client.ObjectKey]int
	writing map[*write]bool
	// reads are those that wait, in the order in which they began.
	reads []*read
}

// write is a write of an object.
type write struct {
	gvk schema.GroupVersionKind
	key client.ObjectKey
}

func (c *objectClient) Scheme() *runtime.Scheme { return c.process.world.api.scheme }

func (c *objectClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.process.world.api.kindOf(obj), nil
}

// read is a read that waits for writes of its client, and then until the cache shows them.
type read struct {
	gvk schema.GroupVersionKind
	key *client.ObjectKey
	// writes are those that had not ended when it began. Version is what the cache has to show once they have.
	writes  []*write
	version int
	resumed chan struct{}
}

// await waits until the cache shows the writes of an object, or of all of a kind if key is nil.
func (c *objectClient) await(ctx context.Context, gvk schema.GroupVersionKind, key *client.ObjectKey) error {
	r := &read{gvk: gvk, key: key, resumed: make(chan struct{})}
	c.mu.Lock()
	for w := range c.writing {
		if w.gvk == gvk && (key == nil || w.key == *key) {
			r.writes = append(r.writes, w)
		}
	}
	shown := c.shows(r)
	if !shown {
		c.reads = append(c.reads, r)
	}
	c.mu.Unlock()
	if shown {
		return nil
	}
	select {
	case <-r.resumed:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reads = slices.DeleteFunc(c.reads, func(o *read) bool { return o == r })
		return ctx.Err()
	}
}

// shows reports whether a read need not wait any longer. The caller holds mu.
func (c *objectClient) shows(r *read) bool {
	if slices.ContainsFunc(r.writes, func(w *write) bool { return c.writing[w] }) {
		return false
	}
	r.writes = nil
	if r.version == 0 {
		for k, v := range c.written[r.gvk] {
			if r.key == nil || k == *r.key {
				r.version = max(r.version, v)
			}
		}
	}
	return c.process.cache.shows(r.gvk, r.version)
}

// resume lets the first read go on that need not wait any longer. It reports false if there is none.
func (c *objectClient) resume() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, r := range c.reads {
		if c.shows(r) {
			c.reads = slices.Delete(c.reads, i, i+1)
			close(r.resumed)
			return true
		}
	}
	return false
}

func (c *objectClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !(&client.GetOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		if err := c.await(ctx, c.process.world.api.kindOf(obj), &key); err != nil {
			return err
		}
	}
	return c.process.cache.Get(ctx, key, obj)
}

func (c *objectClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !(&client.ListOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		if err := c.await(ctx, listed(c.process.world.api, list), nil); err != nil {
			return err
		}
	}
	return c.process.cache.List(ctx, list, opts...)
}

// write sends a change of an object, and remembers its resource version.
func (c *objectClient) write(ctx context.Context, verb string, obj client.Object, effect func(sent client.Object) error) error {
	api := c.process.world.api
	w, sent := &write{gvk: api.kindOf(obj), key: client.ObjectKeyFromObject(obj)}, obj.DeepCopyObject().(client.Object)
	c.mu.Lock()
	c.writing[w] = true
	c.mu.Unlock()
	version, err := ask(ctx, c.process, fmt.Sprintf("%s %s/%s", verb, w.gvk.Kind, w.key.Name), true,
		func() (int, error) { err := effect(sent); return api.version, err }, apiFailure)
	if err == nil {
		copyInto(sent, obj)
	}
	if v, parseErr := strconv.Atoi(sent.GetResourceVersion()); parseErr == nil && verb != "delete" {
		version = v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.writing, w)
	if err == nil {
		if c.written[w.gvk] == nil {
			c.written[w.gvk] = map[client.ObjectKey]int{}
		}
		c.written[w.gvk][w.key] = max(c.written[w.gvk][w.key], version)
	}
	return err
}

// apiFailure is the error of a call to the API server that has no answer.
func apiFailure(why fault) error {
	if why == lost {
		return errors.New("the connection to the API server is lost")
	}
	return apierrors.NewServiceUnavailable("injected")
}

func (c *objectClient) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return c.write(ctx, "create", obj, c.process.world.api.create)
}

func (c *objectClient) Update(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return c.write(ctx, "update", obj, c.process.world.api.update)
}

func (c *objectClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(ctx, obj, patch, false)
}

func (c *objectClient) patch(ctx context.Context, obj client.Object, patch client.Patch, status bool) error {
	if patch.Type() != types.MergePatchType {
		return errors.New("only merge patches are simulated")
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	verb := "patch"
	if status {
		verb = "patch status of"
	}
	return c.write(ctx, verb, obj, func(sent client.Object) error { return c.process.world.api.patch(sent, data, status) })
}

func (c *objectClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	preconditions := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	return c.write(ctx, "delete", obj, func(sent client.Object) error {
		api := c.process.world.api
		return api.remove(api.kindOf(sent), client.ObjectKeyFromObject(sent), preconditions)
	})
}

func (c *objectClient) Status() client.SubResourceWriter { return statusWriter{client: c} }

// statusWriter writes the status of objects.
type statusWriter struct {
	client.SubResourceWriter

	client *objectClient
}

func (w statusWriter) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return w.client.patch(ctx, obj, patch, true)
}

// liveReader reads from the API server.
type liveReader struct{ process *process }

func (r liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	api := r.process.world.api
	read, err := ask(ctx, r.process, fmt.Sprintf("read %s/%s", api.kindOf(obj).Kind, key.Name), false, func() (client.Object, error) {
		into := obj.DeepCopyObject().(client.Object)
		return into, api.get(key, into)
	}, apiFailure)
	if err == nil {
		copyInto(read, obj)
	}
	return err
}

func (r liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	api := r.process.world.api
	gvk := listed(api, list)
	all, err := ask(ctx, r.process, "list "+gvk.Kind, false, func() ([]client.Object, error) { return api.all(gvk), nil }, apiFailure)
	if err != nil {
		return err
	}
	return selectInto(list, all, nil, opts)
}
