package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// The clouds, by how they prove which object owns a server; bare and notExclusive prove
// nothing.
var (
	extended     = profile{name: "extended", exact: true}
	core         = profile{name: "core with exclusive names", exact: true, rest: exclusive, mock: mockcloud.Options{Profile: mockcloud.Core}}
	notExclusive = profile{name: "core with unique names", exact: true, mock: mockcloud.Options{Profile: mockcloud.Core}}
	keyless      = profile{name: "extended without idempotency", exact: true, mock: without(mockcloud.Idempotency)}
	unmarked     = profile{name: "extended without labels", exact: true, rest: exclusive, mock: without(mockcloud.Labels)}
	keyed        = profile{name: "idempotency only", exact: true, sharedNames: true, mock: without(mockcloud.Labels, mockcloud.UniqueNames)}
	claimed      = profile{name: "extended, VMs created with their claim", exact: true, claimed: true}
	claimedKey   = profile{name: "keys and labels, VMs created with their claim", exact: true, sharedNames: true, claimed: true, mock: without(mockcloud.UniqueNames)}
	bare         = profile{name: "neither keys, unique names nor labels", exact: true, mock: without(mockcloud.Idempotency, mockcloud.UniqueNames, mockcloud.Labels)}
	operating    = profile{name: "extended with operations", exact: true, mock: withOperations()}
	operatingOne = profile{name: "labels and operations", mock: withOperations(mockcloud.Idempotency, mockcloud.UniqueNames), sharedNames: true}
	onVCenter    = profile{name: "a vCenter", exact: true, vcenter: true}
	labelled     = profile{name: "labels only", sharedNames: true, mock: without(mockcloud.Idempotency, mockcloud.UniqueNames)}
	// These report changes by themselves.
	reporting    = profile{name: "extended with events", exact: true, mock: with(without(), mockcloud.Events)}
	reportingOne = profile{name: "labels and events", sharedNames: true, mock: with(labelled.mock, mockcloud.Events)}
)

// exclusive is of a cloud without labels on which nobody else uses the names of VMs.
var exclusive = &pcapi.RESTCloud{ExclusiveNames: true}

func without(off ...mockcloud.Capability) mockcloud.Options {
	options := mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{}}
	for _, c := range off {
		options.Capabilities[c] = false
	}
	return options
}

// with returns the options of a cloud that has more capabilities.
func with(options mockcloud.Options, on ...mockcloud.Capability) mockcloud.Options {
	options.Capabilities = maps.Clone(options.Capabilities)
	for _, c := range on {
		options.Capabilities[c] = true
	}
	return options
}

// withOperations are the options of a cloud on which each change of a server takes
// longer than an operation may that the status does not show.
func withOperations(off ...mockcloud.Capability) mockcloud.Options {
	options := with(without(off...), mockcloud.Operations)
	options.OperationTime = mockcloud.Duration(2500 * time.Millisecond)
	return options
}

func orphan(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }

