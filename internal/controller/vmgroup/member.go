package vmgroup

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/names"
)

const kindName = "VmGroup"

const (
	// maxVMName bounds a VM's vmname and so a member's name, in characters.
	maxVMName = 63
	// maxFolder bounds a VM's folder, in characters.
	maxFolder = 253
	infix     = "-replica-"
	letters   = 8
)

// memberName is the name of a group's nth member: a function of the group's UID
// and n, so that two managers that create the same member create it once.
func memberName(g *v1alpha1.VmGroup, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", g.UID, n))
	text := make([]byte, letters)
	for i := range text {
		text[i] = 'a' + sum[i]%26
	}
	return names.Bounded(maxVMName-len(infix)-letters, g.Name) + infix + string(text)
}

// folderOf is the cloud's folder of a group's members.
func folderOf(g *v1alpha1.VmGroup) string { return names.Bounded(maxFolder, g.Namespace+"-"+g.Name) }

// labelOf is the value of GroupLabel on a group's members.
func labelOf(g *v1alpha1.VmGroup) string {
	return names.Bounded(validation.LabelValueMaxLength, g.Name)
}

// template is what members are created from.
type template struct {
	CPU      *int32 `json:"cpu,omitempty"`
	Memory   *int32 `json:"memory,omitempty"`
	Template string `json:"template,omitempty"`
	Network  string `json:"network,omitempty"`
	Cloud    string `json:"cloud"`
}

func templateOf(g *v1alpha1.VmGroup, cloud string) template {
	t := template{CPU: g.Spec.CPU, Memory: g.Spec.Memory, Template: g.Spec.Template, Cloud: cloud}
	if g.Spec.NetworkRef != nil {
		t.Network = g.Spec.NetworkRef.Name
	}
	return t
}

// revision is a hash of the template.
func (t template) revision() string {
	text, _ := json.Marshal(t)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:5])
}

// sizeOnly reports whether a member differs from the template in its size at most.
func (t template) sizeOnly(vm *v1alpha1.VM) bool {
	return vm.Spec.Template == t.Template && networkOf(vm) == t.Network && vm.Spec.CloudRef != nil && vm.Spec.CloudRef.Name == t.Cloud
}

// kept reports whether the fields of a member that can be changed in place match the template.
func (t template) kept(vm *v1alpha1.VM) bool {
	return ptr.Equal(vm.Spec.CPU, t.CPU) && ptr.Equal(vm.Spec.Memory, t.Memory) && vm.Spec.PowerState != v1alpha1.PowerOff
}

func networkOf(vm *v1alpha1.VM) string {
	if vm.Spec.NetworkRef == nil {
		return ""
	}
	return vm.Spec.NetworkRef.Name
}

func alive(vm *v1alpha1.VM) bool { return vm.DeletionTimestamp.IsZero() }

// exists reports whether a member has a server, as far as is known.
func exists(vm *v1alpha1.VM) bool {
	return vm.Status.VMID != "" && vm.Status.State != v1alpha1.VMStateLost
}

// mayExist reports whether a member may have a server: a claimed one may, too.
func mayExist(vm *v1alpha1.VM) bool {
	return vm.Status.State != v1alpha1.VMStateLost && (vm.Status.VMID != "" || len(vm.Finalizers) > 0)
}

// ready reports whether a member serves: its status is Ready for the current spec, and the spec is not off.
func ready(vm *v1alpha1.VM) bool {
	return vm.Spec.PowerState != v1alpha1.PowerOff && vm.Status.ObservedGeneration == vm.Generation && meta.IsStatusConditionTrue(vm.Status.Conditions, v1alpha1.ReadyCondition)
}

func readyReason(vm *v1alpha1.VM) string {
	if c := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ReadyCondition); c != nil {
		return c.Reason
	}
	return ""
}

// failed reports whether a member is to be replaced by another: the cloud reports
// its server in error, or its name is taken.
func failed(vm *v1alpha1.VM) bool {
	return (exists(vm) && readyReason(vm) == v1alpha1.ServerErrorReason) || nameless(vm)
}

// nameless reports whether a member has no server because its name is taken.
func nameless(vm *v1alpha1.VM) bool {
	return vm.Status.VMID == "" && readyReason(vm) == v1alpha1.TakenReason
}

// stalled returns the Stalled condition of a member; nil if it is not stalled.
func stalled(vm *v1alpha1.VM) *metav1.Condition {
	if c := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.StalledCondition); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// blocked reports whether the deletion of a member waits for a person to act.
func blocked(vm *v1alpha1.VM) bool {
	c := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.DeletingCondition)
	return c != nil && c.Reason == v1alpha1.BlockedReason
}

func marked(vm *v1alpha1.VM) bool {
	_, ok := vm.Annotations[v1alpha1.DeleteFirstAnnotation]
	return ok
}

// victims returns the n members to delete first: those that are annotated for it,
// those that are not Ready, those of an older revision, then by policy.
func victims(members []*v1alpha1.VM, n int, policy v1alpha1.ScaleDownPolicy, revision string) []*v1alpha1.VM {
	first := func(is func(*v1alpha1.VM) bool) func(a, b *v1alpha1.VM) int {
		return func(a, b *v1alpha1.VM) int { return cmp.Compare(rank(is(a)), rank(is(b))) }
	}
	order := []func(a, b *v1alpha1.VM) int{
		first(marked),
		first(func(vm *v1alpha1.VM) bool { return !ready(vm) }),
		first(func(vm *v1alpha1.VM) bool { return vm.Labels[v1alpha1.RevisionLabel] != revision }),
		byPolicy(policy),
		func(a, b *v1alpha1.VM) int { return cmp.Compare(a.Name, b.Name) },
	}
	sorted := slices.SortedFunc(slices.Values(members), func(a, b *v1alpha1.VM) int {
		for _, compare := range order {
			if c := compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	})
	return sorted[:max(0, min(n, len(sorted)))]
}

// rank orders true before false.
func rank(is bool) int {
	if is {
		return 0
	}
	return 1
}

func byPolicy(policy v1alpha1.ScaleDownPolicy) func(a, b *v1alpha1.VM) int {
	switch policy {
	case v1alpha1.ScaleDownOldest:
		return func(a, b *v1alpha1.VM) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }
	case v1alpha1.ScaleDownLeastUtilised:
		return func(a, b *v1alpha1.VM) int {
			return cmp.Compare(ptr.Deref(a.Status.CPUUtilization, 0), ptr.Deref(b.Status.CPUUtilization, 0))
		}
	case v1alpha1.ScaleDownRandom:
		// A hash of the UID: random, and the same in every reconcile.
		draw := func(vm *v1alpha1.VM) string { sum := sha256.Sum256([]byte(vm.UID)); return string(sum[:]) }
		return func(a, b *v1alpha1.VM) int { return strings.Compare(draw(a), draw(b)) }
	default:
		return func(a, b *v1alpha1.VM) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) }
	}
}
