package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// The clouds, by what they can prove: on bare, nothing.
var (
	extended = profile{name: "extended", exact: true}
	core     = profile{name: "core with unique names", exact: true, mock: mockcloud.Options{Profile: mockcloud.Core}}
	keyless  = profile{name: "extended without idempotency", exact: true, mock: without(mockcloud.Idempotency)}
	unmarked = profile{name: "extended without labels", exact: true, mock: without(mockcloud.Labels)}
	keyed    = profile{name: "idempotency only", exact: true, namesakes: true, mock: without(mockcloud.Labels, mockcloud.UniqueNames)}
	bare     = profile{name: "neither keys, unique names nor labels", exact: true, mock: without(mockcloud.Idempotency, mockcloud.UniqueNames, mockcloud.Labels)}
	labelled = profile{name: "labels only", namesakes: true, mock: without(mockcloud.Idempotency, mockcloud.UniqueNames)}
)

func without(off ...mockcloud.Capability) mockcloud.Options {
	options := mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{}}
	for _, c := range off {
		options.Capabilities[c] = false
	}
	return options
}

func orphan(vm *v1alpha1.VM) { vm.Spec.DeletionPolicy = v1alpha1.DeletionPolicyOrphan }

// The scenarios. Those with a create and a delete have all effects of each.
var (
	edited     = scenario{name: "create, edit, delete", act: []step{createBesideCounterfeit(vm), edit(vm, `{"spec":{"cpu":2}}`), remove(vm, gone)}}
	reborn     = scenario{name: "create, delete, create", act: []step{create(vm), remove(vm, gone), create(vm)}}
	slow       = scenario{name: "create, delete, both slow", build: slowly, remove: slowly, act: []step{create(vm), remove(vm, gone)}}
	abandoned  = scenario{name: "create, deleted while no manager runs", act: []step{create(vm)}, crashed: remove(vm, gone)}
	dropped    = scenario{name: "create, deleted while no manager runs, both slow", build: slowly, remove: tardily, act: []step{create(vm)}, crashed: remove(vm, gone)}
	altered    = scenario{name: "create, edited while no manager runs", act: []step{create(vm)}, crashed: edit(vm, `{"spec":{"cpu":2}}`)}
	corrected  = scenario{name: "create, renamed while no manager runs", act: []step{create(vm)}, crashed: rename(vm, "corrected")}
	unprovable = scenario{name: "create", act: []step{unproved(vm)}}
	doubted    = scenario{name: "create, edited while no manager runs", act: []step{unproved(vm)}, crashed: edit(vm, `{"spec":{"cpu":2}}`)}
	forsaken   = scenario{name: "create, deleted while no manager runs", act: []step{unproved(vm)}, crashed: remove(vm, goneOrTold)}
	contest    = scenario{name: "two create one name, the second is deleted", act: []step{contend, removeRefused}}
	together   = scenario{name: "create by two managers", pair: true, act: []step{create(vm)}}
	contact    = scenario{name: "first contact with a cloud", counts: ofClouds, act: []step{create(vm)}}
	imported   = scenario{name: "import, delete", act: []step{takeOver(vm), remove(vm, gone)}}
	orphaned   = scenario{name: "orphan", arrange: []step{create(vm, orphan)}, act: []step{remove(vm, released)}}
	turnedDown = scenario{name: "create under a taken name, delete", act: []step{createRefused(taken), remove(taken, gone)}}
)

// The scenarios of Networks.
var (
	cabled   = scenario{name: "create a network, edit it, delete it", counts: ofNetworks, act: []step{createNetwork, regate, removeNetwork}}
	attached = scenario{name: "create a network and a VM on it, delete both", counts: ofNetworks, act: []step{createNetwork, create(vm, onNetwork), removeBoth}}
	unwired  = scenario{name: "create a network, deleted while no manager runs", counts: ofNetworks, act: []step{createNetwork}, crashed: removeNetwork}
	rewired  = scenario{name: "create a network, edited while no manager runs", counts: ofNetworks, act: []step{createNetwork}, crashed: regate}
)

// In these the first listing after a start is the only one within the settle
// time, so that a late server is seen only by who looks again when it is over.
var (
	seldom          = v1alpha1.CloudSpec{PollInterval: metav1.Duration{Duration: settleTime + 2*time.Second}}
	seldomListed    = scenario{name: "create, seldom listed", act: []step{create(vm)}, spec: seldom}
	seldomAbandoned = scenario{name: "create, deleted while no manager runs, seldom listed", act: []step{create(vm)}, crashed: remove(vm, gone), spec: seldom}
)

// cell is a scenario on a kind of cloud, with every kill.
type cell struct {
	profile  profile
	scenario scenario
	// kill tells which phases of an effect are tried.
	kill func(effect) []phase

	done     chan struct{}
	runs     int
	failures []outcome
	effects  []effect
}

