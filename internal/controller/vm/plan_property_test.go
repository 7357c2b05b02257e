package vm

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// mutations are the steps that change something in the cloud.
var mutations = []string{stepCreate, stepLabel, stepUpdate, stepDeleteDuplicate, stepDelete, stepUnlabel}

var allSteps = slices.Concat(mutations, []string{stepCheckName, stepClaim, stepUnclaim, stepLook, stepAdopt, stepConfirmGone, stepRelease})

// lawful checks what must hold of every plan, whatever was seen.
func lawful(vm *v1alpha1.VM, obs *scope, steps []string, outcome error) error {
	for _, law := range []func(*v1alpha1.VM, *scope, []string, error) error{
		lawOfSteps, lawOfCreate, lawOfRename, lawOfMove, lawOfDelete, lawOfRelease, lawOfOutcomes,
	} {
		if err := law(vm, obs, steps, outcome); err != nil {
			return err
		}
	}
	return nil
}

func lawOfSteps(vm *v1alpha1.VM, _ *scope, steps []string, _ error) error {
	changes := 0
	for i, step := range steps {
		if !slices.Contains(allSteps, step) {
			return fmt.Errorf("%s is not a step", step)
		}
		if slices.Index(steps, step) != i {
			return fmt.Errorf("%s is taken twice", step)
		}
		if slices.Contains(mutations, step) {
			changes++
		}
	}
	switch {
	case changes > 1:
		return errors.New("more than one step changes the cloud")
	case changes > 0 && vm.Spec.ManagementPolicy == v1alpha1.ManagementPolicyObserveOnly && !slices.Contains(steps, stepUnlabel):
		return errors.New("the cloud is changed for a VM that is only to be observed")
	case slices.Contains(steps, stepRelease) && steps[len(steps)-1] != stepRelease:
		return errors.New("something is done after the object was let go")
	case slices.Contains(steps, stepRelease) && vm.DeletionTimestamp.IsZero():
		return errors.New("an object is let go that is not being deleted")
	}
	return nil
}

// proved tells whether the search found a server that is certainly this VM's.
func proved(obs *scope) bool {
	n := len(obs.candidates)
	return (obs.proof == labelProof && n > 0) || (obs.proof == nameProof && n == 1)
}

func lawOfCreate(vm *v1alpha1.VM, obs *scope, steps []string, _ error) error {
	create := slices.Index(steps, stepCreate)
	if create < 0 {
		return nil
	}
	asked := create == 2 && slices.Equal(steps[:2], []string{stepCheckName, stepClaim})
	keyed := obs.caps().Has(cloud.Idempotency) && obs.claimed == vm.Spec.VMName
	switch {
	case !vm.DeletionTimestamp.IsZero(), vm.Status.VMID != "", vm.Spec.Import != nil, obs.denied != nil:
		return errors.New("a create for a VM that has, or may have, no new server")
	case proved(obs):
		return errors.New("a create although the VM's server was found")
	case obs.claimed != "" && !obs.looked:
		return errors.New("a create before the server of an earlier one was looked for")
	case !keyed && len(obs.candidates) > 0:
		return errors.New("a create although a server was found that may be the VM's")
	case !keyed && obs.settles > 0:
		return errors.New("a create while an earlier one may still take effect")
	case !asked && (create != 0 || obs.claimed != vm.Spec.VMName):
		return errors.New("a create under a name that was not checked and claimed before")
	case obs.detached != nil:
		return errors.New("a create although the Network cannot take the VM")
	case !asked && obs.rival != nil:
		return errors.New("a create under a name that another VM object has")
	case asked && (obs.nameErr != nil || obs.rival != nil):
		return errors.New("a name asked for that was refused lately")
	}
	return nil
}

// lawOfRename: the name on the claim finds the server of an earlier create, so
// it is replaced only when nothing can come of that create any more.
func lawOfRename(vm *v1alpha1.VM, obs *scope, steps []string, _ error) error {
	if obs.claimed == "" || vm.Status.VMID != "" || vm.Spec.Import != nil || !vm.DeletionTimestamp.IsZero() {
		return nil
	}
	if (slices.Contains(steps, stepClaim) || slices.Contains(steps, stepUnclaim)) &&
		(!obs.looked || len(obs.candidates) > 0 || obs.settles > 0) {
		return errors.New("the name of a create is forgotten that may still take effect")
	}
	return nil
}

