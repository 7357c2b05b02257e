package network

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

var startTime = time.Date(2026, 3, 1, 6, 0, 0, 600_000_000, time.UTC)

var (
	everything      = cloud.NewCapabilities(cloud.Networks, cloud.Idempotency, cloud.UniqueNames, cloud.Labels)
	keysOnly        = cloud.NewCapabilities(cloud.Networks, cloud.Idempotency)
	uniqueNamesOnly = cloud.NewCapabilities(cloud.Networks, cloud.UniqueNames)
	labelsOnly      = cloud.NewCapabilities(cloud.Networks, cloud.Labels)
)

// pure plans and reports without a cluster or a cloud.
var pure = newKind(nil, controller.Options{Cluster: "cluster", Clock: func() time.Time { return startTime }}).lifecycle

// ownName is the name in the cloud of the network of netWith.
const ownName = "ns-net-e6cfdbfe088a"

// netWith returns the Network net, with changes.
func netWith(change ...func(*pcapi.Network)) *pcapi.Network {
	net := &pcapi.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "net", UID: "uid", Generation: 1},
		Spec:       pcapi.NetworkSpec{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", CloudRef: &pcapi.CloudReference{Name: "default"}},
	}
	for _, f := range change {
		f(net)
	}
	return net
}

func recorded(net *pcapi.Network) {
	net.Status.NetworkID, net.Status.Cloud, net.Status.ObservedGeneration = "n1", "default", 1
}
func edited(net *pcapi.Network) { net.Generation = 2 }
func deleted(net *pcapi.Network) {
	now := metav1.NewTime(startTime)
	net.DeletionTimestamp = &now
}

// networkWith returns the network n1 as the spec of netWith says, with changes.
func networkWith(change ...func(*cloud.Network)) cloud.Network {
	n := cloud.Network{ID: "n1", Name: ownName, CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", CreatedAt: startTime}
	for _, f := range change {
		f(&n)
	}
	return n
}

func withID(id string) func(*cloud.Network)     { return func(n *cloud.Network) { n.ID = id } }
func withName(name string) func(*cloud.Network) { return func(n *cloud.Network) { n.Name = name } }
func withCIDR(cidr string) func(*cloud.Network) { return func(n *cloud.Network) { n.CIDR = cidr } }
func withGateway(gate string) func(*cloud.Network) {
	return func(n *cloud.Network) { n.Gateway = gate }
}

// obsWith returns an observation of an available cloud, with changes.
func obsWith(caps cloud.Capabilities, change ...func(*observation)) *observation {
	obs := &observation{name: ownName, counted: true}
	obs.Now, obs.Cloud, obs.How, obs.View = startTime, "default", pcapi.CreatedReason, inventory.View{Capabilities: caps}
	for _, f := range change {
		f(obs)
	}
	return obs
}

// withNetwork sets the recorded network in an observation.
func withNetwork(n cloud.Network) func(*observation) {
	return func(obs *observation) { obs.Claimed, obs.Looked, obs.Resource, obs.Owned = ownName, true, &n, true }
}

// withCandidates sets the networks that a search by name found.
func withCandidates(found ...cloud.Network) func(*observation) {
	return func(obs *observation) {
		obs.Claimed, obs.Looked, obs.Candidates, obs.Proof = ownName, true, found, external.OwnerProof
	}
}

func withDuplicates(extra ...cloud.Network) func(*observation) {
	return func(obs *observation) { obs.Duplicates = extra }
}
func withAttachedVMs(vms ...string) func(*observation) {
	return func(obs *observation) { obs.attached = vms }
}
func unavailable(obs *observation)        { obs.View.Unavailable = "connection refused" }
func claimed(obs *observation)            { obs.Claimed = ownName }
func awaitingSettleTime(obs *observation) { obs.SettleTimeLeft = time.Minute }
func moved(obs *observation)              { obs.Moved, obs.Cloud = true, "former" }
func gone(obs *observation)               { obs.Claimed, obs.Looked, obs.Gone = ownName, true, true }
func denied(obs *observation) {
	obs.Denied = reconciler.Blocked("Cloud/default", pcapi.CloudUnavailableReason, "Cloud %q does not exist", "default")
}

// decision is a plan as text.
type decision struct {
	Steps   []string
	Outcome string
}

// describe formats an outcome without its message.
func describe(outcome error) string {
	again := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return ", again in " + d.String()
	}
	if e, ok := errors.AsType[*reconciler.WaitError](outcome); ok {
		return "waiting: " + e.Reason + again(e.After)
	}
	if e, ok := errors.AsType[*reconciler.BlockedError](outcome); ok {
		return "blocked: " + e.Reason + " by " + e.On
	}
	if e, ok := errors.AsType[*reconciler.StalledError](outcome); ok {
		return "stalled: " + e.Reason + again(e.Recheck)
	}
	if errors.Is(outcome, reconciler.ErrUnknown) {
		return "unknown"
	}
	if outcome != nil {
		return "error: " + outcome.Error()
	}
	return "in sync"
}

