package simulation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// apiServer holds the objects, as the API server does: resource versions, generations,
// finalizers, the status subresource, and a log of all changes. It runs in the goroutine of the
// scheduler alone.
type apiServer struct {
	scheme   *runtime.Scheme
	now      func() time.Time
	defaults defaults
	objects  map[schema.GroupVersionKind]map[client.ObjectKey]client.Object
	// log has the changes of each kind in their order.
	log map[schema.GroupVersionKind][]change
	// version is the resource version of the last change, and uids counts the UIDs.
	version, uids int
	// changed is called after each change. It may be nil.
	changed func(gvk schema.GroupVersionKind, before, after client.Object)
}

// change is an entry of the log. Before is nil for an object that was created, and after for one
// that was removed.
type change struct {
	version       int
	before, after client.Object
}

func newAPIServer(scheme *runtime.Scheme, d defaults, now func() time.Time) *apiServer {
	return &apiServer{
		scheme: scheme, now: now, defaults: d,
		objects: map[schema.GroupVersionKind]map[client.ObjectKey]client.Object{}, log: map[schema.GroupVersionKind][]change{},
	}
}

// kindOf returns the kind of an object. Metadata alone is of the kind that it names.
func (a *apiServer) kindOf(obj runtime.Object) schema.GroupVersionKind {
	gvk, err := apiutil.GVKForObject(obj, a.scheme)
	if err != nil {
		panic(err)
	}
	return gvk
}

// resourceOf returns the resource of a kind in errors.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupResource {
	return schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}
}

// find returns the object that is stored; nil if there is none. It must not be changed.
func (a *apiServer) find(gvk schema.GroupVersionKind, key client.ObjectKey) client.Object {
	return a.objects[gvk][key]
}

// all returns the objects of a kind, sorted by namespace and name. They must not be changed.
func (a *apiServer) all(gvk schema.GroupVersionKind) []client.Object {
	return sorted(a.objects[gvk])
}

func sorted(objects map[client.ObjectKey]client.Object) []client.Object {
	all := make([]client.Object, 0, len(objects))
	for _, o := range objects {
		all = append(all, o)
	}
	slices.SortFunc(all, func(x, y client.Object) int {
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return all
}

// get copies the stored object into obj.
func (a *apiServer) get(key client.ObjectKey, obj client.Object) error {
	gvk := a.kindOf(obj)
	stored := a.find(gvk, key)
	if stored == nil {
		return apierrors.NewNotFound(resourceOf(gvk), key.Name)
	}
	copyInto(stored, obj)
	return nil
}

// copyInto copies an object into one of its type, or its metadata.
func copyInto(stored, obj client.Object) {
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		gvk := partial.GroupVersionKind()
		metaOf(stored).DeepCopyInto(&partial.ObjectMeta)
		partial.SetGroupVersionKind(gvk)
		return
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
}

// metaOf returns the metadata of an object.
func metaOf(o client.Object) *metav1.ObjectMeta {
	return reflect.ValueOf(o).Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta)
}

// create stores an object with its defaults.
func (a *apiServer) create(obj client.Object) error {
	gvk, key := a.kindOf(obj), client.ObjectKeyFromObject(obj)
	if a.find(gvk, key) != nil {
		return apierrors.NewAlreadyExists(resourceOf(gvk), key.Name)
	}
	if err := a.defaults.apply(gvk, obj); err != nil {
		return err
	}
	a.uids++
	meta := metaOf(obj)
	meta.UID, meta.Generation, meta.DeletionTimestamp = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", a.uids)), 1, nil
	meta.CreationTimestamp = metav1.NewTime(a.now().Truncate(time.Second))
	a.store(gvk, key, nil, obj)
	return nil
}

// store replaces an object and logs that. After is copied, and gets the resource version.
func (a *apiServer) store(gvk schema.GroupVersionKind, key client.ObjectKey, before, after client.Object) {
	a.version++
	if a.objects[gvk] == nil {
		a.objects[gvk] = map[client.ObjectKey]client.Object{}
	}
	var kept client.Object
	if after == nil {
		delete(a.objects[gvk], key)
		before = before.DeepCopyObject().(client.Object)
		before.SetResourceVersion(strconv.Itoa(a.version))
	} else {
		after.SetResourceVersion(strconv.Itoa(a.version))
		kept = after.DeepCopyObject().(client.Object)
		a.objects[gvk][key] = kept
	}
	a.log[gvk] = append(a.log[gvk], change{version: a.version, before: before, after: kept})
	if a.changed != nil {
		a.changed(gvk, before, kept)
	}
}

// patch applies a merge patch to the status of an object, or to all but the status, and copies the
// result into obj.
func (a *apiServer) patch(obj client.Object, data []byte, status bool) error {
	gvk, key := a.kindOf(obj), client.ObjectKeyFromObject(obj)
	stored := a.find(gvk, key)
	if stored == nil {
		return apierrors.NewNotFound(resourceOf(gvk), key.Name)
	}
	var sent struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &sent); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if v := sent.Metadata.ResourceVersion; v != "" && v != stored.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(gvk), key.Name, fmt.Errorf("the object has been modified"))
	}
	before, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	after, err := jsonpatch.MergePatch(before, data)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	next := reflect.New(reflect.TypeOf(stored).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(after, next); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if err := a.replace(gvk, key, stored, next, status); err != nil {
		return err
	}
	copyInto(next, obj)
	return nil
}