// lawOfMove: once a create may have been sent to one Cloud, the VM does not go
// to another, nor is anything made of what an edit of cloudRef means.
func lawOfMove(vm *v1alpha1.VM, obs *scope, steps []string, _ error) error {
	if !obs.moved || !vm.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, step := range []string{stepCreate, stepClaim, stepAdopt, stepLabel, stepUpdate} {
		if slices.Contains(steps, step) {
			return fmt.Errorf("%s on a Cloud that the spec does not name", step)
		}
	}
	return nil
}

func lawOfDelete(vm *v1alpha1.VM, obs *scope, steps []string, _ error) error {
	adopts := slices.Contains(steps, stepAdopt)
	kept := vm.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan
	switch {
	case slices.Contains(steps, stepDelete):
		ours := (obs.server != nil && obs.owned) || (adopts && proved(obs) && len(obs.candidates) == 1)
		accepted := vm.Spec.Import == nil || vm.Status.VMID != "" || obs.server.Name == vm.Spec.VMName
		switch {
		case vm.DeletionTimestamp.IsZero(), kept:
			return errors.New("a server is deleted that is to stay")
		case !ours, !accepted, obs.rival != nil:
			return errors.New("a server is deleted that is not proved ours")
		case !slices.Contains(steps, stepConfirmGone):
			return errors.New("a deletion that is not confirmed")
		}
	case slices.Contains(steps, stepDeleteDuplicate):
		among := obs.proof == labelProof && len(obs.candidates) > 1 && adopts
		beside := obs.server != nil && obs.owned && len(obs.duplicates) > 0
		if !among && !beside {
			return errors.New("a duplicate is deleted where there is none that is proved ours")
		}
	case slices.Contains(steps, stepUpdate) && (obs.server == nil || !obs.owned || obs.rival != nil):
		return errors.New("a server is changed that is not ours")
	case slices.Contains(steps, stepUnlabel) && !obs.owned && (!adopts || !proved(obs)):
		return errors.New("a server loses its labels that is not ours")
	case slices.Contains(steps, stepLabel) && (vm.Spec.Import == nil || obs.server == nil || obs.rival != nil || obs.foreign):
		return errors.New("a server is labelled as ours that is not ours to take over")
	}
	return nil
}

// contested tells whether another VM object has the server, or its name.
func contested(obs *scope) bool { return obs.rival != nil }

func lawOfRelease(vm *v1alpha1.VM, obs *scope, steps []string, _ error) error {
	managed := vm.Spec.ManagementPolicy != v1alpha1.ManagementPolicyObserveOnly
	unaccepted := vm.Status.VMID == "" && vm.Spec.Import != nil && obs.server != nil && (!obs.owned || obs.server.Name != vm.Spec.VMName)
	nothingCame := vm.Status.VMID == "" && vm.Spec.Import == nil && obs.looked && obs.settles == 0 && len(obs.candidates) == 0
	kept := !managed || vm.Spec.DeletionPolicy == v1alpha1.DeletionPolicyOrphan
	if slices.Contains(steps, stepRelease) && !slices.Contains(steps, stepConfirmGone) && !kept && !nothingCame && !unaccepted && !contested(obs) {
		return errors.New("an object is let go whose server is not proved gone")
	}
	return nil
}

func lawOfOutcomes(vm *v1alpha1.VM, obs *scope, steps []string, outcome error) error {
	_, waits := errors.AsType[*reconciler.WaitError](outcome)
	_, blocks := errors.AsType[*reconciler.BlockedError](outcome)
	_, stalls := errors.AsType[*reconciler.StalledError](outcome)
	known := outcome == nil || waits || blocks || stalls || errors.Is(outcome, reconciler.ErrUnknown)
	// Without a server, in sync can only be true after a step that finds, makes or proves something.
	idle := outcome == nil && len(steps) == 0 && (vm.Status.VMID == "" || obs.server == nil || !vm.DeletionTimestamp.IsZero())
	switch {
	case !known:
		return fmt.Errorf("%w is no outcome", outcome)
	case (waits || blocks || stalls) && (reconciler.Reason(outcome) == "" || outcome.Error() == ""):
		return errors.New("a outcome without reason or message")
	case idle:
		return errors.New("nothing to do, and yet not in sync")
	}
	return nil
}

