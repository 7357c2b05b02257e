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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// goal is what a run expects of a VM object and its server.
type goal int

const (
	// runs: the object is Ready and has exactly one server.
	runs goal = iota
	// gone: neither object nor server exists.
	gone
	// released: the object is gone and its server exists without an owner.
	released
	// refused: the object is Stalled and has no server.
	refused
	// readyOrUndecided: the object is Ready, or reports that a user has to decide;
	// there is one server in both cases.
	readyOrUndecided
	// goneOrUndecided: neither object nor server exists, or the object reports that a
	// user has to decide, and there is one server, which may be a foreign one.
	goneOrUndecided
	// contends: the object is Ready with its server, or refused; exactly one of
	// all that contend is Ready.
	contends
	// waits: the plan of the object is not approved.
	waits
)

// undecided are the reasons of a Stalled condition by which a user has to decide.
var undecided = []string{pcapi.AmbiguousReason, pcapi.DriftReason, pcapi.LabelsMissingReason, pcapi.BlockedReason, pcapi.OutcomeUnknownReason}

// reached returns what is missing for the goals of the run; nil if nothing.
func (w *world) reached() error {
	if err := w.groupReached(); err != nil {
		return err
	}
	contenders, winners := 0, 0
	for name, goal := range w.goals {
		vm := w.recorder.vm(name)
		is, why := w.readyOrStalled(vm)
		well := false
		switch goal {
		case gone, released:
			well = vm == nil || w.losesServer(vm)
		case runs:
			well = w.has(vm)
		case refused:
			well = why != ""
		case waits:
			well = waitsForApproval(vm)
		case readyOrUndecided:
			well = is || slices.Contains(undecided, why)
		case goneOrUndecided:
			well = vm == nil || slices.Contains(undecided, why)
		case contends:
			contenders++
			well = w.has(vm) || why == pcapi.TakenReason || why == pcapi.AmbiguousReason
			if w.has(vm) {
				winners++
			}
		}
		if !well {
			return fmt.Errorf("%s is not as expected: %s", name, describe(vm))
		}
	}
	if contenders > 0 && winners != 1 {
		return fmt.Errorf("%d of those that createContenders are ready", winners)
	}
	if err := w.restartReached(); err != nil {
		return err
	}
	if err := w.revertReached(); err != nil {
		return err
	}
	if err := w.snapshotReached(); err != nil {
		return err
	}
	return w.networksReached()
}

// losesServer reports whether a VM waits for a person because its server is gone and a stranger has the id.
func (w *world) losesServer(vm *pcapi.VM) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, isStrangers := w.foreign[vm.Status.VMID]
	return w.givenToStranger(vm.Status.Conditions, isStrangers)
}

// has reports whether a VM has its server and its finalizer.
func (w *world) has(vm *pcapi.VM) bool {
	is, _ := w.readyOrStalled(vm)
	return is && controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer)
}

// readyOrStalled reports whether an object is Ready, and the reason if it is Stalled.
func (w *world) readyOrStalled(vm *pcapi.VM) (is bool, why string) {
	if vm == nil {
		return false, ""
	}
	c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.StalledCondition)
	if c != nil && c.ObservedGeneration == vm.Generation {
		return false, c.Reason
	}
	return w.ready(vm), ""
}

// ready reports whether the status is of the current spec, is Ready and includes
// the CPU use, which a core cloud reports later: no more writes are expected. A
// cloud that mistypes the CPU use never reports it, and no cloud has one of a VM that is
// stopped or suspended.
func (w *world) ready(vm *pcapi.VM) bool {
	c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.ReadyCondition)
	measured := vm.Status.CPUUtilization != nil || w.profile.mock.Quirks.WrongTypes || vm.Status.State == pcapi.VMStateSuspended ||
		vm.Status.State == pcapi.VMStateStopped
	return c != nil && c.Status == "True" && c.ObservedGeneration == vm.Generation && vm.Status.VMID != "" && measured
}