// The scenarios of VMs. Those with a create and a delete have all effects of both.
var (
	edited                    = scenario{name: "create, edit, delete", act: []step{createBesideForged(vm), edit(vm, `{"spec":{"cpu":2}}`), remove(vm, gone)}}
	recreated                 = scenario{name: "create, delete, create", act: []step{create(vm), remove(vm, gone), create(vm)}}
	slow                      = scenario{name: "create, delete, both slow", build: slowly, remove: slowly, act: []step{create(vm), remove(vm, gone)}}
	deletedWhileDown          = scenario{name: "create, deleted while no manager runs", act: []step{create(vm)}, crashed: remove(vm, gone)}
	slowDeletedWhileDown      = scenario{name: "create, deleted while no manager runs, both slow", build: slowly, remove: tardily, act: []step{create(vm)}, crashed: remove(vm, gone)}
	editedWhileDown           = scenario{name: "create, edited while no manager runs", act: []step{create(vm)}, crashed: edit(vm, `{"spec":{"cpu":2}}`)}
	renamedWhileDown          = scenario{name: "create, renamed while no manager runs", act: []step{create(vm)}, crashed: rename(vm, "corrected")}
	undecidedCreate           = scenario{name: "create", act: []step{createUndecided}}
	undecidedEditedWhileDown  = scenario{name: "create, edited while no manager runs", act: []step{createUndecided}, crashed: edit(vm, `{"spec":{"cpu":2}}`)}
	undecidedRenamedWhileDown = scenario{name: "create, renamed while no manager runs", act: []step{createUndecided}, crashed: rename(vm, "corrected")}
	undecidedDeletedWhileDown = scenario{name: "create, deleted while no manager runs", act: []step{createUndecided}, crashed: remove(vm, goneOrUndecided)}
	equalNames                = scenario{name: "two create one name, the second is deleted", act: []step{createContenders, removeLoser}}
	twoManagers               = scenario{name: "create by two managers", pair: true, act: []step{create(vm)}}
	// An operation whose reference is lost ends within the settle time.
	lateDeletedWhileDown = scenario{name: "create, deleted while no manager runs, long settle time", act: []step{create(vm)}, crashed: remove(vm, gone), spec: pcapi.CloudSpec{SettleTime: &metav1.Duration{Duration: 2 * settleTime}}}
	firstContact         = scenario{name: "first contact with a cloud", counts: ofClouds, act: []step{create(vm)}}
	imported             = scenario{name: "import, delete", act: []step{importVM(vm), remove(vm, gone)}, spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}}
	orphaned             = scenario{name: "orphan", arrange: []step{create(vm, orphan)}, act: []step{remove(vm, released)}}
	nameTaken            = scenario{name: "create under a taken name, delete", act: []step{createRefused(taken), remove(taken, gone)}}
)

// The scenarios of Networks.
var (
	networkEdited           = scenario{name: "create a network, edit it, delete it", counts: ofNetworks, act: []step{createNetwork, editNetwork, removeNetwork}}
	networkWithVM           = scenario{name: "create a network and a VM on it, delete both", counts: ofNetworks, act: []step{createNetwork, create(vm, onNetwork), removeBoth}}
	networkDeletedWhileDown = scenario{name: "create a network, deleted while no manager runs", counts: ofNetworks, act: []step{createNetwork}, crashed: removeNetwork}
	networkEditedWhileDown  = scenario{name: "create a network, edited while no manager runs", counts: ofNetworks, act: []step{createNetwork}, crashed: editNetwork}
)

// The scenarios of VMSnapshots.
var (
	snapshotDeleted          = scenario{name: "create a snapshot, delete it", counts: ofSnapshots, arrange: []step{create(vm)}, act: []step{createSnapshot, removeSnapshot}}
	snapshotDeletedWhileDown = scenario{name: "create a snapshot, deleted while no manager runs", counts: ofSnapshots, arrange: []step{create(vm)}, act: []step{createSnapshot}, crashed: removeSnapshot}
)

// The scenarios of VMs with a class and user data.
var (
	configured                  = scenario{name: "create with class and user data, delete", act: []step{createConfigured, remove(vm, gone)}}
	configuredReplacedWhileDown = scenario{name: "create, class and user data are replaced while no manager runs", act: []step{createConfigured}, crashed: replaceConfiguration}
	classMoved                  = scenario{name: "move to a larger class", arrange: []step{createInClass}, act: []step{moveToLargeClass}}
)

// diskGrown changes the disks of a VM that was created with one.
var diskGrown = scenario{name: "grow a disk, add another", arrange: []step{create(vm, withDisk)}, act: []step{growDisk}}

// The scenarios of disks that are kept: another one is to be kept, and the VM is deleted after that, or at once.
var (
	diskKept          = scenario{name: "keep another disk, delete", arrange: []step{create(vm, withKeptDisks)}, act: []step{edit(vm, keepsOtherDisk), removeKept}}
	diskKeptWhileDown = scenario{name: "keep another disk, deleted while no manager runs", arrange: []step{create(vm, withKeptDisks)}, act: []step{edit(vm, `{"spec":{"cpu":2}}`)}, crashed: keepAndRemove}
)

// tagged changes the tags of a VM that was created with some.
var tagged = scenario{name: "change tags", arrange: []step{create(vm, withTags)}, act: []step{changeTags}}