// pick returns one of n values, 0 to n-1.
type pick func(n int) int

func (p pick) bool() bool { return p(2) == 1 }

func one[T any](p pick, values ...T) T { return values[p(len(values))] }

// exhaust calls body with every sequence of picks that it can make.
func exhaust(body func(pick)) int {
	var digits, limits []int
	for n := 1; ; n++ {
		at := 0
		body(func(limit int) int {
			if at == len(digits) {
				digits, limits = append(digits, 0), append(limits, limit)
			}
			at++
			return digits[at-1]
		})
		last := at - 1
		for last >= 0 && digits[last]+1 == limits[last] {
			last--
		}
		if last < 0 {
			return n
		}
		digits, limits = digits[:last+1], limits[:last+1]
		digits[last]++
	}
}

// situation picks a VM and a scope that Observe can come back with.
func situation(p pick) (*v1alpha1.VM, *scope) {
	vm := vmWith()
	obs := seeing(one(p, everything, tokenless, named, nameless, without(cloud.Labels), without(cloud.Labels, cloud.UniqueNames),
		without(cloud.Idempotency, cloud.UniqueNames), without(cloud.Resize, cloud.Power, cloud.Sizing)))
	going := p.bool()
	if going {
		deleted(vm)
		vm.Spec.DeletionPolicy = one(p, v1alpha1.DeletionPolicyDelete, v1alpha1.DeletionPolicyOrphan)
	}
	switch p(3) {
	case 1:
		away(obs)
	case 2:
		denied(obs)
		if obs.cloudless = going; going {
			away(obs)
		}
	}
	if p.bool() {
		situationKnown(p, vm, obs)
	} else {
		situationUnrecorded(p, vm, obs)
	}
	return vm, obs
}

// situationKnown: the server's id is on record, or to be imported.
func situationKnown(p pick, vm *v1alpha1.VM, obs *scope) {
	switch p(3) {
	case 0:
		recorded(vm)
	case 1:
		importing(vm)
	default:
		recorded(vm)
		importing(vm)
	}
	if p.bool() {
		observeOnly(vm)
	}
	if !vm.DeletionTimestamp.IsZero() || p.bool() {
		obs.claimed = "web"
	}
	labels := obs.caps().Has(cloud.Labels)
	if vm.Status.VMID == "" {
		obs.moved = obs.claimed != "" && p.bool()
	}
	if (vm.Status.VMID == "" || !labels) && p.bool() {
		obs.rival = errRival
	}
	switch p(3) {
	case 0:
	case 1:
		obs.gone = true
	default:
		s := serverWith(in(one(p, cloud.StateActive, cloud.StateStopped, cloud.StateBuilding, cloud.StateDeleting, cloud.StateError, cloud.StateUnknown)),
			called(one(p, "web", "db")), cores(one(p, 2, 1)))
		obs.server, obs.how, obs.owned = &s, v1alpha1.CreatedReason, true
		if !labels {
			return
		}
		switch p(5) {
		case 0:
		case 1:
			obs.duplicates = []cloud.Server{serverWith(id("s2"))}
		case 2:
			obs.owned, s.Labels = false, map[string]string{inventory.UIDLabel: "uid-other", inventory.ClusterLabel: "cluster"}
		case 3:
			obs.owned, obs.foreign, s.Labels = false, true, map[string]string{inventory.UIDLabel: "uid-other", inventory.ClusterLabel: "other"}
		default:
			obs.owned, s.Labels = false, nil
		}
	}
}