type planCase struct {
	name  string
	net   *pcapi.Network
	obs   *observation
	steps []string
	// outcome is the text of describe, and message a part of the outcome's message.
	outcome, message string
}

func runPlans(t *testing.T, tests []planCase) {
	t.Helper()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := pure.Plan(tc.net, tc.obs)
			steps, outcome := p.Names(), p.Outcome
			if diff := cmp.Diff(decision{tc.steps, tc.outcome}, decision{steps, describe(outcome)}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if outcome != nil && (tc.message == "" || !strings.Contains(outcome.Error(), tc.message)) {
				t.Errorf("message %q, want %q in it", outcome, tc.message)
			}
			if err := checkPlan(tc.net, tc.obs, steps); err != nil {
				t.Errorf("rule: %v", err)
			}
		})
	}
}

func TestPlanCreate(t *testing.T) {
	t.Parallel()
	two := []cloud.Network{networkWith(), networkWith(withID("n2"))}
	runPlans(t, []planCase{
		{name: "no claim: claim, create", net: netWith(), obs: obsWith(labelsOnly), steps: []string{external.StepClaim, external.StepCreate}, outcome: "in sync"},
		{name: "Cloud not allowed: blocked", net: netWith(), obs: obsWith(everything, denied), outcome: "blocked: CloudUnavailable by Cloud/default", message: "does not exist"},
		{name: "cloud has no networks: unsupported", net: netWith(), obs: obsWith(cloud.NewCapabilities(cloud.Labels)), outcome: "stalled: Unsupported, again in 10m0s", message: "choose another in spec.cloudRef"},
		{name: "cloud unavailable: capabilities are unknown and nothing is refused", net: netWith(), obs: obsWith(nil, unavailable), steps: []string{external.StepClaim, external.StepCreate}, outcome: "in sync"},
		{name: "claim and cloud unavailable: look", net: netWith(), obs: obsWith(everything, claimed, unavailable), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "nothing found, settle time is not over, key: create again", net: netWith(), obs: obsWith(keysOnly, withCandidates(), awaitingSettleTime), steps: []string{external.StepCreate}, outcome: "in sync"},
		{name: "nothing found, settle time is not over, unique names: create again", net: netWith(), obs: obsWith(uniqueNamesOnly, withCandidates(), awaitingSettleTime), steps: []string{external.StepCreate}, outcome: "in sync"},
		{name: "nothing found, settle time is not over, labels only: wait", net: netWith(), obs: obsWith(labelsOnly, withCandidates(), awaitingSettleTime), outcome: "waiting: OutcomeUnknown, again in 1m0s", message: "settleTime"},
		{name: "nothing found and settle time is over: create", net: netWith(), obs: obsWith(labelsOnly, withCandidates()), steps: []string{external.StepCreate}, outcome: "in sync"},
		{name: "found by name: adopted", net: netWith(), obs: obsWith(labelsOnly, withCandidates(networkWith()), awaitingSettleTime), steps: []string{external.StepAdopt}, outcome: "in sync"},
		{name: "found with another gateway: adopted, updated in the next reconcile", net: netWith(), obs: obsWith(everything, withCandidates(networkWith(withGateway("10.0.0.9")))), steps: []string{external.StepAdopt}, outcome: "waiting: Progressing, again in 1s", message: "brought in line"},
		{name: "two found: the oldest adopted, the other deleted", net: netWith(), obs: obsWith(labelsOnly, withCandidates(two...)), steps: []string{external.StepAdopt, external.StepDeleteDuplicate}, outcome: "in sync"},
	})
}