// update replaces all but the status of an object.
func (a *apiServer) update(obj client.Object) error {
	gvk, key := a.kindOf(obj), client.ObjectKeyFromObject(obj)
	stored := a.find(gvk, key)
	switch {
	case stored == nil:
		return apierrors.NewNotFound(resourceOf(gvk), key.Name)
	case obj.GetResourceVersion() != "" && obj.GetResourceVersion() != stored.GetResourceVersion():
		return apierrors.NewConflict(resourceOf(gvk), key.Name, fmt.Errorf("the object has been modified"))
	}
	return a.replace(gvk, key, stored, obj, false)
}

// replace stores the next state of an object as far as a write of the status, or of the object, may
// change it. An object that is being deleted and whose last finalizer goes is removed.
func (a *apiServer) replace(gvk schema.GroupVersionKind, key client.ObjectKey, stored, next client.Object, status bool) error {
	was, is := metaOf(stored), metaOf(next)
	if status {
		was.DeepCopyInto(is)
		setField(next, "Spec", stored)
	} else {
		is.UID, is.CreationTimestamp, is.Generation = was.UID, was.CreationTimestamp, was.Generation
		is.DeletionTimestamp, is.DeletionGracePeriodSeconds = was.DeletionTimestamp, was.DeletionGracePeriodSeconds
		setField(next, "Status", stored)
		if !equalField(stored, next, "Spec") {
			is.Generation++
		}
		if was.DeletionTimestamp != nil && len(newFinalizers(was.Finalizers, is.Finalizers)) > 0 {
			return apierrors.NewInvalid(gvk.GroupKind(), key.Name, nil)
		}
	}
	is.ResourceVersion = was.ResourceVersion
	switch {
	case equalObjects(stored, next):
		return nil
	case is.DeletionTimestamp != nil && len(is.Finalizers) == 0:
		a.store(gvk, key, stored, nil)
		next.SetResourceVersion(strconv.Itoa(a.version))
	default:
		a.store(gvk, key, stored, next)
	}
	return nil
}

func newFinalizers(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(f string) bool { return slices.Contains(before, f) })
}

// remove deletes an object: at once if it has no finalizer, else it is being deleted from then on.
func (a *apiServer) remove(gvk schema.GroupVersionKind, key client.ObjectKey, preconditions *metav1.Preconditions) error {
	stored := a.find(gvk, key)
	if stored == nil {
		return apierrors.NewNotFound(resourceOf(gvk), key.Name)
	}
	if p := preconditions; p != nil {
		if p.UID != nil && *p.UID != stored.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion() {
			return apierrors.NewConflict(resourceOf(gvk), key.Name, fmt.Errorf("a precondition does not hold"))
		}
	}
	switch {
	case len(stored.GetFinalizers()) == 0:
		a.store(gvk, key, stored, nil)
	case stored.GetDeletionTimestamp() == nil:
		next := stored.DeepCopyObject().(client.Object)
		meta := metaOf(next)
		meta.DeletionTimestamp, meta.Generation = new(metav1.NewTime(a.now().Truncate(time.Second))), meta.Generation+1
		a.store(gvk, key, stored, next)
	}
	return nil
}

// orphaned returns the objects of a kind that Kubernetes deletes, because their owner does not exist any
// more.
func (a *apiServer) orphaned(gvk schema.GroupVersionKind) []client.Object {
	uids := map[types.UID]bool{}
	for _, objects := range a.objects {
		for _, o := range objects {
			uids[o.GetUID()] = true
		}
	}
	return slices.DeleteFunc(a.all(gvk), func(o client.Object) bool {
		owner := metav1.GetControllerOf(o)
		return owner == nil || uids[owner.UID] || o.GetDeletionTimestamp() != nil
	})
}

func field(o client.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

// setField gives a field the value that it has in another object of the type.
func setField(o client.Object, name string, from client.Object) {
	if f := field(o, name); f.IsValid() {
		f.Set(field(from.DeepCopyObject().(client.Object), name))
	}
}

func equalField(a, b client.Object, name string) bool {
	f := field(a, name)
	return !f.IsValid() || equalJSON(f.Interface(), field(b, name).Interface())
}

func equalObjects(a, b client.Object) bool { return equalJSON(a, b) }

// equalJSON reports whether two values are stored as the same text.
func equalJSON(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
