package drain

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// pageSize is the number of objects that are read at once.
const pageSize = 500

// object is one of any of the kinds.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// kind is one of the kinds that a drain deletes.
type kind struct {
	name string
	list func() client.ObjectList
}

// clouds come first: nothing new is created on a Cloud that is being deleted, and it
// stays until nothing uses it. Groups precede VMs, which they would create again, and
// snapshots precede the VMs that they are of.
var (
	clouds = kind{"clouds", func() client.ObjectList { return &pcapi.CloudList{} }}
	vms    = kind{"vms", func() client.ObjectList { return &pcapi.VMList{} }}
	kinds  = []kind{
		clouds,
		{"vmsnapshots", func() client.ObjectList { return &pcapi.VMSnapshotList{} }},
		{"vmgroups", func() client.ObjectList { return &pcapi.VmGroupList{} }},
		vms,
		{"networks", func() client.ObjectList { return &pcapi.NetworkList{} }},
		{"gpuinfos", func() client.ObjectList { return &pcapi.GPUInfoList{} }},
	}
)

// scope selects objects during one round.
type scope struct {
	reader           client.Reader
	namespace, cloud string
	// defaults are the Clouds of objects that name none, by namespace.
	defaults map[string]string
	// groups have members on the Cloud. They stay on it if the label of their namespace changes.
	groups map[types.UID]bool
	// vms are the VMs on the Cloud. A VMSnapshot that waits for its VM has no Cloud but that.
	vms map[types.NamespacedName]bool
}

func newScope(ctx context.Context, reader client.Reader, options Options) (*scope, error) {
	s := &scope{
		reader: reader, namespace: options.Namespace, cloud: options.Cloud,
		defaults: map[string]string{}, groups: map[types.UID]bool{}, vms: map[types.NamespacedName]bool{},
	}
	if s.cloud == "" {
		return s, nil
	}
	err := s.each(ctx, vms, func(o object) error {
		s.vms[client.ObjectKeyFromObject(o)] = true
		if owner := metav1.GetControllerOf(o); owner != nil {
			s.groups[owner.UID] = true
		}
		return nil
	})
	return s, err
}

// each calls visit for each object of a kind that is in the scope, a page at a time.
func (s *scope) each(ctx context.Context, k kind, visit func(object) error) error {
	if k.name == clouds.name && s.namespace != "" {
		return nil
	}
	list := k.list()
	for {
		options := []client.ListOption{client.InNamespace(s.namespace), client.Limit(pageSize), client.Continue(list.GetContinue())}
		if err := s.reader.List(ctx, list, options...); err != nil {
			return fmt.Errorf("list %s: %w", k.name, err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(object)
			if selected, err := s.has(ctx, o); err != nil || !selected {
				return err
			}
			return visit(o)
		})
		if err != nil || list.GetContinue() == "" {
			return err
		}
	}
}

func (s *scope) has(ctx context.Context, o object) (bool, error) {
	if s.cloud == "" {
		return true, nil
	}
	var ref *pcapi.CloudReference
	recorded := o.GetAnnotations()[pcapi.ClaimedCloudAnnotation]
	switch o := o.(type) {
	case *pcapi.Cloud:
		return o.Name == s.cloud, nil
	case *pcapi.VmGroup:
		if s.groups[o.UID] {
			return true, nil
		}
		ref = o.Spec.CloudRef
	case *pcapi.VM:
		ref, recorded = o.Spec.CloudRef, cmp.Or(o.Status.Cloud, recorded)
	case *pcapi.Network:
		ref, recorded = o.Spec.CloudRef, cmp.Or(o.Status.Cloud, recorded)
	case *pcapi.VMSnapshot:
		if recorded = cmp.Or(o.Status.Cloud, recorded); recorded == "" {
			return s.vms[types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.VMName}], nil
		}
	case *pcapi.GPUInfo:
		ref = o.Spec.CloudRef
	}
	if recorded != "" {
		return recorded == s.cloud, nil
	}
	if ref != nil {
		return ref.Name == s.cloud, nil
	}
	name, err := s.defaultOf(ctx, o.GetNamespace())
	return name == s.cloud, err
}

// defaultOf returns the Cloud of the objects of a namespace that name none.
func (s *scope) defaultOf(ctx context.Context, namespace string) (string, error) {
	if name, known := s.defaults[namespace]; known {
		return name, nil
	}
	name, err := tenancy.CloudFor(ctx, s.reader, namespace, nil)
	if err != nil {
		return "", fmt.Errorf("find the default Cloud of namespace %q: %w", namespace, err)
	}
	s.defaults[namespace] = name
	return name, nil
}