func TestPlanAfterCloudRefEdit(t *testing.T) {
	t.Parallel()
	runPlans(t, []planCase{
		{name: "network found on the former Cloud: drift", net: netWith(), obs: obsWith(everything, withCandidates(networkWith()), moved), outcome: "stalled: Drift, again in 10m0s", message: `network n1 is on Cloud "former"`},
		{name: "settle time is not over: wait, even with a key", net: netWith(), obs: obsWith(everything, withCandidates(), awaitingSettleTime, moved), outcome: "waiting: OutcomeUnknown, again in 1m0s", message: "settleTime"},
		{name: "create had no effect: claim removed", net: netWith(), obs: obsWith(everything, withCandidates(), moved), steps: []string{external.StepUnclaim}, outcome: "waiting: Progressing, again in 1s", message: "named before"},
		{name: "deleted and network found on the former Cloud: deleted there", net: netWith(deleted), obs: obsWith(everything, withCandidates(networkWith()), moved), steps: []string{external.StepAdopt, external.StepDelete, external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
	})
}

func TestPlanExisting(t *testing.T) {
	t.Parallel()
	net := netWith(recorded)
	runPlans(t, []planCase{
		{name: "as the spec says: in sync", net: net, obs: obsWith(everything, withNetwork(networkWith())), outcome: "in sync"},
		{name: "gateway set explicitly: in sync", net: net, obs: obsWith(everything, withNetwork(networkWith(withGateway("10.0.0.1")))), outcome: "in sync"},
		{name: "Cloud no longer allowed: blocked", net: net, obs: obsWith(everything, withNetwork(networkWith()), denied), outcome: "blocked: CloudUnavailable by Cloud/default", message: "does not exist"},
		{name: "network gone: lost, not created again", net: net, obs: obsWith(everything, gone), outcome: "stalled: Lost, again in 1m0s", message: "it is not created again"},
		{name: "network gone and another of its name exists: lost, the other is unchanged", net: net, obs: obsWith(everything, gone, withDuplicates(networkWith(withID("n2")))), outcome: "stalled: Lost, again in 1m0s", message: "it is not created again"},
		{name: "cloud unavailable: unknown", net: net, obs: obsWith(everything, claimed, unavailable), outcome: "unknown", message: "nothing is known"},
		{name: "cloud unavailable and spec edited: look, which reports the wait", net: netWith(recorded, edited), obs: obsWith(everything, claimed, unavailable), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "cloud no longer has networks: unsupported", net: net, obs: obsWith(cloud.NewCapabilities(cloud.Labels), claimed), outcome: "stalled: Unsupported, again in 10m0s", message: "has no networks"},
		{name: "other gateway: updated", net: net, obs: obsWith(everything, withNetwork(networkWith(withGateway("10.0.0.9")))), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "other CIDR: drift, because it cannot be changed", net: net, obs: obsWith(everything, withNetwork(networkWith(withCIDR("10.0.0.0/16"), withGateway("10.0.0.9")))), outcome: "stalled: Drift, again in 1m0s", message: "cidr of network n1 is 10.0.0.0/16 in the cloud, 10.0.0.0/24 in the spec"},
		{name: "other name: drift without an update", net: net, obs: obsWith(everything, withNetwork(networkWith(withName("other"), withGateway("10.0.0.9")))), outcome: "stalled: Drift, again in 1m0s", message: `named "other" in the cloud`},
		{name: "name of another object: drift that does not show it", net: net, obs: obsWith(everything, withNetwork(networkWith(withName("team-b-db-0123456789ab")))), outcome: "stalled: Drift, again in 1m0s", message: "named after another Network object in the cloud"},
		{name: "duplicate exists: deleted first", net: net, obs: obsWith(labelsOnly, withNetwork(networkWith(withGateway("10.0.0.9"))), withDuplicates(networkWith(withID("n2")))), steps: []string{external.StepDeleteDuplicate}, outcome: "in sync"},
	})
}

func TestPlanDeletion(t *testing.T) {
	t.Parallel()
	net, whole := netWith(recorded, deleted), []string{external.StepDelete, external.StepConfirmGone, external.StepRelease}
	runPlans(t, []planCase{
		{name: "no VM attached: deleted, confirmed gone, then released", net: net, obs: obsWith(everything, withNetwork(networkWith())), steps: whole, outcome: "in sync"},
		{name: "VM attached: blocked", net: net, obs: obsWith(everything, withNetwork(networkWith()), withAttachedVMs("web")), outcome: "blocked: Blocked by VM/web", message: "VMs on this network: 1 (web); delete them first"},
		{name: "many VMs attached: blocked, the message names some and counts all", net: net, obs: obsWith(everything, withNetwork(networkWith()), withAttachedVMs("a", "b", "c", "d")), outcome: "blocked: Blocked by VM/a", message: "VMs on this network: 4 (a, b, c, …)"},
		{name: "VM attached and no record: blocked", net: netWith(deleted), obs: obsWith(everything, withCandidates(), withAttachedVMs("web")), outcome: "blocked: Blocked by VM/web", message: "VMs on this network: 1"},
		{name: "namespace may no longer use the Cloud: deleted", net: net, obs: obsWith(everything, withNetwork(networkWith()), denied), steps: whole, outcome: "in sync"},
		{name: "cloud unavailable: look", net: net, obs: obsWith(everything, claimed, unavailable), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "cloud no longer has networks: unsupported, because absence is not proved", net: net, obs: obsWith(cloud.NewCapabilities(cloud.Labels), claimed), outcome: "stalled: Unsupported, again in 10m0s", message: "has no networks"},
		{name: "network gone: released", net: net, obs: obsWith(everything, gone), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "network not listed: absence must be confirmed", net: net, obs: obsWith(everything, withCandidates()), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "other name: blocked without deletion", net: net, obs: obsWith(everything, withNetwork(networkWith(withName("other")))), outcome: "stalled: Blocked, again in 1m0s", message: "so it is not deleted"},
		{name: "name of another object: blocked by a message that does not show it", net: net, obs: obsWith(everything, withNetwork(networkWith(withName("team-b-db-0123456789ab")))), outcome: "stalled: Blocked, again in 1m0s", message: "named after another Network object in the cloud"},
		{name: "duplicate exists: deleted first", net: net, obs: obsWith(labelsOnly, withNetwork(networkWith()), withDuplicates(networkWith(withID("n2")))), steps: []string{external.StepDeleteDuplicate}, outcome: "in sync"},
		{name: "not recorded and found: adopted and deleted", net: netWith(deleted), obs: obsWith(labelsOnly, withCandidates(networkWith())), steps: append([]string{external.StepAdopt}, whole...), outcome: "in sync"},
		{name: "not recorded and two found: one deleted at a time", net: netWith(deleted), obs: obsWith(labelsOnly, withCandidates(networkWith(), networkWith(withID("n2")))), steps: []string{external.StepAdopt, external.StepDeleteDuplicate}, outcome: "in sync"},
		{name: "not recorded and settle time is not over: wait, even with a key", net: netWith(deleted), obs: obsWith(everything, withCandidates(), awaitingSettleTime), outcome: "waiting: Requested, again in 1m0s", message: "settleTime"},
		{name: "not recorded and create had no effect: released", net: netWith(deleted), obs: obsWith(labelsOnly, withCandidates()), steps: []string{external.StepRelease}, outcome: "in sync"},
	})
}

func TestName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40)
	for name, test := range map[string]struct {
		net  *pcapi.Network
		want string
	}{
		"short name: namespace, name and hash": {netWith(), ownName},
		"another UID: another hash":            {netWith(func(net *pcapi.Network) { net.UID = "other" }), "ns-net-cf82c5762ee2"},
		"long name: shortened": {netWith(func(net *pcapi.Network) { net.Namespace, net.Name = long, long }),
			long + "-aaaaaaaaa-e6cfdbfe088a"},
		"cut behind a separator: separator removed": {netWith(func(net *pcapi.Network) { net.Namespace, net.Name = long, "aaaaaaaa.a" }),
			long + "-aaaaaaaa-e6cfdbfe088a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newKind(nil, controller.Options{Cluster: "cluster"}).nameInCloud(test.net)
			if diff := cmp.Diff(test.want, got); diff != "" || len(got) > maxName {
				t.Errorf("%d bytes (-want +got):\n%s", len(got), diff)
			}
		})
	}
	if newKind(nil, controller.Options{Cluster: "another"}).nameInCloud(netWith()) == ownName {
		t.Error("two clusters on one cloud have the same name for their networks")
	}
}

