package cloud

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// summed is a status without what the engine adds, as text.
type summed struct {
	Capabilities   []string
	Servers        *pcapi.CloudServers
	BrakedSnapshot string
	Conditions     []string
}

func sum(s pcapi.CloudStatus) summed {
	out := summed{Capabilities: s.Capabilities, Servers: s.Servers, BrakedSnapshot: s.BrakedSnapshot}
	for _, c := range s.Conditions {
		out.Conditions = append(out.Conditions, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return out
}

const (
	accepted   = "Authenticated=True Accepted: the cloud accepted the credentials"
	openHouse  = "Authenticated=True Accepted: the cloud asks for no credentials"
	unanswered = "Authenticated=Unknown Connecting: the cloud has not answered; see Ready"
	readable   = "Conformant=True Readable: the operator reads all parts of the cloud's answers that it uses"
	released   = "Braked=False Released: no brake is on"
	brakedS2   = "Braked=True ServersVanished: snapshot S2 lacks 2 servers that VMs of this cluster record, a among them; nothing is created or deleted on this cloud " +
		"until you have looked and run: kubectl annotate cloud home --overwrite samplecontroller.k8s.io/acknowledge=S2"
)

func TestReport(t *testing.T) {
	counts := pcapi.CloudServers{Known: 7, Managed: 3, Orphaned: 1}
	listed := func(s *observation) {
		s.counts, s.caps = counts, cloud.NewCapabilities(cloud.UniqueNames, cloud.Labels)
	}
	before := func(c *pcapi.Cloud) {
		c.Status.Capabilities, c.Status.Servers = []string{"labels", "uniqueNames"}, &counts
	}
	with := func(conditions ...metav1.Condition) func(*pcapi.Cloud) {
		return func(c *pcapi.Cloud) { c.Status.Conditions = conditions }
	}
	brakeOn := metav1.Condition{Type: pcapi.BrakedCondition, Status: metav1.ConditionTrue, Reason: pcapi.ServersVanishedReason, Message: "look at S1"}
	full := func(snapshot string, conditions ...string) summed {
		return summed{Capabilities: []string{"labels", "uniqueNames"}, Servers: &counts, BrakedSnapshot: snapshot, Conditions: conditions}
	}
	stalled := func(reason string) error { return stall(reason, errors.New("what to do")) }
	tests := []struct {
		name    string
		cloud   *pcapi.Cloud
		obs     *observation
		outcome error
		want    summed
	}{
		{name: "listed", cloud: home(withSecret), obs: observed(listed), want: full("", accepted, released, readable)},
		{name: "listed, and no credentials are asked for", cloud: home(), obs: observed(listed), want: full("", openHouse, released, readable)},
		{
			name: "no listing was due: the counts stay", cloud: home(before), obs: observed(unlisted, func(s *observation) { s.caps = cloud.NewCapabilities(cloud.Async) }),
			want: full("", openHouse, released),
		},
		{name: "the cloud has no capabilities any more", cloud: home(before), obs: observed(), want: summed{Servers: &pcapi.CloudServers{}, Conditions: []string{openHouse, released, readable}}},
		{
			name: "the credentials are wrong", cloud: home(withSecret), obs: observed(unusable), outcome: stalled(pcapi.AuthenticationFailedReason),
			want: summed{Conditions: []string{"Authenticated=False AuthenticationFailed: what to do", released}},
		},
		{
			name: "the Secret is missing", cloud: home(withSecret), obs: observed(unusable), outcome: stalled(pcapi.SecretMissingReason),
			want: summed{Conditions: []string{"Authenticated=False SecretMissing: what to do", released}},
		},
		{name: "the cloud does not answer: the credentials are unknown", cloud: home(before), obs: observed(unusable), outcome: reconciler.Wait(time.Second, pcapi.UnreachableReason, "x"), want: full("", unanswered, released)},
		{name: "many servers vanished", cloud: home(), obs: observed(listed, vanishing), outcome: stalled(pcapi.ServersVanishedReason), want: full("S2", openHouse, brakedS2, readable)},
		{
			name: "the brake is on: its condition stays, whatever vanished since", cloud: home(brakedAt("S1"), with(brakeOn)), obs: observed(listed, vanishing, held), outcome: stalled(pcapi.ServersVanishedReason),
			want: full("S1", "Braked=True ServersVanished: look at S1", openHouse, readable),
		},
		{name: "the brake is acknowledged", cloud: home(brakedAt("S1"), with(brakeOn)), obs: observed(listed, held, acknowledged, isReleased), want: full("", released, openHouse, readable)},
		{
			name: "the brake is acknowledged, but the cloud is unavailable: it holds", cloud: home(before, brakedAt("S1"), with(brakeOn)), obs: observed(unusable, held, acknowledged),
			outcome: reconciler.Wait(time.Second, pcapi.UnreachableReason, "x"), want: full("S1", "Braked=True ServersVanished: look at S1", unanswered),
		},
		{
			name: "the brake is acknowledged, and more vanished: it is on again, and to be acknowledged again", cloud: home(brakedAt("S1"), with(brakeOn)),
			obs: observed(listed, held, acknowledged, vanishing), outcome: stalled(pcapi.ServersVanishedReason), want: full("S2", brakedS2, openHouse, readable),
		},
		{name: "deleted and used: reported like any other, and what uses it", cloud: home(deleted), obs: observed(listed, used), outcome: stalled(pcapi.InUseReason), want: full("", openHouse, released, readable, "InUse=True InUse: VMs: 2")},
		{name: "deleted and released: nothing is reported", cloud: home(deleted), obs: &observation{claimed: true}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			planned.Report(tc.cloud, tc.obs, tc.outcome)
			if diff := cmp.Diff(tc.want, sum(tc.cloud.Status)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummarySaysWhatTheCloudGuarantees(t *testing.T) {
	tests := []struct {
		caps cloud.Capabilities
		want string
	}{
		{cloud.NewCapabilities(cloud.Idempotency, cloud.UniqueNames, cloud.Labels), "connected; each VM is created exactly once: the cloud honours idempotency keys"},
		{cloud.NewCapabilities(cloud.UniqueNames, cloud.Labels), "connected; each VM is created exactly once: the cloud keeps names unique"},
		{cloud.NewCapabilities(cloud.Labels), "connected; this cloud has neither idempotency keys nor unique names: if the answer to a create is lost, two VMs may exist for a while, and the younger is removed"},
		{nil, "connected; this cloud has neither idempotency keys, unique names nor labels: if the answer to a create is lost, a VM may remain that only a person can attribute"},
	}
	for _, tc := range tests {
		want := reconciler.Summary{Reason: pcapi.ConnectedReason, Message: tc.want, RequeueAfter: pollInterval}
		equal(t, "summary", want, planned.Report(home(), observed(func(s *observation) { s.caps = tc.caps }), nil))
	}
	gone := reconciler.Summary{Reason: "Disconnected", Message: "no VM or Network refers to the Cloud any more"}
	equal(t, "summary of the release", gone, planned.Report(home(deleted), &observation{claimed: true}, nil))
}

func TestReadyForVMs(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome error
		want    bool
	}{
		"in sync: ready":                       {nil, true},
		"deleted while VMs refer to it: ready": {stall(pcapi.InUseReason, errLogin), true},
		"no Secret: not ready":                 {stall(pcapi.SecretMissingReason, errLogin), false},
		"the cloud is unreachable: not ready":  {reconciler.Wait(time.Second, pcapi.UnreachableReason, "away"), false},
		"the API server fails: not ready":      {errAPIAway, false},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, outcomeText(tc.outcome), tc.want, ready(tc.outcome))
		})
	}
}
