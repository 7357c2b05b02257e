package network

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// withCondition adds a condition to the status.
func withCondition(kind string, status metav1.ConditionStatus, reason string) func(*pcapi.Network) {
	return func(net *pcapi.Network) {
		net.Status.Conditions = append(net.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason})
	}
}

// statusSummary is a status without the fields that the engine sets.
type statusSummary struct {
	NetworkID, Cloud string
	VMs              int32
	Conditions       []string
}

func summarize(s pcapi.NetworkStatus) statusSummary {
	out := statusSummary{NetworkID: s.NetworkID, Cloud: s.Cloud, VMs: s.AttachedVMs}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

func TestReport(t *testing.T) {
	t.Parallel()
	const twice = "; this cloud has neither idempotency keys nor unique names: if the answer to a create is lost, two networks may exist for a while, and the younger is removed"
	why := errors.New("why")
	stalled := func(reason string) error { return reconciler.Stalled(reason, time.Minute, why) }
	waiting := func(reason string) error { return reconciler.Wait(time.Second, reason, "why") }
	blocked := func(reason string) error { return reconciler.Blocked("x", reason, "why") }
	uncounted := func(obs *observation) { obs.counted = false }
	adoptedHow := func(obs *observation) { obs.How = pcapi.AdoptedReason }
	for _, test := range []struct {
		name    string
		net     *pcapi.Network
		obs     *observation
		outcome error
		want    statusSummary
	}{
		{"no network: Pending", netWith(), obsWith(nil, unavailable), blocked(pcapi.CloudUnavailableReason), statusSummary{Conditions: []string{"Created=False Pending: why"}}},
		{"network created: Created", netWith(), obsWith(everything, withNetwork(networkWith())), nil,
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{`Created=True Created: network n1 on Cloud "default"`}}},
		{"network found: Adopted", netWith(), obsWith(everything, withNetwork(networkWith()), adoptedHow), nil,
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{`Created=True Adopted: network n1 on Cloud "default"`}}},
		{"already Adopted: the reason is kept", netWith(recorded, withCondition("Created", "True", "Adopted")), obsWith(everything, withNetwork(networkWith()), withAttachedVMs("a", "b")), nil,
			statusSummary{NetworkID: "n1", Cloud: "default", VMs: 2, Conditions: []string{`Created=True Adopted: network n1 on Cloud "default"`}}},
		{"labels only: Created states what is not guaranteed", netWith(), obsWith(labelsOnly, withNetwork(networkWith())), nil,
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{`Created=True Created: network n1 on Cloud "default"` + twice}}},
		{"Cloud not allowed: no statement about guarantees", netWith(), obsWith(labelsOnly, denied), blocked(pcapi.CloudUnavailableReason), statusSummary{Conditions: []string{"Created=False Pending: why"}}},
		{"answer lost: OutcomeUnknown", netWith(), obsWith(everything), waiting(pcapi.OutcomeUnknownReason), statusSummary{Conditions: []string{"Created=False OutcomeUnknown: why"}}},
		{"rejected: Rejected", netWith(), obsWith(everything), stalled(pcapi.RejectedReason), statusSummary{Conditions: []string{"Created=False Rejected: why"}}},
		{"cloud has no networks: Rejected", netWith(), obsWith(nil), stalled(pcapi.UnsupportedReason), statusSummary{Conditions: []string{"Created=False Rejected: why"}}},
		{"quota exceeded: QuotaExceeded", netWith(), obsWith(everything), waiting(pcapi.QuotaExceededReason), statusSummary{Conditions: []string{"Created=False QuotaExceeded: why"}}},
		{"lost: the id is kept", netWith(recorded, withCondition("Created", "True", "Created")), obsWith(everything, gone), stalled(pcapi.LostReason),
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{"Created=False Lost: why"}}},
		{"cloud unavailable: the status is kept", netWith(recorded, withCondition("Created", "True", "Created")), obsWith(everything, unavailable), blocked(pcapi.CloudUnavailableReason),
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{"Created=True Created: "}}},
		{"VMs not counted: the count is kept", netWith(recorded, func(net *pcapi.Network) { net.Status.AttachedVMs = 7 }), obsWith(everything, uncounted), why,
			statusSummary{NetworkID: "n1", Cloud: "default", VMs: 7}},
		{"deletion waits for VMs: Blocked", netWith(recorded, deleted), obsWith(everything, withNetwork(networkWith()), withAttachedVMs("a")), blocked(pcapi.BlockedReason),
			statusSummary{NetworkID: "n1", Cloud: "default", VMs: 1, Conditions: []string{`Created=True Created: network n1 on Cloud "default"`, "Deleting=True Blocked: why"}}},
		{"deletion waits for the cloud: WaitingForCloud", netWith(recorded, deleted), obsWith(everything, unavailable), blocked(pcapi.CloudUnavailableReason),
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{"Deleting=True WaitingForCloud: why"}}},
		{"deletion waits for the brake: Blocked", netWith(recorded, deleted), obsWith(everything), blocked(pcapi.BrakedReason),
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{"Deleting=True Blocked: why"}}},
		{"deletion requested: Requested", netWith(recorded, deleted), obsWith(everything), waiting(pcapi.RequestedReason),
			statusSummary{NetworkID: "n1", Cloud: "default", Conditions: []string{"Deleting=True Requested: why"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pure.Report(test.net, test.obs, test.outcome)
			if diff := cmp.Diff(test.want, summarize(test.net.Status)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportSummary(t *testing.T) {
	t.Parallel()
	at := func(obs *observation) { obs.View.Settings.PollInterval = time.Minute }
	for _, test := range []struct {
		name string
		net  *pcapi.Network
		obs  func(*observation)
		want reconciler.Summary
	}{
		{"in sync: requeued after the poll interval", netWith(recorded), claimed, reconciler.Summary{Reason: "InSync", Message: "network n1 is as the spec says", RequeueAfter: time.Minute}},
		{"deleted, network gone: Deleted", netWith(recorded, deleted), gone, reconciler.Summary{Reason: "Deleted", Message: `network n1 is gone from Cloud "default"`}},
		{"deleted without a network: Deleted", netWith(deleted), claimed, reconciler.Summary{Reason: "Deleted", Message: `nothing of it is on Cloud "default"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, pure.Report(test.net, obsWith(everything, at, test.obs), nil)); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}