func describe(vm *pcapi.VM) string {
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

// violations returns what is wrong at rest, and what was wrong at any time.
func (w *world) violations() []error {
	var violations []error
	for _, text := range slices.Concat(w.wrongAtAnyTime(), w.serverViolations(), w.groupViolations(), w.networkViolations(), w.snapshotViolations(), w.restartViolations(), w.revertViolations(), w.keptViolations()) {
		violations = append(violations, errors.New(text))
	}
	return violations
}

// wrongAtAnyTime returns what was wrong at any time, whatever the goals are.
func (w *world) wrongAtAnyTime() []string {
	wrong := slices.Concat(w.recorder.violations(), w.foreignChanges())
	if w.profile.exact {
		wrong = append(wrong, w.duplicates()...)
	}
	return wrong
}

// duplicates returns a violation for each VM that had two servers at a time. In a
// run each VM has a name of its own, and only the operator is a client of the mock.
func (w *world) duplicates() []string {
	byName := w.stock.Ledger()
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

// foreignChanges returns a violation for each foreign server that was changed or deleted.
func (w *world) foreignChanges() []string {
	var wrong []string
	use := cmpopts.IgnoreFields(mockcloud.Server{}, "CPUUtilization", "CPUUsageMHz", "MemoryUsageMB")
	for id, was := range w.foreign {
		is, found := w.stock.Server(id)
		if diff := gocmp.Diff(was, is, use); !found {
			wrong = append(wrong, fmt.Sprintf("foreign server %s is gone", was.Name))
		} else if diff != "" {
			wrong = append(wrong, fmt.Sprintf("foreign server %s was changed (-was +is):\n%s", was.Name, diff))
		}
	}
	return wrong
}

// serverViolations compares the servers with the goals of the VM objects.
func (w *world) serverViolations() []string {
	var wrong []string
	alive := map[string][]mockcloud.Server{}
	for _, s := range w.ownServers() {
		alive[w.objectOf(s.Name)] = append(alive[w.objectOf(s.Name)], s)
	}
	goals := maps.Clone(w.goals)
	for _, vm := range w.recorder.members() {
		goals[vm.Name] = runs
	}
	for name, goal := range goals {
		if goal == contends && !w.has(w.recorder.vm(name)) {
			continue
		}
		have := alive[name]
		delete(alive, name)
		want := 1
		vm := w.recorder.vm(name)
		if goal == gone || goal == refused || vm != nil && w.losesServer(vm) || goal == goneOrUndecided && vm == nil {
			want = 0
		}
		if goal == goneOrUndecided && (w.profile.sharedNames || w.profile.recycles) && len(have) == 0 {
			continue
		}
		if len(have) != want {
			wrong = append(wrong, fmt.Sprintf("%s has %d servers at rest, not %d", name, len(have), want))
			continue
		}
		if want == 1 {
			wrong = append(wrong, w.ownerViolations(name, goal, have[0])...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(alive)) {
		wrong = append(wrong, fmt.Sprintf("server %s was created for no object", name))
	}
	return wrong
}

// ownerViolations compares a server with the object that owns it, or has released it.
func (w *world) ownerViolations(name string, goal goal, server mockcloud.Server) []string {
	label := server.Labels[inventory.UIDLabel]
	if goal == released {
		if label != "" {
			return []string{fmt.Sprintf("server %s was released and still has the owner label %s", name, label)}
		}
		return nil
	}
	vm := w.recorder.vm(name)
	switch {
	case vm == nil:
		return []string{fmt.Sprintf("server %s has no object", name)}
	case vm.Status.VMID == "" && (goal == readyOrUndecided || goal == goneOrUndecided):
	case vm.Status.VMID != server.ID:
		return []string{fmt.Sprintf("status.vmId of %s is %q, its server is %s", name, vm.Status.VMID, server.ID)}
	case label != "" && label != string(vm.UID):
		return []string{fmt.Sprintf("server %s has the owner label of another object, %s", name, label)}
	}
	if !w.has(vm) {
		return classViolations(vm, server)
	}
	return slices.Concat(classViolations(vm, server), diskViolations(vm, server), tagViolations(vm, server), placementViolations(vm, server), powerViolations(vm, server), interfaceViolations(vm, server))
}

// objectOf returns the name of the object whose server has, or had, a name: of
// those that contend for it, the one that has it.
func (w *world) objectOf(server string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	// Objects have names in lower case; those of servers may differ, see spelled.
	server = strings.TrimSuffix(strings.ToLower(server), accent)
	if server != contested {
		return cmp.Or(w.renamed[server], server)
	}
	for name, goal := range w.goals {
		if goal == contends && w.has(w.recorder.vm(name)) {
			return name
		}
	}
	return server
}

// ownServers returns the servers that are not foreign.
func (w *world) ownServers() []mockcloud.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(w.stock.Servers(), func(s mockcloud.Server) bool {
		_, isForeign := w.foreign[s.ID]
		return isForeign
	})
}

// remainsOf describes the server of a VM whose object is gone. There must be none,
// unless it was released or belongs to another object.
func (w *world) remainsOf(vm *pcapi.VM) string {
	if vm.Spec.DeletionPolicy == pcapi.DeletionPolicyOrphan {
		return ""
	}
	for _, s := range w.ownServers() {
		mine := w.objectOf(s.Name) == vm.Name || s.ID == vm.Status.VMID && !w.profile.recycles
		if mine && !w.recorder.hasServer(s.ID, vm.UID) {
			return fmt.Sprintf("its server %s is %s", s.ID, cmp.Or(string(s.State), "there"))
		}
	}
	return ""
}
