package vmgroup

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
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
	// maxNumber bounds the numbers of members that are recognised by their names: twice the replicas of the largest
	// group, for those that are being replaced and names that are taken.
	maxNumber = 20_000
	// clockSkew bounds how much the clocks of two API servers differ.
	clockSkew = time.Minute
)

// memberName is the name of a group's nth member: a function of the group's UID
// and n, so that two managers that create the same member create it once.
func memberName(g *pcapi.VmGroup, n int) string {
	m := memberNamesOf(g)
	return m.name(m.suffix(n))
}

// memberNames makes the names of a group's members.
type memberNames struct {
	prefix string
	// hashed is what a suffix is made of, up to the number of the member.
	hashed []byte
}

// suffix is the part of a name in which the members of a group differ.
type suffix [letters]byte

func memberNamesOf(g *pcapi.VmGroup) memberNames {
	return memberNames{prefix: names.Bounded(maxVMName-len(infix)-letters, g.Name) + infix, hashed: append([]byte(g.UID), '/')}
}

func (m memberNames) name(s suffix) string { return m.prefix + string(s[:]) }

// suffix returns the suffix of the nth member.
func (m memberNames) suffix(n int) suffix {
	sum := sha256.Sum256(strconv.AppendInt(m.hashed, int64(n), 10))
	var s suffix
	for i := range s {
		s[i] = 'a' + sum[i]%26
	}
	return s
}

// free returns the first n names that no member has and refused does not return true for.
// It looks at each member once and makes only the names that it returns: beside that, a
// member costs one hash.
func (m memberNames) free(members []*pcapi.VM, n int, refused func(string) bool) []string {
	used := make(map[suffix]bool, len(members))
	for _, vm := range members {
		if s, ok := strings.CutPrefix(vm.Name, m.prefix); ok && len(s) == letters {
			used[suffix([]byte(s))] = true
		}
	}
	free := make([]string, 0, n)
	for i := 0; len(free) < n; i++ {
		s := m.suffix(i)
		if used[s] {
			continue
		}
		if name := m.name(s); !refused(name) {
			free = append(free, name)
		}
	}
	return free
}

// createdBy returns the names of the members that a group created, as far as they show that. A name is a function of
// the group's UID, and no group created a VM that is older than itself, by more than the clocks of API servers differ: a
// VM that somebody made a member of the group by an owner reference has another name. No group imports servers.
func createdBy(g *pcapi.VmGroup, members []*pcapi.VM) map[string]bool {
	m := memberNamesOf(g)
	open := map[suffix]bool{}
	for _, vm := range members {
		if s, ok := strings.CutPrefix(vm.Name, m.prefix); ok && len(s) == letters && vm.Spec.Import == nil && vm.Spec.VMName == vm.Name && !vm.CreationTimestamp.Add(clockSkew).Before(g.CreationTimestamp.Time) {
			open[suffix([]byte(s))] = true
		}
	}
	created := make(map[string]bool, len(open))
	for n := 0; len(open) > 0 && n < maxNumber; n++ {
		if s := m.suffix(n); open[s] {
			delete(open, s)
			created[m.name(s)] = true
		}
	}
	return created
}

// folderOf is the cloud's folder of a group's members.
func folderOf(g *pcapi.VmGroup) string { return names.Bounded(maxFolder, g.Namespace+"-"+g.Name) }

// labelOf is the value of GroupLabel on a group's members, and their anti-affinity group.
func labelOf(g *pcapi.VmGroup) string {
	return names.Bounded(validation.LabelValueMaxLength, g.Name)
}

func alive(vm *pcapi.VM) bool { return vm.DeletionTimestamp.IsZero() }

// exists reports whether a member has a server, as far as is known.
func exists(vm *pcapi.VM) bool {
	return vm.Status.VMID != "" && vm.Status.State != pcapi.VMStateLost
}

// mayExist reports whether a member may have a server: a claimed one may, too. One that is being
// deleted has none once the operator has removed its finalizer, whatever else keeps the object.
func mayExist(vm *pcapi.VM) bool {
	claimed := controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer)
	return vm.Status.State != pcapi.VMStateLost && (claimed || vm.Status.VMID != "" && alive(vm))
}

