package drift

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader reads each object that others refer to once.
type reader struct {
	client.Client

	objects map[string]client.Object
	errors  map[string]error
}

func newReader(c client.Client) *reader {
	return &reader{Client: c, objects: map[string]client.Object{}, errors: map[string]error{}}
}

// Get reads an object, from memory if it was read before.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	name := fmt.Sprintf("%T/%s/%s", into, into.GetObjectKind().GroupVersionKind().Kind, key)
	if o, ok := r.objects[name]; ok {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
		return nil
	}
	if err, failed := r.errors[name]; failed {
		return err
	}
	err := r.Client.Get(ctx, key, into, opts...)
	if err != nil {
		r.errors[name] = err
		return err
	}
	r.objects[name] = into.DeepCopyObject().(client.Object)
	return nil
}
