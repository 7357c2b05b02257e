package network

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// checkPlan returns an error if a plan violates one of the rules that hold in every situation.
func checkPlan(net *pcapi.Network, obs *observation, steps []string) error {
	has := func(step string) bool { return slices.Contains(steps, step) }
	changes := 0
	for _, step := range []string{external.StepCreate, stepUpdate, external.StepDeleteDuplicate, external.StepDelete} {
		if has(step) {
			changes++
		}
	}
	deleting, id := !net.DeletionTimestamp.IsZero(), net.Status.NetworkID
	foreign := obs.Resource != nil && obs.Resource.Name != obs.name
	switch {
	case changes > 1:
		return errors.New("more than one step changes the cloud")
	case has(external.StepCreate) && (deleting || id != "" || len(obs.Candidates) > 0 || obs.Denied != nil):
		return errors.New("the plan creates a network for a Network that must not get a new one")
	case has(external.StepCreate) && obs.Claimed != "" && (!obs.Looked || obs.Moved || (obs.SettleTimeLeft > 0 && !obs.Capabilities().Has(cloud.Idempotency) && !obs.Capabilities().Has(cloud.UniqueNames))):
		return errors.New("the plan creates a network while an earlier create may have taken effect or may still do so")
	case has(external.StepCreate) && obs.Claimed == "" && steps[0] != external.StepClaim:
		return errors.New("the plan creates a network without a claim")
	case has(external.StepDelete) && (!deleting || len(obs.attached) > 0 || foreign):
		return errors.New("the plan deletes a network that must stay, is in use or has another name")
	case has(stepUpdate) && (deleting || foreign || obs.Gone):
		return errors.New("the plan changes a network that has another name or is being deleted")
	case has(external.StepDeleteDuplicate) && len(obs.Duplicates) == 0 && len(obs.Candidates) < 2:
		return errors.New("the plan deletes a duplicate although there is none")
	case has(external.StepDeleteDuplicate) && !has(external.StepAdopt) && id == "":
		return errors.New("the plan deletes a duplicate but keeps no network")
	case has(external.StepRelease) && (!deleting || len(obs.attached) > 0):
		return errors.New("the plan releases an object that is not being deleted or is in use")
	case has(external.StepRelease) && steps[len(steps)-1] != external.StepRelease:
		return errors.New("a step follows the release")
	case has(external.StepRelease) && !has(external.StepConfirmGone) && (id != "" || len(obs.Candidates) > 0 || !obs.Looked || obs.SettleTimeLeft > 0):
		return errors.New("the plan releases an object whose network is not proved gone")
	case has(external.StepUnclaim) && (len(obs.Candidates) > 0 || !obs.Looked || obs.SettleTimeLeft > 0):
		return errors.New("the plan removes the claim of a create that may have taken effect")
	}
	return nil
}

// checkNeeds checks that each step has a name and a function, and that the steps
// that call the cloud are not run while the cloud is unavailable.
func checkNeeds(planned plan) error {
	callers := []string{external.StepCreate, stepUpdate, external.StepDeleteDuplicate, external.StepDelete, external.StepConfirmGone}
	for _, step := range planned.Steps {
		switch {
		case step.Name == "":
			return errors.New("a step has no name")
		case step.Run == nil:
			return fmt.Errorf("%s has no function", step.Name)
		case slices.Contains(callers, step.Name) && !step.Needs.Has(reconciler.NeedsCloud):
			return fmt.Errorf("%s calls the cloud and does not need it", step.Name)
		}
	}
	return nil
}

// cloneObservation returns a copy of obs that shares no networks with it.
func cloneObservation(obs *observation) *observation {
	clone := *obs
	clone.Candidates, clone.Duplicates, clone.attached = slices.Clone(obs.Candidates), slices.Clone(obs.Duplicates), slices.Clone(obs.attached)
	if obs.Resource != nil {
		n := *obs.Resource
		clone.Resource = &n
	}
	return &clone
}

func sameObservation(a, b *observation) bool {
	return reflect.DeepEqual(a, b) //nolint:govet // a clone holds the same error values
}

// TestPlanFollowsRulesInEverySituation tries every combination of what Observe can return.
func TestPlanFollowsRulesInEverySituation(t *testing.T) {
	t.Parallel()
	flags := []func(*pcapi.Network, *observation){
		func(net *pcapi.Network, _ *observation) { deleted(net) },
		func(net *pcapi.Network, _ *observation) { recorded(net) },
		func(net *pcapi.Network, _ *observation) { edited(net) },
		func(_ *pcapi.Network, obs *observation) { obs.Claimed = ownName },
		func(_ *pcapi.Network, obs *observation) { obs.Looked = true },
		func(_ *pcapi.Network, obs *observation) { obs.Gone = true },
		func(_ *pcapi.Network, obs *observation) { awaitingSettleTime(obs) },
		func(_ *pcapi.Network, obs *observation) { moved(obs) },
		func(_ *pcapi.Network, obs *observation) { denied(obs) },
		func(_ *pcapi.Network, obs *observation) { unavailable(obs) },
		func(_ *pcapi.Network, obs *observation) { withAttachedVMs("web")(obs) },
	}
	networks := []*cloud.Network{nil}
	for _, n := range []cloud.Network{networkWith(), networkWith(withName("other")), networkWith(withGateway("10.0.0.9")), networkWith(withCIDR("10.0.0.0/8"))} {
		networks = append(networks, &n)
	}
	tried := 0
	for bits := range 1 << len(flags) {
		for _, caps := range []cloud.Capabilities{everything, keysOnly, uniqueNamesOnly, labelsOnly, nil} {
			for _, n := range networks {
				for namesakes := range 3 {
					net, obs := netWith(), obsWith(caps)
					uniqueNamesOnly := ([]cloud.Network{networkWith(withID("n2")), networkWith(withID("n3"))}[:namesakes])
					for i, set := range flags {
						if bits&(1<<i) != 0 {
							set(net, obs)
						}
					}
					switch looked := obs.Looked && obs.Claimed != "" && obs.Available(); {
					case !looked:
						obs.Looked, obs.Gone = false, false
					case net.Status.NetworkID == "":
						obs.Gone, obs.Candidates, obs.Proof = false, uniqueNamesOnly, external.OwnerProof
					default:
						obs.Duplicates = uniqueNamesOnly
						if !obs.Gone {
							obs.Resource = n
						}
					}
					tried++
					netBefore, before := net.DeepCopy(), cloneObservation(obs)
					p := pure.Plan(net, obs)
					steps, outcome := p.Names(), p.Outcome
					err := errors.Join(checkPlan(net, obs, steps), checkNeeds(p))
					if !reflect.DeepEqual(netBefore, net) || !sameObservation(before, obs) {
						err = errors.Join(err, errors.New("Plan changed its input"))
					}
					pure.Report(net, obs, outcome)
					if !sameObservation(before, obs) {
						err = errors.Join(err, errors.New("Report changed the observation"))
					}
					if err != nil {
						t.Fatalf("%v: plan %v, %s\nobject %+v\nobservation %+v", err, steps, describe(outcome), net, obs)
					}
				}
			}
		}
	}
	if tried < 100_000 {
		t.Errorf("%d situations were tried, want at least 100000", tried)
	}
}
