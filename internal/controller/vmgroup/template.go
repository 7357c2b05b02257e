package vmgroup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// template is the spec that members are created with, except their names and their folder.
type template struct{ pcapi.VMSpec }

func templateOf(g *pcapi.VmGroup, cloud string) template {
	t := template{pcapi.VMSpec{
		CloudRef: &pcapi.CloudReference{Name: cloud}, CPU: g.Spec.CPU.Canonical(), Memory: g.Spec.Memory.Canonical(), ClassName: g.Spec.ClassName, Flavor: g.Spec.Flavor,
		Template: g.Spec.Template, Zone: g.Spec.Zone, NetworkRef: g.Spec.NetworkRef, Bootstrap: g.Spec.Bootstrap.DeepCopy(), Disks: disksOf(g), RootDisk: rootDiskOf(g),
		SecurityGroups: g.Spec.SecurityGroups, AllowedAddresses: g.Spec.AllowedAddresses, PublicAddress: g.Spec.PublicAddress,
		Tags: g.Spec.Tags, PowerOffMode: g.Spec.PowerOffMode, PowerOffTimeout: g.Spec.PowerOffTimeout, ReadinessProbe: g.Spec.ReadinessProbe, Approval: g.Spec.Approval,
	}}
	if t.Bootstrap != nil { // the order of the SSH keys is not part of the revision
		slices.Sort(t.Bootstrap.CloudInit.SSHAuthorizedKeys)
	}
	if g.Spec.Network != nil {
		t.Network = &pcapi.VMNetwork{}
		for _, i := range g.Spec.Network.Interfaces {
			t.Network.Interfaces = append(t.Network.Interfaces, pcapi.VMInterface{Name: i.Name, NetworkRef: i.NetworkRef})
		}
	}
	if g.Spec.AntiAffinity != nil {
		t.AntiAffinity = &pcapi.VMAntiAffinity{Group: labelOf(g), Policy: cmp.Or(g.Spec.AntiAffinity.Policy, pcapi.AntiAffinityRequired)}
	}
	return t
}

// cloudName returns the name of the Cloud of the members; empty if it was not observed.
func (t template) cloudName() string { return revisedOf(&t.VMSpec).Cloud }

// revised has the fields of a member whose change makes another revision. Their names and their order are those of
// earlier releases: a revision that changed would replace all members after an upgrade.
type revised struct {
	Class    string          `json:"class,omitempty"`
	CPU      *pcapi.VMCores  `json:"cpu,omitempty"`
	Memory   *pcapi.VMMemory `json:"memory,omitempty"`
	Template string          `json:"template,omitempty"`
	Network  string          `json:"network,omitempty"`
	Cloud    string          `json:"cloud"`
	// Bootstrap refers to its Secret: what the Secret holds is not part of the revision.
	Bootstrap    *pcapi.VMBootstrap    `json:"bootstrap,omitempty"`
	Disks        []pcapi.VMDisk        `json:"disks,omitempty"`
	Zone         string                `json:"zone,omitempty"`
	AntiAffinity *pcapi.VMAntiAffinity `json:"antiAffinity,omitempty"`
	Interfaces   []pcapi.VMInterface   `json:"interfaces,omitempty"`
	RootDisk     *pcapi.VMRootDisk     `json:"rootDisk,omitempty"`
	Flavor       pcapi.VMFlavor        `json:"flavor,omitempty"`
}

func revisedOf(s *pcapi.VMSpec) revised {
	r := revised{
		Class: s.ClassName, CPU: s.CPU, Memory: s.Memory, Template: s.Template, Bootstrap: s.Bootstrap, Disks: withoutPolicies(s.Disks), Zone: s.Zone, AntiAffinity: s.AntiAffinity,
		RootDisk: s.RootDisk, Flavor: s.Flavor,
	}
	if s.CloudRef != nil {
		r.Cloud = s.CloudRef.Name
	}
	if s.NetworkRef != nil {
		r.Network = s.NetworkRef.Name
	}
	if s.Network != nil {
		r.Interfaces = s.Network.Interfaces
	}
	return r
}

// revision is a hash of the template.
func (t template) revision() string {
	text, _ := json.Marshal(revisedOf(&t.VMSpec))
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}

// sizeOnly reports whether a member differs from the template in its size, in disks that
// are to be added or grown, and in a root disk that is to grow, at most.
func (t template) sizeOnly(vm *pcapi.VM) bool {
	has, wants := revisedOf(&vm.Spec), revisedOf(&t.VMSpec)
	for _, r := range []*revised{&has, &wants} {
		r.Class, r.Flavor, r.CPU, r.Memory, r.Disks, r.RootDisk = "", "", nil, nil, nil, nil
	}
	return equality.Semantic.DeepEqual(has, wants) && contains(t.Disks, vm.Spec.Disks) && t.rootFits(vm)
}

// stored reports whether a member has the disks of the template, and its root disk.
func (t template) stored(vm *pcapi.VM) bool {
	return contains(vm.Spec.Disks, t.Disks) && rooted(vm.Spec.RootDisk, t.RootDisk)
}

func (t template) sized(vm *pcapi.VM) bool {
	return vm.Spec.ClassName == t.ClassName && vm.Spec.Flavor == t.Flavor && vm.Spec.CPU.Count() == t.CPU.Count() && vm.Spec.Memory.MiB() == t.Memory.MiB()
}

// kept reports whether the fields of a member that the group keeps as they are match the
// template. The disks of a member of the current revision are not among them: one that was
// removed in the cloud would be added again, and be empty.
func (t template) kept(vm *pcapi.VM) bool {
	return t.sized(vm) && isOn(vm) && equality.Semantic.DeepEqual(vm.Spec.ReadinessProbe, t.ReadinessProbe) &&
		vm.Spec.PowerOffMode == t.PowerOffMode && ptr.Equal(vm.Spec.PowerOffTimeout, t.PowerOffTimeout) && t.shared(vm)
}

// shared reports whether the fields match that members of older revisions get from the template, too.
func (t template) shared(vm *pcapi.VM) bool {
	return maps.Equal(vm.Spec.Tags, t.Tags) && slices.Equal(vm.Spec.SecurityGroups, t.SecurityGroups) && slices.Equal(vm.Spec.AllowedAddresses, t.AllowedAddresses) && equality.Semantic.DeepEqual(vm.Spec.PublicAddress, t.PublicAddress) &&
		slices.Equal(vm.Spec.Disks, t.withPolicies(vm.Spec.Disks))
}

// share gives a member these fields.
func (t template) share(vm *pcapi.VM) {
	own := t.DeepCopy()
	vm.Spec.Tags, vm.Spec.SecurityGroups, vm.Spec.AllowedAddresses, vm.Spec.PublicAddress = own.Tags, own.SecurityGroups, own.AllowedAddresses, own.PublicAddress
	vm.Spec.Disks = t.withPolicies(vm.Spec.Disks)
}

// apply gives a member the fields of the template that can be changed in place, except the disks. Members share no
// values, because the response to a write is decoded into them.
func (t template) apply(vm *pcapi.VM) {
	own := t.DeepCopy()
	vm.Spec.ClassName, vm.Spec.Flavor, vm.Spec.CPU, vm.Spec.Memory = own.ClassName, own.Flavor, own.CPU, own.Memory
	// A change of the others replaces and restarts no server: they are not part of the revision.
	vm.Spec.ReadinessProbe, vm.Spec.PowerOffMode, vm.Spec.PowerOffTimeout = own.ReadinessProbe, own.PowerOffMode, own.PowerOffTimeout
	t.share(vm)
}