// approved creates and resizes a VM, whose plans are approved.
var approved = scenario{name: "create and resize with approvals", act: []step{
	unapproved(create(vm, needsApproval)), approvePlan, unapproved(edit(vm, `{"spec":{"cpu":2}}`)), approvePlan,
}}

// placedInZone creates a VM with a zone and an anti-affinity.
var placedInZone = scenario{name: "create in a zone", act: []step{create(vm, placed)}}

// twoInterfaces creates a VM on two Networks, with a static address on one.
var twoInterfaces = scenario{name: "create with two interfaces", arrange: []step{createNetwork, createSecondNetwork}, act: []step{create(vm, onTwoNetworks)}}

// reverted is a revert of a VM to a VMSnapshot.
var reverted = scenario{name: "revert to a snapshot", arrange: []step{create(vm), createSnapshot}, act: []step{revertVM}}

// restarted is a restart of a VM. A stop of a manager that was killed would stop the server
// again if it took effect late.
var restarted = scenario{name: "restart", arrange: []step{create(vm)}, act: []step{restartVM}}

// suspended is a VM that is suspended, and resumed.
var suspended = scenario{name: "suspend and resume", arrange: []step{create(vm)}, act: []step{edit(vm, `{"spec":{"powerState":"Suspended"}}`), edit(vm, `{"spec":{"powerState":"On"}}`)}}

// beforeAndAfter returns all phases but late.
func beforeAndAfter(effect) []phase { return []phase{before, after} }

// In these scenarios the first listing after a start is the only one within the
// settle time, so that a late server is only listed after the settle time.
var (
	seldom                 = pcapi.CloudSpec{PollInterval: metav1.Duration{Duration: settleTime + 2*time.Second}}
	seldomListed           = scenario{name: "create, seldom listed", act: []step{create(vm)}, spec: seldom}
	seldomDeletedWhileDown = scenario{name: "create, deleted while no manager runs, seldom listed", act: []step{create(vm)}, crashed: remove(vm, gone), spec: seldom}
)

// maxRuns is how many runs go on at a time. They mostly wait.
const maxRuns = 36

// runSlots has an element for each run that goes on. The tests whose runs mostly wait share it, so that the last runs of one test do not
// leave the processors idle.
var runSlots = make(chan struct{}, maxRuns)

// matrixCase is a scenario on a kind of cloud, with every kill.
type matrixCase struct {
	profile  profile
	scenario scenario
	// kill returns the phases of an effect in which the manager is killed.
	kill func(effect) []phase

	runs     int
	failures []result
	effects  []effect
}

// anyEffect returns all phases for effects in the cloud, and those but late for others.
func anyEffect(e effect) []phase {
	if e.side == cloudSide {
		return everyPhase(e)
	}
	return []phase{before, after}
}

// cloudEffect returns all phases for effects in the cloud, and none for others.
func cloudEffect(e effect) []phase {
	if e.side == cloudSide {
		return everyPhase(e)
	}
	return nil
}

func everyPhase(effect) []phase { return []phase{before, after, late} }

func lateCreate(e effect) []phase {
	if e.method == http.MethodPost {
		return []phase{late}
	}
	return nil
}

func matrixCases(p profile, kill func(effect) []phase, scenarios ...scenario) []*matrixCase {
	var made []*matrixCase
	for _, s := range scenarios {
		made = append(made, &matrixCase{profile: p, scenario: s, kill: kill})
	}
	return made
}