// ready reports whether a member runs and its guest is ready, if the spec has a probe.
func ready(vm *pcapi.VM) bool {
	return running(vm) && (vm.Spec.ReadinessProbe == nil || meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.GuestReadyCondition))
}

// isOn reports whether the spec of a member is as a group wants it: to run.
func isOn(vm *pcapi.VM) bool {
	return cmp.Or(vm.Spec.PowerState, pcapi.PowerOn) == pcapi.PowerOn
}

// running reports whether the status of a member is Ready for the current spec, and it is to run.
func running(vm *pcapi.VM) bool {
	return isOn(vm) && vm.Status.ObservedGeneration == vm.Generation && meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition)
}

// available reports whether a member counts as one that is not missing. A new one has to be
// ready; one of an older revision only has to run: its guest may serve although the probe
// does not find it ready, as one without VMware Tools.
func available(vm *pcapi.VM, revision string) bool {
	if vm.Labels[pcapi.RevisionLabel] == revision {
		return ready(vm)
	}
	return running(vm)
}

func readyReason(vm *pcapi.VM) string {
	if c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.ReadyCondition); c != nil {
		return c.Reason
	}
	return ""
}

// failed reports whether a member is to be replaced by another: the cloud reports
// its server in error, or its name is taken.
func failed(vm *pcapi.VM) bool {
	return inError(vm) || nameless(vm)
}

// inError reports whether the cloud reports the server of a member in error.
func inError(vm *pcapi.VM) bool {
	return exists(vm) && readyReason(vm) == pcapi.ServerErrorReason
}

// nameless reports whether a member has no server because its name is taken.
func nameless(vm *pcapi.VM) bool {
	return vm.Status.VMID == "" && readyReason(vm) == pcapi.TakenReason
}

// stalled returns the Stalled condition of a member; nil if it is not stalled.
func stalled(vm *pcapi.VM) *metav1.Condition {
	if c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.StalledCondition); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// blocked reports whether the deletion of a member waits for a person to act.
func blocked(vm *pcapi.VM) bool {
	c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.DeletingCondition)
	return c != nil && c.Reason == pcapi.BlockedReason
}

// victims returns the n members to delete first: those that are not protected, those that
// are annotated for it, those that are not Ready, those of an older revision, then by policy.
func victims(members []*pcapi.VM, n int, policy pcapi.ScaleDownPolicy, revision string) []*pcapi.VM {
	places := make([]place, len(members))
	for i, vm := range members {
		places[i] = placeOf(vm, policy, revision)
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.key, b.key), cmp.Compare(a.vm.Name, b.vm.Name))
	})
	first := make([]*pcapi.VM, max(0, min(n, len(places))))
	for i := range first {
		first[i] = places[i].vm
	}
	return first
}

// place is when a member is deleted: by rank, then by key, which is that of the policy.
type place struct {
	vm   *pcapi.VM
	rank int
	key  int64
}

func placeOf(vm *pcapi.VM, policy pcapi.ScaleDownPolicy, revision string) place {
	p := place{vm: vm}
	for _, last := range []bool{pcapi.Protected(vm), !pcapi.DeletedFirst(vm), ready(vm), vm.Labels[pcapi.RevisionLabel] == revision} {
		p.rank *= 2
		if last {
			p.rank++
		}
	}
	switch policy {
	case pcapi.ScaleDownOldest:
		p.key = vm.CreationTimestamp.Unix()
	case pcapi.ScaleDownLeastUtilised:
		p.key = int64(ptr.Deref(vm.Status.CPUUtilization, 0))
	case pcapi.ScaleDownRandom:
		// A hash of the UID: random, and the same in every reconcile.
		sum := sha256.Sum256([]byte(vm.UID))
		p.key = int64(binary.BigEndian.Uint64(sum[:]) ^ 1<<63) //nolint:gosec // in the order of the hashes
	default:
		p.key = -vm.CreationTimestamp.Unix()
	}
	return p
}