// anyEffect: the late ones are of the cloud, where they are common.
func anyEffect(e effect) []phase {
	if e.side == cloudSide {
		return everyPhase(e)
	}
	return []phase{before, after}
}

func everyPhase(effect) []phase { return []phase{before, after, late} }

func lateCreate(e effect) []phase {
	if e.method == http.MethodPost {
		return []phase{late}
	}
	return nil
}

func cells(p profile, kill func(effect) []phase, scenarios ...scenario) []*cell {
	var made []*cell
	for _, s := range scenarios {
		made = append(made, &cell{profile: p, scenario: s, kill: kill, done: make(chan struct{})})
	}
	return made
}

// selection is what every test run tries.
func selection() (all []*cell) {
	all = append(all, cells(extended, anyEffect, edited, slow, abandoned, altered, imported, orphaned, turnedDown, contact)...)
	all = append(all, cells(extended, anyEffect, grown, shrunk, rolled, dissolved, rivalling)...)
	all = append(all, cells(core, anyEffect, reborn, abandoned, corrected, contest, together, imported, orphaned, turnedDown)...)
	all = append(all, cells(keyless, anyEffect, edited, abandoned, dropped)...)
	all = append(all, cells(unmarked, anyEffect, edited, abandoned, altered)...)
	all = append(all, cells(keyed, anyEffect, edited, doubted, forsaken)...)
	all = append(all, cells(labelled, anyEffect, edited, slow, abandoned, imported, orphaned)...)
	all = append(all, cells(bare, anyEffect, unprovable, forsaken)...)
	all = append(all, cells(extended, anyEffect, cabled, attached, rewired)...)
	all = append(all, cells(keyless, anyEffect, attached)...)
	all = append(all, cells(labelled, anyEffect, cabled, unwired)...)
	for _, p := range []profile{core, keyless, labelled} {
		all = append(all, cells(p, lateCreate, seldomListed, seldomAbandoned)...)
	}
	return all
}

// everything is all that can be.
func everything() (all []*cell) {
	for _, p := range []profile{extended, core, keyless, unmarked, labelled} {
		all = append(all, cells(p, everyPhase, reborn, slow, abandoned, dropped, corrected, imported, orphaned, seldomListed, seldomAbandoned, together, contact)...)
		if p.mock.Profile != mockcloud.Core {
			all = append(all, cells(p, everyPhase, edited, altered, grown, shrunk, rolled, dissolved, rivalling)...)
		}
		if !p.namesakes {
			all = append(all, cells(p, everyPhase, turnedDown, contest)...)
		}
	}
	for _, p := range []profile{extended, keyless, unmarked, keyed, labelled} {
		all = append(all, cells(p, everyPhase, cabled, attached, unwired, rewired)...)
	}
	all = append(all, cells(keyed, everyPhase, reborn, edited, doubted, forsaken, imported, orphaned, together)...)
	return append(all, cells(bare, everyPhase, unprovable, forsaken, corrected)...)
}

// chosen is what the environment asks for: see doc.go.
func chosen() []*cell {
	switch word := os.Getenv("FAULTS"); word {
	case "":
		return selection()
	case "full":
		return everything()
	default:
		return slices.DeleteFunc(everything(), func(c *cell) bool { return !strings.Contains(c.String(), word) })
	}
}

func (c *cell) String() string { return c.scenario.name + "; " + c.profile.name }

// explore lives the scenario through undisturbed, then once with each kill.
// Tell hears of each run.
func (c *cell) explore(ctx context.Context, l *lab, crowd chan struct{}, tell func(string, ...any)) {
	defer close(c.done)
	var mu sync.Mutex
	once := func(k int, at phase) outcome {
		crowd <- struct{}{}
		defer func() { <-crowd }()
		out := c.scenario.run(ctx, l, c.profile, k, at)
		if out.err == nil && k > 0 && out.killed.n == 0 && len(out.effects) >= k {
			out.err = errors.New("the manager was not killed")
		}
		verdict := "well"
		if out.err != nil {
			out.err = fmt.Errorf("killed %s effect %d, %s: %w", at, k, out.killed, out.err)
			verdict = "BAD: " + out.err.Error() + "\n"
		}
		tell("%s; killed %s %s; %s after %s\n", c, at, out.killed, verdict, out.took.Round(time.Millisecond))
		mu.Lock()
		defer mu.Unlock()
		c.runs++
		if out.err != nil {
			c.failures = append(c.failures, out)
		}
		return out
	}
	c.effects = once(0, before).effects
	var runs sync.WaitGroup
	for i, e := range c.effects {
		for _, at := range c.kill(e) {
			runs.Go(func() { once(i+1, at) })
		}
	}
	runs.Wait()
}
