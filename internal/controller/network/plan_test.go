package network

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	setup "github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

var (
	everything = cloud.NewCapabilities(cloud.Networks, cloud.Idempotency, cloud.UniqueNames, cloud.Labels)
	keyed      = cloud.NewCapabilities(cloud.Networks, cloud.Idempotency)
	named      = cloud.NewCapabilities(cloud.Networks, cloud.UniqueNames)
	bare       = cloud.NewCapabilities(cloud.Networks, cloud.Labels)
)

// pure plans and reports without a cluster or a cloud.
var pure = newKind(nil, setup.Options{Cluster: "cluster", Clock: func() time.Time { return dawn }}).lifecycle

// ours is what the network of netWith is called in the cloud.
const ours = "ns-net-e6cfdbfe088a"

// netWith returns the Network net, changed.
func netWith(change ...func(*v1alpha1.Network)) *v1alpha1.Network {
	net := &v1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "net", UID: "uid", Generation: 1},
		Spec:       v1alpha1.NetworkSpec{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", CloudRef: &v1alpha1.CloudReference{Name: "default"}},
	}
	for _, f := range change {
		f(net)
	}
	return net
}

func recorded(net *v1alpha1.Network) {
	net.Status.NetworkID, net.Status.Cloud, net.Status.ObservedGeneration = "n1", "default", 1
}
func edited(net *v1alpha1.Network) { net.Generation = 2 }
func deleted(net *v1alpha1.Network) {
	now := metav1.NewTime(dawn)
	net.DeletionTimestamp = &now
}

// networkWith returns the network n1 as netWith wants it, changed.
func networkWith(change ...func(*cloud.Network)) cloud.Network {
	n := cloud.Network{ID: "n1", Name: ours, CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", CreatedAt: dawn}
	for _, f := range change {
		f(&n)
	}
	return n
}

func id(id string) func(*cloud.Network)        { return func(n *cloud.Network) { n.ID = id } }
func called(name string) func(*cloud.Network)  { return func(n *cloud.Network) { n.Name = name } }
func ranging(cidr string) func(*cloud.Network) { return func(n *cloud.Network) { n.CIDR = cidr } }
func through(gate string) func(*cloud.Network) { return func(n *cloud.Network) { n.Gateway = gate } }

// seeing returns an observation on a cloud that can be used.
func seeing(caps cloud.Capabilities, change ...func(*observation)) *observation {
	obs := &observation{name: ours, counted: true}
	obs.Now, obs.Cloud, obs.How, obs.View = dawn, "default", v1alpha1.CreatedReason, inventory.View{Capabilities: caps}
	for _, f := range change {
		f(obs)
	}
	return obs
}

// holding is an observation that knows the recorded network.
func holding(n cloud.Network) func(*observation) {
	return func(obs *observation) { obs.Claimed, obs.Looked, obs.Resource, obs.Owned = ours, true, &n, true }
}

// finding is an observation after a search that found networks of our name.
func finding(found ...cloud.Network) func(*observation) {
	return func(obs *observation) {
		obs.Claimed, obs.Looked, obs.Candidates, obs.Proof = ours, true, found, external.OwnerProof
	}
}

func beside(extra ...cloud.Network) func(*observation) {
	return func(obs *observation) { obs.Duplicates = extra }
}
func using(vms ...string) func(*observation) { return func(obs *observation) { obs.attached = vms } }
func away(obs *observation)                  { obs.View.Unavailable = "connection refused" }
func claimed(obs *observation)               { obs.Claimed = ours }
func unclaimed(obs *observation)             { obs.Claimed = "" }
func settling(obs *observation)              { obs.Settles = time.Minute }
func movedAway(obs *observation)             { obs.Moved, obs.Cloud = true, "former" }
func isGone(obs *observation)                { obs.Claimed, obs.Looked, obs.Gone = ours, true, true }
func denied(obs *observation) {
	obs.Denied = reconciler.Blocked("Cloud/default", v1alpha1.CloudUnavailableReason, "Cloud %q does not exist", "default")
}

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
	net   *v1alpha1.Network
	obs   *observation
	steps []string
	// outcome as said puts it, and a part of its message.
	outcome, says string
}

