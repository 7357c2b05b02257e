package faults

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// fate is what is to become of a VM object and its server.
type fate int

const (
	// runs: the object is Ready and has exactly one server.
	runs fate = iota
	// gone: neither object nor server is left.
	gone
	// released: the object is gone, its server lives on and is nobody's.
	released
	// refused: the object stands and has no server.
	refused
	// told: the object is Ready, or says that it needs somebody's decision;
	// there is one server either way.
	told
	// goneOrTold: neither object nor server is left, or the object says that it
	// needs somebody's decision, and there is one server, which may be a stranger's.
	goneOrTold
	// contends: the object is Ready with its server, or refused; exactly one of
	// all that contend is Ready.
	contends
)

// undecided are the reasons of a Ready condition that ask for a decision.
var undecided = []string{v1alpha1.AmbiguousReason, v1alpha1.DriftReason, v1alpha1.BlockedReason}

// reached says what is still missing of the fates that w wants; nil if nothing.
func (w *world) reached() error {
	if err := w.grouped(); err != nil {
		return err
	}
	contenders, winners := 0, 0
	for name, fate := range w.wants {
		vm := w.recorder.vm(name)
		is, why := stands(vm)
		well := false
		switch fate {
		case gone, released:
			well = vm == nil
		case runs:
			well = is
		case refused:
			well = why != ""
		case told:
			well = is || slices.Contains(undecided, why)
		case goneOrTold:
			well = vm == nil || slices.Contains(undecided, why)
		case contends:
			contenders++
			well = is || why == v1alpha1.TakenReason || why == v1alpha1.AmbiguousReason
			if is {
				winners++
			}
		}
		if !well {
			return fmt.Errorf("%s is not as wanted: %s", name, brief(vm))
		}
	}
	if contenders > 0 && winners != 1 {
		return fmt.Errorf("%d of those that contend are ready", winners)
	}
	return w.wired()
}

// stands tells whether an object is Ready, and if it is Stalled, why.
func stands(vm *v1alpha1.VM) (is bool, why string) {
	if vm == nil {
		return false, ""
	}
	c := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.StalledCondition)
	if c != nil && c.ObservedGeneration == vm.Generation {
		return false, c.Reason
	}
	return ready(vm), ""
}

// ready: the status answers to this very spec, says that all is well, and what
// a core cloud only tells later is in it, too: no more writes are to come.
func ready(vm *v1alpha1.VM) bool {
	c := meta.FindStatusCondition(vm.Status.Conditions, v1alpha1.ReadyCondition)
	return c != nil && c.Status == "True" && c.ObservedGeneration == vm.Generation && vm.Status.VMID != "" && vm.Status.CPUUtilization != nil
}

