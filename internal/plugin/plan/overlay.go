package plan

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// overlay reads objects that the plan creates or changes as they will be, and others from
// the API server.
type overlay struct {
	client.Client

	objects map[string]client.Object
}

func keyOf(o client.Object, key client.ObjectKey) string { return fmt.Sprintf("%T/%s", o, key) }

// set has o read as it is now.
func (c *overlay) set(o client.Object) {
	c.objects[keyOf(o, client.ObjectKeyFromObject(o))] = o
}

// Get reads one object.
func (c *overlay) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if o, ok := c.objects[keyOf(into, key)]; ok {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
		return nil
	}
	return c.Client.Get(ctx, key, into, opts...)
}