// selection is what runs by default.
func selection() (all []*matrixCase) {
	all = append(all, matrixCases(extended, anyEffect, edited, slow, deletedWhileDown, editedWhileDown, imported, orphaned, nameTaken, firstContact)...)
	all = append(all, matrixCases(extended, anyEffect, snapshotDeleted, configuredReplacedWhileDown)...)
	all = append(all, matrixCases(extended, beforeAndAfter, restarted, classMoved)...)
	all = append(all, matrixCases(extended, anyEffect, diskGrown, diskKept, diskKeptWhileDown, suspended)...)
	all = append(all, matrixCases(extended, cloudEffect, tagged)...)
	all = append(all, matrixCases(keyless, beforeAndAfter, approved)...)
	all = append(all, matrixCases(keyless, anyEffect, reverted)...)
	all = append(all, matrixCases(keyless, lateCreate, placedInZone, twoInterfaces)...)
	all = append(all, matrixCases(extended, anyEffect, groupCreated, groupShrunk, groupRolled, groupDeleted, groupTwoManagers)...)
	all = append(all, matrixCases(claimed, anyEffect, edited, deletedWhileDown, renamedWhileDown, twoManagers, nameTaken)...)
	all = append(all, matrixCases(claimedKey, anyEffect, slow, deletedWhileDown, twoManagers)...)
	all = append(all, matrixCases(core, anyEffect, recreated, deletedWhileDown, renamedWhileDown, equalNames, twoManagers, imported, orphaned, nameTaken)...)
	all = append(all, matrixCases(notExclusive, anyEffect, undecidedCreate, undecidedDeletedWhileDown, orphaned, nameTaken)...)
	all = append(all, matrixCases(keyless, anyEffect, edited, deletedWhileDown, slowDeletedWhileDown)...)
	all = append(all, matrixCases(unmarked, anyEffect, edited, deletedWhileDown, editedWhileDown)...)
	all = append(all, matrixCases(keyed, anyEffect, edited, undecidedEditedWhileDown, undecidedDeletedWhileDown)...)
	all = append(all, matrixCases(labelled, anyEffect, edited, slow, deletedWhileDown, imported, orphaned)...)
	all = append(all, matrixCases(bare, anyEffect, undecidedCreate, undecidedDeletedWhileDown)...)
	all = append(all, matrixCases(operating, anyEffect, edited)...)
	all = append(all, matrixCases(operatingOne, anyEffect, lateDeletedWhileDown)...)
	all = append(all, matrixCases(reporting, anyEffect, edited, groupCreated)...)
	all = append(all, matrixCases(reportingOne, anyEffect, slow, deletedWhileDown)...)
	all = append(all, matrixCases(extended, anyEffect, networkEdited, networkWithVM, networkEditedWhileDown)...)
	all = append(all, matrixCases(keyless, anyEffect, networkWithVM)...)
	all = append(all, matrixCases(labelled, anyEffect, networkEdited, networkDeletedWhileDown)...)
	all = append(all, matrixCases(onVCenter, cloudEffect, inFolder, keptApart)...)
	for _, p := range []profile{core, keyless, labelled} {
		all = append(all, matrixCases(p, lateCreate, seldomListed, seldomDeletedWhileDown)...)
	}
	return all
}

// everything is what runs with FAULTS=full.
func everything() (all []*matrixCase) {
	for _, p := range []profile{claimed, claimedKey} {
		all = append(all, matrixCases(p, everyPhase, recreated, edited, slow, deletedWhileDown, slowDeletedWhileDown, editedWhileDown, renamedWhileDown, orphaned, twoManagers)...)
	}
	for _, p := range []profile{extended, core, keyless, unmarked, labelled, reporting, reportingOne} {
		all = append(all, matrixCases(p, everyPhase, recreated, slow, deletedWhileDown, slowDeletedWhileDown, renamedWhileDown, imported, orphaned, seldomListed, seldomDeletedWhileDown, twoManagers, firstContact)...)
		if p.mock.Profile != mockcloud.Core {
			all = append(all, matrixCases(p, everyPhase, edited, editedWhileDown, groupCreated, groupShrunk, groupRolled, groupDeleted, groupTwoManagers)...)
		}
		if !p.sharedNames {
			all = append(all, matrixCases(p, everyPhase, nameTaken, equalNames)...)
		}
	}
	for _, p := range []profile{operating, operatingOne} {
		all = append(all, matrixCases(p, everyPhase, recreated, edited, lateDeletedWhileDown, editedWhileDown, orphaned, twoManagers)...)
	}
	for _, p := range []profile{extended, keyless, keyed} {
		all = append(all, matrixCases(p, everyPhase, snapshotDeleted, snapshotDeletedWhileDown, configured, configuredReplacedWhileDown)...)
	}
	for _, p := range []profile{extended, keyless, unmarked, operating, reporting} {
		all = append(all, matrixCases(p, beforeAndAfter, restarted)...)
		all = append(all, matrixCases(p, everyPhase, approved, diskGrown, diskKept, diskKeptWhileDown, reverted, placedInZone, suspended, twoInterfaces, classMoved)...)
	}
	for _, p := range []profile{extended, keyless, operating, reporting} {
		all = append(all, matrixCases(p, everyPhase, tagged)...)
	}
	for _, p := range []profile{extended, keyless, unmarked, keyed, labelled} {
		all = append(all, matrixCases(p, everyPhase, networkEdited, networkWithVM, networkDeletedWhileDown, networkEditedWhileDown)...)
	}
	all = append(all, matrixCases(onVCenter, everyPhase, diskGrown, tagged, keptApart, suspended)...)
	all = append(all, matrixCases(onVCenter, everyPhase, inFolder, edited, recreated, deletedWhileDown, editedWhileDown, renamedWhileDown, imported, orphaned, nameTaken, equalNames, twoManagers, firstContact)...)
	all = append(all, matrixCases(onVCenter, everyPhase, groupCreated, groupShrunk, groupRolled, groupDeleted, groupTwoManagers)...)
	all = append(all, matrixCases(keyed, everyPhase, recreated, edited, undecidedEditedWhileDown, undecidedDeletedWhileDown, imported, orphaned, twoManagers)...)
	all = append(all, matrixCases(notExclusive, everyPhase, undecidedCreate, undecidedDeletedWhileDown, undecidedRenamedWhileDown, imported, orphaned, nameTaken)...)
	return append(all, matrixCases(bare, everyPhase, undecidedCreate, undecidedDeletedWhileDown, undecidedRenamedWhileDown)...)
}

