package cloud

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// decision is a plan as text.
type decision struct {
	Steps   []string
	Outcome string
}

// outcomeText returns an outcome as text, without its message.
func outcomeText(outcome error) string {
	again := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return ", again in " + d.String()
	}
	if e, ok := errors.AsType[*reconciler.WaitError](outcome); ok {
		if e.Quiet {
			return "quietly waiting: " + e.Reason + again(e.After)
		}
		return "waiting: " + e.Reason + again(e.After)
	}
	if e, ok := errors.AsType[*reconciler.StalledError](outcome); ok {
		return "stalled: " + e.Reason + again(e.Recheck)
	}
	if outcome != nil {
		return "error: " + outcome.Error()
	}
	return "in sync"
}

// planned plans and reports. Nothing runs its steps.
var planned = &kind{}

// observed returns the observation of a reconcile that listed the servers.
func observed(change ...func(*observation)) *observation {
	obs := &observation{claimed: true, configured: true, usable: true, fresh: &inventory.Snapshot{ID: "S2", Begun: dawn}, again: pollInterval}
	for _, f := range change {
		f(obs)
	}
	return obs
}

// poll makes an observation that of a failed poll, or of a new client.
func poll(obs *observation, failed, unproven bool) {
	obs.usable = false
	if failed {
		obs.failed, obs.unproven = errRefused, unproven
		return
	}
	obs.client = newCloud(nil)
}

// wantInputsUnchanged checks that Plan changes neither the Cloud nor the
// observation, and that Report does not change the observation.
func wantInputsUnchanged(t *testing.T, c *pcapi.Cloud, obs *observation) {
	t.Helper()
	spec, before := c.DeepCopy(), copyOf(obs)
	p := planned.Plan(c, obs)
	wantSame(t, "the Cloud after Plan", spec, c)
	wantSame(t, "the observation after Plan", before, obs)
	for _, outcome := range []error{p.Outcome, errAPIAway} {
		planned.Report(c.DeepCopy(), obs, outcome)
		wantSame(t, "the observation after Report", before, obs)
	}
}

// wantSame fails if a value differs from its copy.
func wantSame(t *testing.T, what string, was, is any) {
	t.Helper()
	if !reflect.DeepEqual(was, is) {
		t.Fatalf("%s: changed to %+v, was %+v", what, is, was)
	}
}

func copyOf(obs *observation) *observation {
	c := *obs
	c.vanished, c.caps, c.orphans = slices.Clone(obs.vanished), slices.Clone(obs.caps), slices.Clone(obs.orphans)
	c.incomplete, c.ignored = slices.Clone(obs.incomplete), slices.Clone(obs.ignored)
	return &c
}

func unlisted(s *observation)     { s.fresh = nil }
func unusable(s *observation)     { s.fresh, s.usable = nil, false }
func vanishing(s *observation)    { s.brake, s.gone, s.vanished = true, 2, []string{"a", "b"} }
func held(s *observation)         { s.held = true }
func acknowledged(s *observation) { s.acknowledged = true }
func isReleased(s *observation)   { s.released = true }
func orphaned(s *observation)     { s.orphans = []cloud.Server{server("x")} }
func unconfigured(s *observation) { s.configured = false }
func failedPoll(s *observation)   { s.fresh = nil; poll(s, true, false) }
func failedClient(s *observation) {
	s.fresh, s.configured, s.claimed = nil, false, false
	poll(s, true, true)
}
func newClient(s *observation) {
	s.fresh, s.configured, s.claimed = nil, false, false
	poll(s, false, false)
}
func refusedClient(s *observation) { s.unproven, s.refused = true, errLogin }
func used(s *observation)          { s.users, s.shown = 2, usage{count: 2, text: "VMs: 2"} }
func misconfigured(s *observation) {
	s.invalid = errors.New("values must not be empty for operator In")
}
func defective(s *observation) { s.defect = errors.New("the pool b is missing") }

