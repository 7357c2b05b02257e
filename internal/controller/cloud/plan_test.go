package cloud

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// decision is a plan in words.
type decision struct {
	Steps   []string
	Outcome string
}

// said puts a outcome into words, but for its message.
func said(outcome error) string {
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

// seeing returns the scope of a pass that listed the servers, changed.
func seeing(change ...func(*scope)) *scope {
	obs := &scope{claimed: true, usable: true, fresh: &inventory.Snapshot{ID: "S2", Begun: dawn}, again: pollInterval}
	for _, f := range change {
		f(obs)
	}
	return obs
}

func unlisted(s *scope)     { s.fresh = nil }
func unusable(s *scope)     { s.fresh, s.usable = nil, false }
func vanishing(s *scope)    { s.brake, s.vanished = true, []string{"a", "b"} }
func held(s *scope)         { s.held = true }
func acknowledged(s *scope) { s.acknowledged = true }
func isReleased(s *scope)   { s.released = true }
func orphaned(s *scope)     { s.orphans = []cloud.Server{server("x")} }
func used(s *scope)         { s.users = 2 }

func TestPlan(t *testing.T) {
	const braked = "stalled: ServersVanished, again in 10s"
	tests := []struct {
		name          string
		cloud         *v1alpha1.Cloud
		obs           *scope
		steps         []string
		outcome, says string
	}{
		{name: "a new Cloud is claimed and listed", cloud: home(), obs: seeing(func(s *scope) { s.claimed = false }), steps: []string{stepClaim, stepPublish}, outcome: "in sync"},
		{name: "what was listed is published", cloud: home(), obs: seeing(), steps: []string{stepPublish}, outcome: "in sync"},
		{name: "no listing was due", cloud: home(), obs: seeing(unlisted), outcome: "in sync"},
		{name: "no listing was due of a cloud that is away: what was said of it stands", cloud: home(), obs: seeing(unusable), outcome: "quietly waiting: Connecting, again in 30s", says: "not due"},
		{name: "many servers vanished: the brake is set before anybody sees it", cloud: home(), obs: seeing(vanishing), steps: []string{stepBrake, stepPublish}, outcome: braked, says: "the Braked condition says how to release it"},
		{name: "the brake is on record: set anew after a start, before anything is published", cloud: home(brakedAt("S1")), obs: seeing(), steps: []string{stepBrake, stepPublish}, outcome: braked, says: "nothing is created or deleted"},
		{name: "the brake is on record, and servers are still missing", cloud: home(brakedAt("S1")), obs: seeing(vanishing, held), steps: []string{stepBrake, stepPublish}, outcome: braked, says: "nothing is created or deleted"},
		{name: "the brake is on record and the cloud away", cloud: home(brakedAt("S1")), obs: seeing(unusable), steps: []string{stepBrake}, outcome: braked, says: "nothing is created or deleted"},
		{name: "somebody looked: released", cloud: home(brakedAt("S1")), obs: seeing(held, acknowledged), steps: []string{stepReleaseBrake, stepPublish}, outcome: "in sync"},
		{name: "somebody looked, between two listings", cloud: home(brakedAt("S1")), obs: seeing(held, acknowledged, unlisted), steps: []string{stepReleaseBrake}, outcome: "in sync"},
		{name: "somebody looked, before this process ever braked", cloud: home(brakedAt("S1")), obs: seeing(acknowledged), steps: []string{stepReleaseBrake, stepPublish}, outcome: "in sync"},
		{name: "somebody looked at the last listing, and meanwhile more vanished", cloud: home(brakedAt("S1")), obs: seeing(held, acknowledged, vanishing), steps: []string{stepBrake, stepPublish}, outcome: braked, says: "nothing is created or deleted"},
		{name: "a brake that never came on record, and the servers are back", cloud: home(), obs: seeing(held), steps: []string{stepReleaseBrake, stepPublish}, outcome: "in sync"},
		{name: "a brake that never came on record, and no listing that says more", cloud: home(), obs: seeing(held, unlisted), outcome: "in sync"},
		{name: "orphans are counted", cloud: home(), obs: seeing(orphaned), steps: []string{stepPublish}, outcome: "in sync"},
		{name: "orphans are removed where that is wanted", cloud: home(removingOrphans), obs: seeing(orphaned), steps: []string{stepPublish, stepRemoveOrphans}, outcome: "in sync"},
		{name: "orphans are not removed while the brake is on", cloud: home(removingOrphans, brakedAt("S1")), obs: seeing(orphaned, held), steps: []string{stepBrake, stepPublish}, outcome: braked, says: "nothing is created or deleted"},
		{name: "orphans are not removed by an old listing", cloud: home(removingOrphans), obs: seeing(orphaned, unlisted), outcome: "in sync"},
		{name: "deleted, and VMs refer to it: it goes on serving them", cloud: home(deleted), obs: seeing(used), steps: []string{stepPublish}, outcome: "stalled: InUse, again in 10s", says: "refer to this Cloud: 2"},
		{name: "deleted, in use and never claimed: it is not claimed now", cloud: home(deleted), obs: seeing(used, func(s *scope) { s.claimed = false }), steps: []string{stepPublish}, outcome: "stalled: InUse, again in 10s", says: "delete them first"},
		{name: "deleted, in use, and many servers vanished", cloud: home(deleted), obs: seeing(used, vanishing), steps: []string{stepBrake, stepPublish}, outcome: "stalled: InUse, again in 10s", says: "delete them first"},
		{name: "deleted, and nobody needs it", cloud: home(deleted), obs: &scope{claimed: true}, steps: []string{stepRelease}, outcome: "in sync"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			steps, outcome := plan(tc.cloud, tc.obs)
			if diff := cmp.Diff(decision{tc.steps, tc.outcome}, decision{steps, said(outcome)}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if outcome != nil && (tc.says == "" || !strings.Contains(outcome.Error(), tc.says)) {
				t.Errorf("message %q, want %q in it", outcome, tc.says)
			}
			if err := lawful(tc.cloud, tc.obs, steps, outcome); err != nil {
				t.Errorf("unlawful: %v", err)
			}
		})
	}
}

// lawful checks what must hold of every plan, whatever was seen.
func lawful(c *v1alpha1.Cloud, obs *scope, steps []string, outcome error) error {
	at := func(step string) int { return slices.Index(steps, step) }
	braked := obs.brake || (c.Status.BrakedSnapshot != "" && !obs.acknowledged)
	switch {
	case at(stepPublish) >= 0 && obs.fresh == nil:
		return errors.New("nothing was listed that could be published")
	case at(stepPublish) >= 0 && braked && (at(stepBrake) < 0 || at(stepBrake) > at(stepPublish)):
		return errors.New("a listing is published before its brake is set")
	case at(stepReleaseBrake) >= 0 && (braked || (!obs.acknowledged && obs.fresh == nil)):
		return errors.New("the brake is released although nobody looked")
	case at(stepRemoveOrphans) >= 0 && (braked || c.Spec.OrphanPolicy != v1alpha1.OrphanPolicyDelete || at(stepRemoveOrphans) < at(stepPublish)):
		return errors.New("orphans are removed that are to stay")
	case at(stepRelease) >= 0 && (c.DeletionTimestamp.IsZero() || obs.users > 0 || len(steps) > 1):
		return errors.New("a Cloud is let go that is still needed")
	case at(stepClaim) >= 0 && (obs.claimed || !c.DeletionTimestamp.IsZero()):
		return errors.New("a claim that is not wanted")
	case braked && outcome == nil && (c.DeletionTimestamp.IsZero() || obs.users > 0):
		return errors.New("a braked Cloud that is ready")
	}
	return nil
}

func TestEveryPlanIsLawful(t *testing.T) {
	// Each bit of n switches one thing on.
	const things = 11
	for n := range 1 << things {
		on := func(bit int) bool { return n&(1<<bit) != 0 }
		c, obs := home(), &scope{claimed: on(0), usable: on(1), held: on(2), acknowledged: on(3) && on(4)}
		apply := func(wanted bool, f func(*v1alpha1.Cloud)) {
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
		if on(8) && obs.usable && (c.DeletionTimestamp.IsZero() || obs.users > 0) {
			obs.fresh = &inventory.Snapshot{ID: "S2"}
			if on(9) {
				vanishing(obs)
			}
			if on(10) {
				orphaned(obs)
			}
		}
		steps, outcome := plan(c, obs)
		if err := lawful(c, obs, steps, outcome); err != nil {
			t.Fatalf("%v\nplan %v, %s\nbits %011b", err, steps, said(outcome), n)
		}
		if again, v := plan(c, obs); !slices.Equal(steps, again) || fmt.Sprint(outcome) != fmt.Sprint(v) {
			t.Fatalf("the same situation was decided in two ways: %v, %v", steps, again)
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
		obs := &scope{claimed: on(2), usable: on(3), held: on(4), users: max(users, 0), acknowledged: snapshot != "" && snapshot == acknowledgement}
		if on(5) {
			obs.fresh = &inventory.Snapshot{ID: "S2"}
			if on(6) {
				vanishing(obs)
			}
			if on(7) {
				orphaned(obs)
			}
		}
		steps, outcome := plan(c, obs)
		if err := lawful(c, obs, steps, outcome); err != nil {
			t.Errorf("%v\nplan %v, %s", err, steps, said(outcome))
		}
		report(c, obs, outcome)
	})
}