func TestAnotherRangeAndSameGateway(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, cidr, gateway string
		has                 cloud.Network
		sameRange, sameGate bool
	}{
		{"equal: equal", "10.0.0.0/24", "10.0.0.1", networkWith(), true, true},
		{"other gateway: gateway differs", "10.0.0.0/24", "10.0.0.2", networkWith(), true, false},
		{"other prefix length: range differs", "10.0.0.0/16", "10.0.0.1", networkWith(), false, true},
		{"shortened IPv6 address: equal", "fd00:0::/64", "fd00:0:0::1", networkWith(withCIDR("fd00::/64"), withGateway("fd00::1")), true, true},
		{"CIDR with host bits: equal", "10.0.0.0/24", "10.0.0.1", networkWith(withCIDR("10.0.0.1/24")), true, true},
		{"invalid text that differs: differs", "10.0.0.0/24", "10.0.0.1", networkWith(withCIDR("?"), withGateway("?")), false, false},
		{"invalid text that is equal: equal", "?", "?", networkWith(withCIDR("?"), withGateway("?")), true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			net := netWith(func(net *pcapi.Network) { net.Spec.CIDR, net.Spec.Gateway = test.cidr, test.gateway })
			if differing, _, _ := anotherRange(net, test.has); (differing == "") != test.sameRange {
				t.Errorf("range: %q", differing)
			}
			if got := sameGateway(net, test.has); got != test.sameGate {
				t.Errorf("gateway: %t", got)
			}
		})
	}
}