func TestPlan(t *testing.T) {
	const braked = "stalled: ServersVanished, again in 10s"
	tests := []struct {
		name          string
		cloud         *pcapi.Cloud
		obs           *observation
		steps         []string
		outcome, says string
	}{
		{name: "a new Cloud is claimed and listed", cloud: home(), obs: observed(func(s *observation) { s.claimed = false }), steps: []string{"Claim", "Publish"}, outcome: "in sync"},
		{name: "a new client is connected, and the servers are listed next", cloud: home(), obs: observed(newClient), steps: []string{"Configure", "Claim", "Connect"}, outcome: "quietly waiting: Connecting, again in 1ms", says: "listed next"},
		{name: "the settings changed", cloud: home(), obs: observed(unlisted, unconfigured), steps: []string{"Configure"}, outcome: "quietly waiting: Connecting, again in 1ms", says: "checked next"},
		{name: "the poll failed", cloud: home(), obs: observed(failedPoll), steps: []string{"MarkUnavailable"}, outcome: "error: " + errRefused.Error(), says: "refused"},
		{name: "the poll failed while the brake is recorded", cloud: home(brakedAt("S1")), obs: observed(failedPoll), steps: []string{"MarkUnavailable"}, outcome: "error: " + errRefused.Error(), says: "refused"},
		{name: "a new client failed", cloud: home(), obs: observed(failedClient), steps: []string{"Configure", "DropClient", "MarkUnavailable"}, outcome: "error: " + errRefused.Error(), says: "refused"},
		{name: "a new client failed, and the one in use goes on", cloud: home(), obs: observed(refusedClient), steps: []string{"DropClient", "Publish"}, outcome: "error: " + errLogin.Error(), says: "wrong token"},
		{name: "a new client failed, and no listing is due", cloud: home(), obs: observed(refusedClient, unlisted), steps: []string{"DropClient"}, outcome: "error: " + errLogin.Error(), says: "wrong token"},
		{name: "a new client failed, and so did the one in use", cloud: home(), obs: observed(failedPoll, refusedClient), steps: []string{"DropClient", "MarkUnavailable"}, outcome: "error: " + errRefused.Error(), says: "refused"},
		{name: "a new client failed while the brake is on", cloud: home(brakedAt("S1")), obs: observed(refusedClient, unlisted), steps: []string{"DropClient", "Brake"}, outcome: braked, says: "nothing is created or deleted"},
		{name: "what was listed is published", cloud: home(), obs: observed(), steps: []string{"Publish"}, outcome: "in sync"},
		{name: "no listing was due", cloud: home(), obs: observed(unlisted), outcome: "in sync"},
		{name: "no listing was due, the cloud is unavailable: the status stays", cloud: home(), obs: observed(unusable), outcome: "quietly waiting: Connecting, again in 30s", says: "not due"},
		{name: "many servers vanished: the brake is set before the listing is published", cloud: home(), obs: observed(vanishing), steps: []string{"Brake", "Publish"}, outcome: braked, says: "the Braked condition says how to release it"},
		{name: "the brake is recorded: set after a start, before anything is published", cloud: home(brakedAt("S1")), obs: observed(), steps: []string{"Brake", "Publish"}, outcome: braked, says: "nothing is created or deleted"},
		{name: "the brake is recorded, and servers are still missing", cloud: home(brakedAt("S1")), obs: observed(vanishing, held), steps: []string{"Brake", "Publish"}, outcome: braked, says: "nothing is created or deleted"},
		{name: "the brake is recorded, and the cloud is unavailable", cloud: home(brakedAt("S1")), obs: observed(unusable), steps: []string{"Brake"}, outcome: braked, says: "nothing is created or deleted"},
		{name: "acknowledged: released", cloud: home(brakedAt("S1")), obs: observed(held, acknowledged), steps: []string{"ReleaseBrake", "Publish"}, outcome: "in sync"},
		{name: "acknowledged between two listings: released", cloud: home(brakedAt("S1")), obs: observed(held, acknowledged, unlisted), steps: []string{"ReleaseBrake"}, outcome: "in sync"},
		{name: "acknowledged before this process set the brake: released", cloud: home(brakedAt("S1")), obs: observed(acknowledged), steps: []string{"ReleaseBrake", "Publish"}, outcome: "in sync"},
		{name: "acknowledged, but more servers vanished: set again", cloud: home(brakedAt("S1")), obs: observed(held, acknowledged, vanishing), steps: []string{"Brake", "Publish"}, outcome: braked, says: "nothing is created or deleted"},
		{name: "a brake that never came on record, and the servers are back", cloud: home(), obs: observed(held), steps: []string{"ReleaseBrake", "Publish"}, outcome: "in sync"},
		{name: "a brake that never came on record, and no listing that says more", cloud: home(), obs: observed(held, unlisted), outcome: "in sync"},
		{name: "orphans are counted", cloud: home(), obs: observed(orphaned), steps: []string{"Publish"}, outcome: "in sync"},
		{name: "orphans are removed where that is wanted", cloud: home(removingOrphans), obs: observed(orphaned), steps: []string{"Publish", "RemoveOrphans"}, outcome: "in sync"},
		{name: "orphans are not removed while the brake is on", cloud: home(removingOrphans, brakedAt("S1")), obs: observed(orphaned, held), steps: []string{"Brake", "Publish"}, outcome: braked, says: "nothing is created or deleted"},
		{name: "orphans are not removed by an old listing", cloud: home(removingOrphans), obs: observed(orphaned, unlisted), outcome: "in sync"},
		{name: "deleted, and VMs refer to it: it goes on serving them", cloud: home(deleted), obs: observed(used), steps: []string{"Publish"}, outcome: "stalled: InUse, again in 10s", says: "refer to this Cloud: 2"},
		{name: "deleted, in use and never claimed: it is not claimed now", cloud: home(deleted), obs: observed(used, func(s *observation) { s.claimed = false }), steps: []string{"Publish"}, outcome: "stalled: InUse, again in 10s", says: "delete them first"},
		{name: "deleted, in use, and many servers vanished", cloud: home(deleted), obs: observed(used, vanishing), steps: []string{"Brake", "Publish"}, outcome: "stalled: InUse, again in 10s", says: "delete them first"},
		{name: "allowedNamespaces is invalid: polled, and a person must act", cloud: home(), obs: observed(misconfigured), steps: []string{"Publish"}, outcome: "stalled: InvalidConfiguration, again in 30s", says: "spec.allowedNamespaces: values must"},
		{name: "allowedNamespaces is invalid, and no listing was due", cloud: home(), obs: observed(misconfigured, unlisted), outcome: "stalled: InvalidConfiguration, again in 30s", says: "no namespace may use this Cloud"},
		{name: "allowedNamespaces is invalid, and many servers vanished: the brake is more urgent", cloud: home(), obs: observed(misconfigured, vanishing), steps: []string{"Brake", "Publish"}, outcome: braked, says: "nothing is created or deleted"},
		{name: "allowedNamespaces is invalid, and the poll failed: the failure is reported", cloud: home(), obs: observed(misconfigured, failedPoll), steps: []string{"MarkUnavailable"}, outcome: "error: " + errRefused.Error(), says: "refused"},
		{name: "a zone is missing: polled, and a person must act", cloud: home(), obs: observed(defective), steps: []string{"Publish"}, outcome: "stalled: InvalidConfiguration, again in 30s", says: "the pool b is missing; only VMs that need it wait"},
		{name: "a zone is missing, and no listing was due", cloud: home(), obs: observed(defective, unlisted), outcome: "stalled: InvalidConfiguration, again in 30s", says: "the pool b"},
		{name: "a zone is missing, and no namespace may use the Cloud, which is more urgent", cloud: home(), obs: observed(defective, misconfigured), steps: []string{"Publish"}, outcome: "stalled: InvalidConfiguration, again in 30s", says: "spec.allowedNamespaces"},
		{name: "deleted and not used: released", cloud: home(deleted), obs: &observation{claimed: true}, steps: []string{"Release"}, outcome: "in sync"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			wantInputsUnchanged(t, tc.cloud, tc.obs)
			p := planned.Plan(tc.cloud, tc.obs)
			if diff := cmp.Diff(decision{tc.steps, tc.outcome}, decision{p.Names(), outcomeText(p.Outcome)}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if p.Outcome != nil && (tc.says == "" || !strings.Contains(p.Outcome.Error(), tc.says)) {
				t.Errorf("message %q, want %q in it", p.Outcome, tc.says)
			}
			if err := valid(tc.cloud, tc.obs, p); err != nil {
				t.Errorf("invalid: %v", err)
			}
		})
	}
}

