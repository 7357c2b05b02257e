package why

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/plugin"
)

// object is an object with conditions.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// kind is what the command needs to know of a kind.
type kind struct {
	name, resource, plural string
	cluster                bool
	empty                  func() client.Object
	// waitsFor returns the objects of the same namespace that the object waits for with
	// this reason of Ready; the first that is not ready is followed.
	waitsFor func(o client.Object, reason string) []key
	// members reports whether the object waits for one of its members with this reason.
	members func(reason string) bool
	// cloud returns the Cloud that the object names or is recorded on, empty for that of
	// its namespace, and whether it uses one.
	cloud func(o client.Object) (name string, uses bool)
}

// key names an object. The namespace of a Cloud is empty.
type key struct{ kind, namespace, name string }

const cloudKind = "Cloud"

var kinds = []*kind{
	{
		name: "VM", resource: "vm", plural: "vms", empty: func() client.Object { return &pcapi.VM{} },
		waitsFor: vmWaitsFor,
		cloud: func(o client.Object) (string, bool) {
			vm := o.(*pcapi.VM)
			return cloudOf(vm, vm.Status.Cloud, vm.Spec.CloudRef), true
		},
	},
	{
		name: "VmGroup", resource: "vmgroup", plural: "vmgroups", empty: func() client.Object { return &pcapi.VmGroup{} },
		members: func(reason string) bool {
			return slices.Contains([]string{pcapi.MembersNotReadyReason, pcapi.MembersStalledReason, pcapi.RollingReason, pcapi.ScalingReason}, reason)
		},
		cloud: func(o client.Object) (string, bool) { return cloudOf(o, "", o.(*pcapi.VmGroup).Spec.CloudRef), true },
	},
	{
		name: "Network", resource: "network", plural: "networks", empty: func() client.Object { return &pcapi.Network{} },
		cloud: func(o client.Object) (string, bool) {
			n := o.(*pcapi.Network)
			return cloudOf(n, n.Status.Cloud, n.Spec.CloudRef), true
		},
	},
	{
		name: "VMSnapshot", resource: "vmsnapshot", plural: "vmsnapshots", empty: func() client.Object { return &pcapi.VMSnapshot{} },
		waitsFor: func(o client.Object, reason string) []key {
			if reason != pcapi.VMNotReadyReason {
				return nil
			}
			return []key{{"VM", o.GetNamespace(), o.(*pcapi.VMSnapshot).Spec.VMName}}
		},
		// Before its snapshot exists, the Cloud is that of its VM.
		cloud: func(o client.Object) (string, bool) {
			name := o.(*pcapi.VMSnapshot).Status.Cloud
			return name, name != ""
		},
	},
	{
		name: "GPUInfo", resource: "gpuinfo", plural: "gpuinfos", empty: func() client.Object { return &pcapi.GPUInfo{} },
		cloud: func(o client.Object) (string, bool) { return cloudOf(o, "", o.(*pcapi.GPUInfo).Spec.CloudRef), true },
	},
	{
		name: cloudKind, resource: "cloud", plural: "clouds", cluster: true, empty: func() client.Object { return &pcapi.Cloud{} },
	},
	// It has no status: users cannot ask for it, and others only wait until it exists.
	{name: "VMClass", plural: "vmclasses", cluster: true, empty: func() client.Object { return &pcapi.VMClass{} }},
}

func kindOf(text string) *kind {
	resource := plugin.Resource(text)
	for _, k := range kinds {
		if k.resource != "" && k.resource == resource {
			return k
		}
	}
	return nil
}

func named(name string) *kind {
	return kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })]
}

// resources returns what a user can ask for.
func resources() []string {
	var all []string
	for _, k := range kinds {
		if k.resource != "" {
			all = append(all, k.resource)
		}
	}
	return all
}

// cloudOf returns the Cloud that an object is recorded on, or was claimed on, or names.
func cloudOf(o client.Object, recorded string, ref *pcapi.CloudReference) string {
	named := ""
	if ref != nil {
		named = ref.Name
	}
	return cmp.Or(recorded, o.GetAnnotations()[pcapi.ClaimedCloudAnnotation], named)
}

func vmWaitsFor(o client.Object, reason string) []key {
	vm := o.(*pcapi.VM)
	var waits []key
	switch reason {
	case pcapi.NetworkNotReadyReason:
		for _, i := range controller.InterfacesOf(vm) {
			waits = append(waits, key{"Network", vm.Namespace, i.NetworkRef.Name})
		}
	case pcapi.ClassUnavailableReason:
		waits = append(waits, key{"VMClass", "", vm.Spec.ClassName})
	case pcapi.SnapshotUnavailableReason:
		waits = append(waits, key{"VMSnapshot", vm.Namespace, vm.Spec.CurrentSnapshotName})
	}
	return waits
}