func brief(vm *v1alpha1.VM) string {
	if vm == nil {
		return "there is no such object"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "vmId %q, state %s, generation %d", vm.Status.VMID, vm.Status.State, vm.Generation)
	for _, c := range vm.Status.Conditions {
		fmt.Fprintf(&text, "; %s=%s %s %q", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}

// violations is what is wrong with the world at rest, and what ever was.
func (w *world) violations() []error {
	wrong := w.recorder.violations()
	if w.profile.exact {
		wrong = append(wrong, w.twice()...)
	}
	var violations []error
	for _, text := range slices.Concat(wrong, w.foreignHarm(), w.servers(), w.crowded(), w.crossed()) {
		violations = append(violations, errors.New(text))
	}
	return violations
}

// twice tells of VMs that had two servers at a time. In a run each VM has a
// name of its own, and only the operator is a client of the mock.
func (w *world) twice() []string {
	byName := w.mock.Ledger()
	for i := range byName {
		byName[i].Labels = nil
		if byName[i].By == mockcloud.ByClient {
			byName[i].Labels = map[string]string{"name": w.objectOf(byName[i].Name)}
		}
	}
	most := mockcloud.MostAlive(byName, "name")
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(most)) {
		if most[name] > 1 {
			wrong = append(wrong, fmt.Sprintf("%d servers of %s were alive at once", most[name], name))
		}
	}
	return wrong
}

// foreignHarm tells of strangers' servers that are not as they were.
func (w *world) foreignHarm() []string {
	var wrong []string
	use := cmpopts.IgnoreFields(mockcloud.Server{}, "CPUUtilization", "CPUUsageMHz", "MemoryUsageMB")
	for id, was := range w.strangers {
		is, found := w.mock.Server(id)
		if diff := gocmp.Diff(was, is, use); !found {
			wrong = append(wrong, fmt.Sprintf("the stranger's server %s is gone", was.Name))
		} else if diff != "" {
			wrong = append(wrong, fmt.Sprintf("the stranger's server %s was changed (-was +is):\n%s", was.Name, diff))
		}
	}
	return wrong
}

// servers compares what is alive with what the VM objects are meant to have.
func (w *world) servers() []string {
	var wrong []string
	alive := map[string][]mockcloud.Server{}
	for _, s := range w.ours() {
		alive[w.objectOf(s.Name)] = append(alive[w.objectOf(s.Name)], s)
	}
	wants := maps.Clone(w.wants)
	for _, vm := range w.recorder.members() {
		wants[vm.Name] = runs
	}
	for name, fate := range wants {
		if is, _ := stands(w.recorder.vm(name)); fate == contends && !is {
			continue
		}
		have := alive[name]
		delete(alive, name)
		want := 1
		if fate == gone || fate == refused || fate == goneOrTold && w.recorder.vm(name) == nil {
			want = 0
		}
		if fate == goneOrTold && w.profile.namesakes && len(have) == 0 {
			continue
		}
		if len(have) != want {
			wrong = append(wrong, fmt.Sprintf("%s has %d servers at rest, not %d", name, len(have), want))
			continue
		}
		if want == 1 {
			wrong = append(wrong, w.belongs(name, fate, have[0])...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(alive)) {
		wrong = append(wrong, fmt.Sprintf("server %s was made for no object", name))
	}
	return wrong
}

// belongs compares a server with the one object that has it, or has let go of it.
func (w *world) belongs(name string, fate fate, server mockcloud.Server) []string {
	label := server.Labels[inventory.UIDLabel]
	if fate == released {
		if label != "" {
			return []string{fmt.Sprintf("server %s was released and still bears owner label %s", name, label)}
		}
		return nil
	}
	vm := w.recorder.vm(name)
	switch {
	case vm == nil:
		return []string{fmt.Sprintf("server %s has no object", name)}
	case vm.Status.VMID == "" && (fate == told || fate == goneOrTold):
	case vm.Status.VMID != server.ID:
		return []string{fmt.Sprintf("status.vmId of %s is %q, its server is %s", name, vm.Status.VMID, server.ID)}
	case label != "" && label != string(vm.UID):
		return []string{fmt.Sprintf("server %s bears the owner label of another object, %s", name, label)}
	}
	return nil
}

// objectOf is the name of the object whose server has, or had, a name: of those
// that contend for it, the one that is Ready.
func (w *world) objectOf(server string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if server != contested {
		return cmp.Or(w.renamed[server], server)
	}
	for name, fate := range w.wants {
		if is, _ := stands(w.recorder.vm(name)); is && fate == contends {
			return name
		}
	}
	return server
}

// ours are the servers that are there and no stranger's.
func (w *world) ours() []mockcloud.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.mock.Servers(), func(s mockcloud.Server) bool {
		_, stranger := w.strangers[s.ID]
		return stranger
	})
}

// leftOf says what is left of a VM's server when its object goes: nothing must
// be, unless it was to be released or is another's.
func (w *world) leftOf(vm *v1alpha1.VM) string {
	if vm.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan {
		return ""
	}
	for _, s := range w.ours() {
		mine := s.ID == vm.Status.VMID || w.objectOf(s.Name) == vm.Name
		if mine && !w.recorder.records(s.ID, vm.UID) {
			return fmt.Sprintf("its server %s is %s", s.ID, cmp.Or(string(s.State), "there"))
		}
	}
	return ""
}