func runPlans(t *testing.T, tests []planCase) {
	t.Helper()
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := pure.Plan(tc.net, tc.obs)
			steps, outcome := p.Names(), p.Outcome
			if diff := cmp.Diff(decision{tc.steps, tc.outcome}, decision{steps, said(outcome)}); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if outcome != nil && (tc.says == "" || !strings.Contains(outcome.Error(), tc.says)) {
				t.Errorf("message %q, want %q in it", outcome, tc.says)
			}
			if err := lawful(tc.net, tc.obs, steps); err != nil {
				t.Errorf("unlawful: %v", err)
			}
		})
	}
}

func TestPlanOfANewNetwork(t *testing.T) {
	t.Parallel()
	two := []cloud.Network{networkWith(), networkWith(id("n2"))}
	runPlans(t, []planCase{
		{name: "nothing was ever sent for it: the intent is stored, then the create sent", net: netWith(), obs: seeing(bare), steps: []string{external.StepClaim, external.StepCreate}, outcome: "in sync"},
		{name: "it may not use its Cloud", net: netWith(), obs: seeing(everything, denied), outcome: "blocked: CloudUnavailable by Cloud/default", says: "does not exist"},
		{name: "the cloud has no networks", net: netWith(), obs: seeing(cloud.NewCapabilities(cloud.Labels)), outcome: "stalled: Unsupported, again in 10m0s", says: "name another in spec.cloudRef"},
		{name: "what the cloud can do is not known while it is away: nothing is refused yet", net: netWith(), obs: seeing(nil, away), steps: []string{external.StepClaim, external.StepCreate}, outcome: "in sync"},
		{name: "a create may have been sent, and the cloud could not be asked", net: netWith(), obs: seeing(everything, claimed, away), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "looked and found nothing, where a second create does no harm", net: netWith(), obs: seeing(keyed, finding(), settling), steps: []string{external.StepCreate}, outcome: "in sync"},
		{name: "looked and found nothing, where a second create of the name is refused", net: netWith(), obs: seeing(named, finding(), settling), steps: []string{external.StepCreate}, outcome: "in sync"},
		{name: "looked and found nothing yet: a create may take effect later", net: netWith(), obs: seeing(bare, finding(), settling), outcome: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime"},
		{name: "looked and found nothing, long enough after", net: netWith(), obs: seeing(bare, finding()), steps: []string{external.StepCreate}, outcome: "in sync"},
		{name: "found by its name", net: netWith(), obs: seeing(bare, finding(networkWith()), settling), steps: []string{external.StepAdopt}, outcome: "in sync"},
		{name: "found, with a gateway that was edited since", net: netWith(), obs: seeing(everything, finding(networkWith(through("10.0.0.9")))), steps: []string{external.StepAdopt}, outcome: "waiting: Progressing, again in 1s", says: "brought in line"},
		{name: "one create made two: the older is kept", net: netWith(), obs: seeing(bare, finding(two...)), steps: []string{external.StepAdopt, external.StepDeleteDuplicate}, outcome: "in sync"},
	})
}

func TestPlanAfterCloudRefOfANetworkWasEdited(t *testing.T) {
	t.Parallel()
	runPlans(t, []planCase{
		{name: "a network came of the first create: it is not made twice", net: netWith(), obs: seeing(everything, finding(networkWith()), movedAway), outcome: "stalled: Drift, again in 10m0s", says: `network n1 is on Cloud "former"`},
		{name: "one may still come: a key does not help on another cloud", net: netWith(), obs: seeing(everything, finding(), settling, movedAway), outcome: "waiting: OutcomeUnknown, again in 1m0s", says: "settleTime"},
		{name: "nothing came of it: the claim is taken back", net: netWith(), obs: seeing(everything, finding(), movedAway), steps: []string{external.StepUnclaim}, outcome: "waiting: Progressing, again in 1s", says: "named before"},
		{name: "deleted: what came of it is deleted where it is", net: netWith(deleted), obs: seeing(everything, finding(networkWith()), movedAway), steps: []string{external.StepAdopt, external.StepDelete, external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
	})
}

func TestPlanOfANetworkOnRecord(t *testing.T) {
	t.Parallel()
	net := netWith(recorded)
	runPlans(t, []planCase{
		{name: "it is as the spec says", net: net, obs: seeing(everything, holding(networkWith())), outcome: "in sync"},
		{name: "its address is written in another way", net: net, obs: seeing(everything, holding(networkWith(through("10.0.0.1")))), outcome: "in sync"},
		{name: "its Cloud was closed to this namespace", net: net, obs: seeing(everything, holding(networkWith()), denied), outcome: "blocked: CloudUnavailable by Cloud/default", says: "does not exist"},
		{name: "it is gone without our doing: not made again, for VMs were on it", net: net, obs: seeing(everything, isGone), outcome: "stalled: Lost, again in 1m0s", says: "it is not created again"},
		{name: "it is gone, and another bears its name: not touched", net: net, obs: seeing(everything, isGone, beside(networkWith(id("n2")))), outcome: "stalled: Lost, again in 1m0s", says: "it is not created again"},
		{name: "nothing is known of it: nothing is said either", net: net, obs: seeing(everything, claimed, away), outcome: "unknown", says: "nothing is known"},
		{name: "nothing is known of it, and its spec was edited: that it waits is told", net: netWith(recorded, edited), obs: seeing(everything, claimed, away), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "the cloud has no networks any more", net: net, obs: seeing(cloud.NewCapabilities(cloud.Labels), claimed), outcome: "stalled: Unsupported, again in 10m0s", says: "has no networks"},
		{name: "somebody took the finalizer off: it is put back before anything else", net: net, obs: seeing(everything, holding(networkWith(through("10.0.0.9"))), unclaimed), steps: []string{external.StepClaim, stepUpdate}, outcome: "in sync"},
		{name: "it has another gateway", net: net, obs: seeing(everything, holding(networkWith(through("10.0.0.9")))), steps: []string{stepUpdate}, outcome: "in sync"},
		{name: "it has another range: nobody can change that", net: net, obs: seeing(everything, holding(networkWith(ranging("10.0.0.0/16"), through("10.0.0.9")))), outcome: "stalled: Drift, again in 1m0s", says: "cidr of network n1 is 10.0.0.0/16 in the cloud, 10.0.0.0/24 in the spec"},
		{name: "it bears another name: it is not ours to change", net: net, obs: seeing(everything, holding(networkWith(called("other"), through("10.0.0.9")))), outcome: "stalled: Drift, again in 1m0s", says: `named "other" in the cloud`},
		{name: "a network made twice: the other one goes first", net: net, obs: seeing(bare, holding(networkWith(through("10.0.0.9"))), beside(networkWith(id("n2")))), steps: []string{external.StepDeleteDuplicate}, outcome: "in sync"},
	})
}

func TestPlanOfANetworksDeletion(t *testing.T) {
	t.Parallel()
	net, whole := netWith(recorded, deleted), []string{external.StepDelete, external.StepConfirmGone, external.StepRelease}
	runPlans(t, []planCase{
		{name: "nothing is on it", net: net, obs: seeing(everything, holding(networkWith())), steps: whole, outcome: "in sync"},
		{name: "a VM is on it", net: net, obs: seeing(everything, holding(networkWith()), using("web")), outcome: "blocked: Blocked by VM/web", says: "VMs on this network: 1 (web); delete them first"},
		{name: "many VMs are on it: some are named, all counted", net: net, obs: seeing(everything, holding(networkWith()), using("a", "b", "c", "d")), outcome: "blocked: Blocked by VM/a", says: "VMs on this network: 4 (a, b, c, …)"},
		{name: "a VM may be on one that is not on record", net: netWith(deleted), obs: seeing(everything, finding(), using("web")), outcome: "blocked: Blocked by VM/web", says: "VMs on this network: 1"},
		{name: "what is in the cloud goes even if the namespace may not use it any more", net: net, obs: seeing(everything, holding(networkWith()), denied), steps: whole, outcome: "in sync"},
		{name: "the cloud could not be asked", net: net, obs: seeing(everything, claimed, away), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "the cloud has no networks any more: that it is gone is not proved", net: net, obs: seeing(cloud.NewCapabilities(cloud.Labels), claimed), outcome: "stalled: Unsupported, again in 10m0s", says: "has no networks"},
		{name: "it is gone already", net: net, obs: seeing(everything, isGone), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "the listing lacks it, which proves nothing", net: net, obs: seeing(everything, finding()), steps: []string{external.StepConfirmGone, external.StepRelease}, outcome: "in sync"},
		{name: "it bears another name: it is not ours to delete", net: net, obs: seeing(everything, holding(networkWith(called("other")))), outcome: "stalled: Blocked, again in 1m0s", says: "so it is not deleted"},
		{name: "a network made twice: the other one goes first", net: net, obs: seeing(bare, holding(networkWith()), beside(networkWith(id("n2")))), steps: []string{external.StepDeleteDuplicate}, outcome: "in sync"},
		{name: "not on record, and found", net: netWith(deleted), obs: seeing(bare, finding(networkWith())), steps: append([]string{external.StepAdopt}, whole...), outcome: "in sync"},
		{name: "not on record, and found twice", net: netWith(deleted), obs: seeing(bare, finding(networkWith(), networkWith(id("n2")))), steps: []string{external.StepAdopt, external.StepDeleteDuplicate}, outcome: "in sync"},
		{name: "not on record, and it may still come, whatever the cloud guarantees", net: netWith(deleted), obs: seeing(everything, finding(), settling), outcome: "waiting: Requested, again in 1m0s", says: "settleTime"},
		{name: "not on record, and nothing comes any more", net: netWith(deleted), obs: seeing(bare, finding()), steps: []string{external.StepRelease}, outcome: "in sync"},
	})
}

// lawful checks what must hold of every plan, whatever was seen.
func lawful(net *v1alpha1.Network, obs *observation, steps []string) error {
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
		return errors.New("a create for a Network that has, or may have, no new network")
	case has(external.StepCreate) && obs.Claimed != "" && (!obs.Looked || obs.Moved || (obs.Settles > 0 && !obs.Capabilities().Has(cloud.Idempotency) && !obs.Capabilities().Has(cloud.UniqueNames))):
		return errors.New("a create while an earlier one may still take effect, or have taken it")
	case has(external.StepCreate) && obs.Claimed == "" && steps[0] != external.StepClaim:
		return errors.New("a create without a claim")
	case has(external.StepDelete) && (!deleting || len(obs.attached) > 0 || foreign):
		return errors.New("a network is deleted that is to stay, is in use or is not ours")
	case has(stepUpdate) && (deleting || foreign || obs.Gone):
		return errors.New("a network is changed that is not ours, or about to go")
	case has(external.StepDeleteDuplicate) && len(obs.Duplicates) == 0 && len(obs.Candidates) < 2:
		return errors.New("a duplicate is deleted where there is none")
	case has(external.StepDeleteDuplicate) && !has(external.StepAdopt) && id == "":
		return errors.New("a duplicate is deleted of nothing that is kept")
	case has(external.StepRelease) && (!deleting || len(obs.attached) > 0):
		return errors.New("an object is let go that is not being deleted, or is in use")
	case has(external.StepRelease) && steps[len(steps)-1] != external.StepRelease:
		return errors.New("something is done after the object was let go")
	case has(external.StepRelease) && !has(external.StepConfirmGone) && (id != "" || len(obs.Candidates) > 0 || !obs.Looked || obs.Settles > 0):
		return errors.New("an object is let go whose network is not proved gone")
	case has(external.StepUnclaim) && (len(obs.Candidates) > 0 || !obs.Looked || obs.Settles > 0):
		return errors.New("a claim is given up of which something may have come")
	}
	return nil
}

// TestEveryPlanIsLawful goes through all that can be obs at once.
func TestEveryPlanIsLawful(t *testing.T) {
	t.Parallel()
	flags := []func(*v1alpha1.Network, *observation){
		func(net *v1alpha1.Network, _ *observation) { deleted(net) },
		func(net *v1alpha1.Network, _ *observation) { recorded(net) },
		func(net *v1alpha1.Network, _ *observation) { edited(net) },
		func(_ *v1alpha1.Network, obs *observation) { obs.Claimed = ours },
		func(_ *v1alpha1.Network, obs *observation) { obs.Looked = true },
		func(_ *v1alpha1.Network, obs *observation) { obs.Gone = true },
		func(_ *v1alpha1.Network, obs *observation) { settling(obs) },
		func(_ *v1alpha1.Network, obs *observation) { movedAway(obs) },
		func(_ *v1alpha1.Network, obs *observation) { denied(obs) },
		func(_ *v1alpha1.Network, obs *observation) { away(obs) },
		func(_ *v1alpha1.Network, obs *observation) { using("web")(obs) },
	}
	networks := []*cloud.Network{nil}
	for _, n := range []cloud.Network{networkWith(), networkWith(called("other")), networkWith(through("10.0.0.9")), networkWith(ranging("10.0.0.0/8"))} {
		networks = append(networks, &n)
	}
	tried := 0
	for bits := range 1 << len(flags) {
		for _, caps := range []cloud.Capabilities{everything, keyed, named, bare, nil} {
			for _, n := range networks {
				for namesakes := range 3 {
					net, obs := netWith(), seeing(caps)
					named := ([]cloud.Network{networkWith(id("n2")), networkWith(id("n3"))}[:namesakes])
					for i, set := range flags {
						if bits&(1<<i) != 0 {
							set(net, obs)
						}
					}
					switch looked := obs.Looked && obs.Claimed != "" && obs.Available(); {
					case !looked:
						obs.Looked, obs.Gone = false, false
					case net.Status.NetworkID == "":
						obs.Gone, obs.Candidates, obs.Proof = false, named, external.OwnerProof
					default:
						obs.Duplicates = named
						if !obs.Gone {
							obs.Resource = n
						}
					}
					tried++
					p := pure.Plan(net, obs)
					steps, outcome := p.Names(), p.Outcome
					if err := lawful(net, obs, steps); err != nil {
						t.Fatalf("%v: plan %v, %s\nof %+v\nseeing %+v", err, steps, said(outcome), net, obs)
					}
				}
			}
		}
	}
	if tried < 100_000 {
		t.Errorf("%d situations: most were never tried", tried)
	}
}

func TestTheNameInTheCloud(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 40)
	for name, test := range map[string]struct {
		net  *v1alpha1.Network
		want string
	}{
		"is readable and ends in what is the object's alone": {netWith(), ours},
		"is another for another object of the name":          {netWith(func(net *v1alpha1.Network) { net.UID = "other" }), "ns-net-cf82c5762ee2"},
		"is shortened where it would be too long": {netWith(func(net *v1alpha1.Network) { net.Namespace, net.Name = long, long }),
			long + "-aaaaaaaaa-e6cfdbfe088a"},
		"is not cut behind a separator": {netWith(func(net *v1alpha1.Network) { net.Namespace, net.Name = long, "aaaaaaaa.a" }),
			long + "-aaaaaaaa-e6cfdbfe088a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newKind(nil, setup.Options{Cluster: "cluster"}).nameInCloud(test.net)
			if diff := cmp.Diff(test.want, got); diff != "" || len(got) > maxName {
				t.Errorf("%d bytes (-want +got):\n%s", len(got), diff)
			}
		})
	}
	if newKind(nil, setup.Options{Cluster: "another"}).nameInCloud(netWith()) == ours {
		t.Error("two clusters on one cloud have the same name for their networks")
	}
}