// valid checks the invariants of every plan.
func valid(c *pcapi.Cloud, obs *observation, p plan) error {
	steps, outcome := p.Names(), p.Outcome
	at := func(step string) int { return slices.Index(steps, step) }
	released := !c.DeletionTimestamp.IsZero() && obs.users == 0
	braked := obs.brake || (c.Status.BrakedSnapshot != "" && !obs.acknowledged)
	switch {
	case at("Publish") >= 0 && obs.fresh == nil:
		return errors.New("no listing is published")
	case at("Publish") >= 0 && braked && (at("Brake") < 0 || at("Brake") > at("Publish")):
		return errors.New("a listing is published before its brake is set")
	case at("ReleaseBrake") >= 0 && (braked || (!obs.acknowledged && obs.fresh == nil)):
		return errors.New("the brake is released without an acknowledgement")
	case at("RemoveOrphans") >= 0 && (braked || c.Spec.OrphanPolicy != pcapi.OrphanPolicyDelete || at("RemoveOrphans") < at("Publish")):
		return errors.New("orphans are removed although they must stay")
	case at("Release") >= 0 && (c.DeletionTimestamp.IsZero() || obs.users > 0 || len(steps) > 1):
		return errors.New("a Cloud is released that is still used")
	case at("Claim") >= 0 && (obs.claimed || !c.DeletionTimestamp.IsZero()):
		return errors.New("a claim that is not needed")
	case obs.invalid != nil && outcome == nil && !released:
		return errors.New("a Cloud that no namespace may use is ready")
	case braked && outcome == nil && !released:
		return errors.New("a braked Cloud that is ready")
	case obs.failed != nil && !released && (at("MarkUnavailable") != len(steps)-1 || !errors.Is(outcome, obs.failed)):
		return errors.New("a failed poll does not make the cloud unavailable")
	case at("MarkUnavailable") >= 0 && obs.failed == nil, at("DropClient") >= 0 && !obs.unproven:
		return errors.New("a cloud that did not fail is made unavailable")
	case obs.unproven && !released && at("DropClient") < 0, obs.failed != nil && at("DropClient") > at("MarkUnavailable"):
		return errors.New("a client that never answered is kept")
	case obs.refused != nil && outcome == nil && !released:
		return errors.New("a client that was refused is not reported")
	case (at("Connect") >= 0) != (obs.client != nil && obs.failed == nil && !released):
		return errors.New("a new client is not connected, or an old one is")
	case obs.client != nil && (outcome == nil || at("Publish") >= 0) && !released:
		return errors.New("a new client that was not used for a listing counts as usable")
	case (at("Configure") == 0) != (!obs.configured && !released):
		return errors.New("the inventory is not configured first")
	}
	return nil
}