// situationUnrecorded: no server is known, but a create may have been sent.
func situationUnrecorded(p pick, vm *v1alpha1.VM, obs *scope) {
	labels, unique := obs.caps().Has(cloud.Labels), obs.caps().Has(cloud.UniqueNames)
	if vm.DeletionTimestamp.IsZero() {
		obs.nameErr = one[error](p, nil, errProhibited)
		if p.bool() {
			if !labels && unique && p.bool() {
				obs.rival = errRival
			}
			return
		}
	}
	obs.claimed = one(p, "web", "former")
	obs.looked, obs.moved = p.bool(), p.bool()
	if p.bool() {
		detached(obs)
	}
	if p.bool() {
		obs.settles = time.Minute
	}
	var servers []cloud.Server
	switch p(3) {
	case 1:
		servers = []cloud.Server{serverWith(in(one(p, cloud.StateActive, cloud.StateBuilding, cloud.StateDeleting)), called(obs.claimed), cores(one(p, 2, 1)))}
	case 2:
		servers = []cloud.Server{serverWith(called(obs.claimed)), serverWith(id("s2"), called(obs.claimed), in(one(p, cloud.StateActive, cloud.StateDeleting)))}
	}
	switch {
	case len(servers) > 0 && (labels || p.bool()):
		obs.proof, obs.candidates = labelProof, servers
	case !labels && obs.looked:
		obs.candidates = servers
		if unique {
			obs.proof = nameProof
		}
		if unique && p.bool() {
			obs.rival, obs.candidates = errRival, nil
		}
	}
}

// sketch puts a situation into words.
func sketch(vm *v1alpha1.VM, obs *scope) string {
	return fmt.Sprintf("vmId %q, import %v, %s, %s, deleted %t\ncaps %v, away %q, denied %v\nserver %+v, gone %t, owned %t, foreign %t, moved %t, duplicates %d\n"+
		"claimed %q, looked %t, settles %v, proof %d, candidates %+v, nameErr %v, rival %v",
		vm.Status.VMID, vm.Spec.Import, vm.Spec.DeletionPolicy, vm.Spec.ManagementPolicy, !vm.DeletionTimestamp.IsZero(),
		obs.caps(), obs.view.Unavailable, obs.denied, obs.server, obs.gone, obs.owned, obs.foreign, obs.moved, len(obs.duplicates),
		obs.claimed, obs.looked, obs.settles, obs.proof, obs.candidates, obs.nameErr, obs.rival)
}

func TestEveryPlanIsLawful(t *testing.T) {
	broken := 0
	n := exhaust(func(p pick) {
		vm, obs := situation(p)
		steps, outcome := plan(vm, obs)
		if err := lawful(vm, obs, steps, outcome); err != nil && broken < 10 {
			broken++
			t.Errorf("%v\nplan %v, %s\n%s", err, steps, said(outcome), sketch(vm, obs))
		}
	})
	if n < 30_000 {
		t.Errorf("%d situations: most were never picked", n)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte{}, "web", "web", int32(2), 2)
	f.Add([]byte{0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 2}, "web", "", int32(0), 0)
	f.Add([]byte{1, 3, 0, 0, 1, 0, 2, 1, 1, 0, 1, 2}, "", "db", int32(-1), 1<<30)
	f.Add([]byte{255, 254, 253, 252, 251, 250, 249, 248, 247, 246}, "\xff", "%s%d", int32(1<<30), -1)
	f.Fuzz(func(t *testing.T, data []byte, wanted, has string, cores int32, cpu int) {
		at := -1
		vm, obs := situation(func(n int) int {
			at++
			if at >= len(data) {
				return 0
			}
			return int(data[at]) % n
		})
		vm.Spec.VMName, vm.Spec.CPU = wanted, &cores
		for i := range obs.candidates {
			obs.candidates[i].Name, obs.candidates[i].CPU = has, cpu
		}
		if obs.server != nil {
			obs.server.Name, obs.server.CPU = has, cpu
		}
		before, was := vm.DeepCopy(), sketch(vm, obs)
		steps, outcome := plan(vm, obs)
		if err := lawful(vm, obs, steps, outcome); err != nil {
			t.Errorf("%v\nplan %v, %s\n%s", err, steps, said(outcome), was)
		}
		if diff := cmp.Diff(before, vm) + cmp.Diff(was, sketch(vm, obs)); diff != "" {
			t.Errorf("plan changed what it read:\n%s", diff)
		}
		again, outcomeAgain := plan(vm, obs)
		if diff := cmp.Diff(decision{steps, said(outcome)}, decision{again, said(outcomeAgain)}); diff != "" {
			t.Errorf("the same situation was decided in two ways:\n%s", diff)
		}
		report(vm, obs, outcome)
	})
}