// sample is the value of FAULTS with which a third of the cases runs, with a third of the kills of each.
const sample = "sample"

// third returns a third of some cases or kills if FAULTS asks for a sample, and all otherwise.
func third[T any](all []T, seed uint64, name string) []T {
	if os.Getenv("FAULTS") != sample {
		return all
	}
	random := rand.New(rand.NewPCG(seed, stream(name)))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:(len(all)+2)/3]
}

// selected returns the cases that FAULTS selects; see doc.go.
func selected(seed uint64) []*matrixCase {
	switch word := os.Getenv("FAULTS"); word {
	case "", sample:
		return third(selection(), seed, "matrix")
	case "full":
		return everything()
	default:
		return slices.DeleteFunc(everything(), func(c *matrixCase) bool { return !strings.Contains(c.String(), word) })
	}
}

func (c *matrixCase) String() string { return c.scenario.name + "; " + c.profile.name }

// explore runs the scenario without a kill, then once with each kill, with as many
// runs at a time as runSlots allows. With FAULTS=sample, it runs a third of the kills,
// which the seed chooses. It logs each run.
func (c *matrixCase) explore(ctx context.Context, env *environment, seed uint64, logf func(string, ...any)) {
	var mu sync.Mutex
	once := func(k int, at phase) result {
		runSlots <- struct{}{}
		defer func() { <-runSlots }()
		out := c.scenario.run(ctx, env, c.profile, k, at)
		if out.err == nil && k > 0 && out.killed.n == 0 && len(out.effects) >= k {
			out.err = errors.New("the manager was not killed")
		}
		kill := "no kill"
		if k > 0 {
			kill = fmt.Sprintf("killed %s effect %d, %s", at, k, out.killed)
		}
		outcome := "ok"
		if out.err != nil {
			out.err = fmt.Errorf("%s: %w", kill, out.err)
			outcome = "FAILED: " + out.err.Error()
		}
		logf("%s; %s after %s", kill, outcome, out.took.Round(time.Millisecond))
		mu.Lock()
		defer mu.Unlock()
		c.runs++
		if out.err != nil {
			c.failures = append(c.failures, out)
		}
		return out
	}
	c.effects = once(0, before).effects
	var kills []func()
	for i, e := range c.effects {
		for _, at := range c.kill(e) {
			kills = append(kills, func() { once(i+1, at) })
		}
	}
	var runs sync.WaitGroup
	for _, kill := range third(kills, seed, c.String()) {
		runs.Go(kill)
	}
	runs.Wait()
}