func TestWhatIsMeantIsComparedNotHowItIsWritten(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, cidr, gateway string
		has                 cloud.Network
		sameRange, sameGate bool
	}{
		{"the same", "10.0.0.0/24", "10.0.0.1", networkWith(), true, true},
		{"another gateway", "10.0.0.0/24", "10.0.0.2", networkWith(), true, false},
		{"another prefix", "10.0.0.0/16", "10.0.0.1", networkWith(), false, true},
		{"a shortened address", "fd00:0::/64", "fd00:0:0::1", networkWith(ranging("fd00::/64"), through("fd00::1")), true, true},
		{"a range with address bits", "10.0.0.0/24", "10.0.0.1", networkWith(ranging("10.0.0.1/24")), true, true},
		{"what nobody can read is compared as text", "10.0.0.0/24", "10.0.0.1", networkWith(ranging("?"), through("?")), false, false},
		{"and may be the same", "?", "?", networkWith(ranging("?"), through("?")), true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			net := netWith(func(net *v1alpha1.Network) { net.Spec.CIDR, net.Spec.Gateway = test.cidr, test.gateway })
			if got := sameRange(net, test.has); got != test.sameRange {
				t.Errorf("range: %t", got)
			}
			if got := sameGateway(net, test.has); got != test.sameGate {
				t.Errorf("gateway: %t", got)
			}
		})
	}
}
