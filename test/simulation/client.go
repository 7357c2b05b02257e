package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectClient is the client of a process: it reads from the cache, after it shows what the client
// wrote, and writes to the API server.
type objectClient struct {
	client.Client

	process *process

	mu sync.Mutex
	// written is the resource version of the last write of each kind.
	written map[schema.GroupVersionKind]int
}

func (c *objectClient) Scheme() *runtime.Scheme { return c.process.life.api.scheme }

func (c *objectClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.process.life.api.kindOf(obj), nil
}

func (c *objectClient) await(ctx context.Context, gvk schema.GroupVersionKind) error {
	c.mu.Lock()
	version := c.written[gvk]
	c.mu.Unlock()
	return c.process.cache.await(ctx, gvk, version)
}

func (c *objectClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !(&client.GetOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		if err := c.await(ctx, c.process.life.api.kindOf(obj)); err != nil {
			return err
		}
	}
	return c.process.cache.Get(ctx, key, obj)
}

func (c *objectClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !(&client.ListOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		if err := c.await(ctx, listed(c.process.life.api, list)); err != nil {
			return err
		}
	}
	return c.process.cache.List(ctx, list, opts...)
}

// write sends a change of an object, and remembers its resource version.
func (c *objectClient) write(ctx context.Context, verb string, obj client.Object, effect func(sent client.Object) error) error {
	api := c.process.life.api
	gvk, sent := api.kindOf(obj), obj.DeepCopyObject().(client.Object)
	version, err := ask(ctx, c.process, fmt.Sprintf("%s %s/%s", verb, gvk.Kind, obj.GetName()), true,
		func() (int, error) { err := effect(sent); return api.version, err }, apiFailure)
	if err != nil {
		return err
	}
	copyInto(sent, obj)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, err := strconv.Atoi(sent.GetResourceVersion()); err == nil && verb != "delete" {
		version = v
	}
	c.written[gvk] = max(c.written[gvk], version)
	return nil
}

// apiFailure is the error of a call to the API server that has no answer.
func apiFailure(why fault) error {
	if why == lost {
		return errors.New("the connection to the API server is lost")
	}
	return apierrors.NewServiceUnavailable("injected")
}

func (c *objectClient) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	return c.write(ctx, "create", obj, c.process.life.api.create)
}

func (c *objectClient) Update(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return c.write(ctx, "update", obj, c.process.life.api.update)
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
	return c.write(ctx, verb, obj, func(sent client.Object) error { return c.process.life.api.patch(sent, data, status) })
}

func (c *objectClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	preconditions := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions
	return c.write(ctx, "delete", obj, func(sent client.Object) error {
		api := c.process.life.api
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
	api := r.process.life.api
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
	api := r.process.life.api
	gvk := listed(api, list)
	all, err := ask(ctx, r.process, "list "+gvk.Kind, false, func() ([]client.Object, error) { return api.all(gvk), nil }, apiFailure)
	if err != nil {
		return err
	}
	return selectInto(list, all, nil, opts)
}

func labelsOf(o client.Object) labels.Set { return labels.Set(o.GetLabels()) }
