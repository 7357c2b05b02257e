package network

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// saying has a Network say something of itself already.
func saying(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.Network) {
	return func(net *v1alpha1.Network) {
		net.Status.Conditions = append(net.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	}
}

// summed is a status without what the engine adds, in words.
type summed struct {
	NetworkID, Cloud string
	VMs              int32
	Conditions       []string
}

func sum(s v1alpha1.NetworkStatus) summed {
	out := summed{NetworkID: s.NetworkID, Cloud: s.Cloud, VMs: s.AttachedVMs}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

func TestReport(t *testing.T) {
	t.Parallel()
	const twice = "; this cloud has neither idempotency keys nor unique names: should the answer to a create be lost, two networks may exist for a while, and the younger is removed"
	why := errors.New("why")
	stalled := func(reason string) error { return stall(reason, why, time.Minute) }
	waiting := func(reason string) error { return reconciler.Wait(time.Second, reason, "why") }
	blocked := func(reason string) error { return reconciler.Blocked("x", reason, "why") }
	uncounted := func(obs *scope) { obs.counted = false }
	adoptedHow := func(obs *scope) { obs.how = v1alpha1.AdoptedReason }
	for _, test := range []struct {
		name    string
		net     *v1alpha1.Network
		obs     *scope
		outcome error
		want    summed
	}{
		{"nothing happened yet", netWith(), seeing(nil, away), blocked(v1alpha1.CloudUnavailableReason), summed{Conditions: []string{"Created=False Pending: why"}}},
		{"it was just created", netWith(), seeing(everything, holding(networkWith())), nil,
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{`Created=True Created: network n1 on Cloud "default"`}}},
		{"it was just found", netWith(), seeing(everything, holding(networkWith()), adoptedHow), nil,
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{`Created=True Adopted: network n1 on Cloud "default"`}}},
		{"how it came to be is told for good", netWith(recorded, saying("Created", "True", "Adopted")), seeing(everything, holding(networkWith()), using("a", "b")), nil,
			summed{NetworkID: "n1", Cloud: "default", VMs: 2, Conditions: []string{`Created=True Adopted: network n1 on Cloud "default"`}}},
		{"what the cloud cannot guarantee is told", netWith(), seeing(bare, holding(networkWith())), nil,
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{`Created=True Created: network n1 on Cloud "default"` + twice}}},
		{"of a Cloud that is none of its business, nothing is told", netWith(), seeing(bare, denied), blocked(v1alpha1.CloudUnavailableReason), summed{Conditions: []string{"Created=False Pending: why"}}},
		{"the answer was lost", netWith(), seeing(everything), waiting(v1alpha1.OutcomeUnknownReason), summed{Conditions: []string{"Created=False OutcomeUnknown: why"}}},
		{"the cloud refuses it", netWith(), seeing(everything), stalled(v1alpha1.RejectedReason), summed{Conditions: []string{"Created=False Rejected: why"}}},
		{"the cloud has no networks", netWith(), seeing(nil), stalled(v1alpha1.UnsupportedReason), summed{Conditions: []string{"Created=False Rejected: why"}}},
		{"the cloud has no room", netWith(), seeing(everything), waiting(v1alpha1.QuotaExceededReason), summed{Conditions: []string{"Created=False QuotaExceeded: why"}}},
		{"it is lost, with its id", netWith(recorded, saying("Created", "True", "Created")), seeing(everything, isGone), stalled(v1alpha1.LostReason),
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{"Created=False Lost: why"}}},
		{"the cloud is away: what was seen of it stays", netWith(recorded, saying("Created", "True", "Created")), seeing(everything, away), blocked(v1alpha1.CloudUnavailableReason),
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{"Created=True Created: "}}},
		{"nobody could count: the count stays", netWith(recorded, func(net *v1alpha1.Network) { net.Status.AttachedVMs = 7 }), seeing(everything, uncounted), why,
			summed{NetworkID: "n1", Cloud: "default", VMs: 7}},
		{"its deletion waits for VMs", netWith(recorded, deleted), seeing(everything, holding(networkWith()), using("a")), blocked(v1alpha1.BlockedReason),
			summed{NetworkID: "n1", Cloud: "default", VMs: 1, Conditions: []string{`Created=True Created: network n1 on Cloud "default"`, "Deleting=True Blocked: why"}}},
		{"its deletion waits for the cloud", netWith(recorded, deleted), seeing(everything, away), blocked(v1alpha1.CloudUnavailableReason),
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{"Deleting=True WaitingForCloud: why"}}},
		{"its deletion waits for somebody's decision", netWith(recorded, deleted), seeing(everything), blocked(v1alpha1.BrakedReason),
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{"Deleting=True Blocked: why"}}},
		{"its deletion is under way", netWith(recorded, deleted), seeing(everything), waiting(v1alpha1.RequestedReason),
			summed{NetworkID: "n1", Cloud: "default", Conditions: []string{"Deleting=True Requested: why"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report(test.net, test.obs, test.outcome)
			if diff := cmp.Diff(test.want, sum(test.net.Status)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheLastWord(t *testing.T) {
	t.Parallel()
	at := func(obs *scope) { obs.view.Settings.PollInterval = time.Minute }
	for _, test := range []struct {
		name string
		net  *v1alpha1.Network
		want reconciler.Summary
	}{
		{"in sync: looked at again", netWith(recorded), reconciler.Summary{Reason: "InSync", Message: "network n1 is as the spec says", RequeueAfter: time.Minute}},
		{"gone", netWith(recorded, deleted), reconciler.Summary{Reason: "Deleted", Message: `network n1 is gone from Cloud "default"`}},
		{"never made", netWith(deleted), reconciler.Summary{Reason: "Deleted", Message: `nothing of it is on Cloud "default"`}},
	} {
		if diff := cmp.Diff(test.want, report(test.net, seeing(everything, at), nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
