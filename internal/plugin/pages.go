package plugin

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the number of objects that are read at once.
const pageSize = 500

// Each calls visit for each object of a list, a page at a time.
func Each[T client.Object](ctx context.Context, reader client.Reader, list client.ObjectList, visit func(T) error, options ...client.ListOption) error {
	for {
		page := append([]client.ListOption{client.Limit(pageSize), client.Continue(list.GetContinue())}, options...)
		if err := reader.List(ctx, list, page...); err != nil {
			return fmt.Errorf("list %s: %w", kindsOf(list), err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error { return visit(item.(T)) })
		if err != nil || list.GetContinue() == "" {
			return err
		}
	}
}

// kindsOf names the objects of a list, such as VmGroups.
func kindsOf(list client.ObjectList) string {
	kind := list.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(list).Elem().Name()
	}
	return strings.TrimSuffix(kind, "List") + "s"
}