func TestEveryPlanIsValid(t *testing.T) {
	// Each bit of n switches one thing on.
	const things = 14
	for n := range 1 << things {
		on := func(bit int) bool { return n&(1<<bit) != 0 }
		c, obs := home(), &observation{claimed: on(0), usable: on(1), held: on(2), acknowledged: on(3) && on(4), configured: on(11)}
		apply := func(wanted bool, f func(*pcapi.Cloud)) {
			if wanted {
				f(c)
			}
		}
		apply(on(4), brakedAt("S1"))
		apply(on(5), deleted)
		apply(on(6), removingOrphans)
		if on(7) {
			used(obs)
		}
		if on(13) {
			misconfigured(obs)
		}
		switch {
		case on(12):
			poll(obs, on(8), on(9))
		case on(13):
			refusedClient(obs)
		case on(8) && obs.usable && (c.DeletionTimestamp.IsZero() || obs.users > 0):
			obs.fresh = &inventory.Snapshot{ID: "S2"}
			if on(9) {
				vanishing(obs)
			}
			if on(10) {
				orphaned(obs)
			}
		}
		wantInputsUnchanged(t, c, obs)
		p := planned.Plan(c, obs)
		if err := valid(c, obs, p); err != nil {
			t.Fatalf("%v\nplan %v, %s\nbits %014b", err, p.Names(), outcomeText(p.Outcome), n)
		}
		if again := planned.Plan(c, obs); !slices.Equal(p.Names(), again.Names()) || fmt.Sprint(p.Outcome) != fmt.Sprint(again.Outcome) {
			t.Fatalf("two plans for the same input: %v, %v", p.Names(), again.Names())
		}
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("", "", uint16(0), 0)
	f.Add("S1", "S1", uint16(0xffff), 1)
	f.Add("S1", "", uint16(0x0f0f), 3)
	f.Add("", "S1", uint16(0xf0f0), -1)
	f.Fuzz(func(t *testing.T, snapshot, acknowledgement string, bits uint16, users int) {
		on := func(bit int) bool { return bits&(1<<bit) != 0 }
		c := home(brakedAt(snapshot), acknowledging(acknowledgement))
		if on(0) {
			deleted(c)
		}
		if on(1) {
			removingOrphans(c)
		}
		obs := &observation{claimed: on(2), usable: on(3), held: on(4), users: max(users, 0), acknowledged: snapshot != "" && snapshot == acknowledgement, configured: on(8)}
		switch {
		case on(9):
			poll(obs, on(5), on(6))
		case on(10):
			refusedClient(obs)
		case on(5):
			obs.fresh = &inventory.Snapshot{ID: "S2"}
			if on(6) {
				vanishing(obs)
			}
			if on(7) {
				orphaned(obs)
			}
		}
		wantInputsUnchanged(t, c, obs)
		p := planned.Plan(c, obs)
		if err := valid(c, obs, p); err != nil {
			t.Errorf("%v\nplan %v, %s", err, p.Names(), outcomeText(p.Outcome))
		}
	})
}
