package gpuinfo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// cond writes a condition as "Type=Status Reason: message".
func cond(c metav1.Condition) string {
	return c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message
}

// summed is a status as text.
type summed struct {
	Node, Host            string
	MHz, MB, Hours        int64
	Reserved              string
	Candidates, Placed    []string
	ExpiredGeneration     int64
	LastHandled           string
	Summary, SummaryAgain string
}

func sum(gpu *pcapi.GPUInfo, summary reconciler.Summary) summed {
	s := gpu.Status
	out := summed{
		Node: s.SuitableNodeName, Host: s.SuitableHostName, MHz: s.NodeCPUUsage, MB: s.NodeMemoryUsage, Hours: s.AvailableAcceleratorTime,
		ExpiredGeneration: s.ExpiredGeneration, LastHandled: s.LastHandledReconcileAt, Summary: summary.Message,
	}
	if summary.RequeueAfter != 0 {
		out.SummaryAgain = summary.RequeueAfter.String()
	}
	if s.Reservation != nil {
		out.Reserved = s.Reservation.Host
	}
	for _, c := range s.Candidates {
		out.Candidates = append(out.Candidates, fmt.Sprintf("%s on %s: %s", c.NodeName, c.HostName, c.Message))
	}
	for _, c := range s.Conditions {
		out.Placed = append(out.Placed, cond(c))
	}
	return out
}

// reported gives a GPUInfo the status of an earlier reconcile that chose n1 on h1.
func reported(gpu *pcapi.GPUInfo) {
	holding("n1", time.Hour)(gpu)
	gpu.Status.NodeCPUUsage, gpu.Status.NodeMemoryUsage, gpu.Status.AvailableAcceleratorTime = 900, 10, 100
	gpu.Status.Candidates = []pcapi.GPUCandidate{{NodeName: "n1", HostName: "h1", Message: "chosen"}}
	gpu.Status.Conditions = []metav1.Condition{{Type: pcapi.PlacedCondition, Status: metav1.ConditionTrue, Reason: pcapi.PlacedReason, Message: "as before"}}
}

func TestReport(t *testing.T) {
	const (
		onN1 = `node "n1" on host "h1" of Cloud "default" is reserved for 10 hours`
		onN2 = `node "n2" on host "h2" of Cloud "default" is reserved for 10 hours`
		none = "Placed=False NoneAvailable: no node suits now: status.candidates says why of each; asked again when nodes, servers, hosts or reservations change"
	)
	before := summed{
		Node: "n1", Host: "h1", MHz: 900, MB: 10, Hours: 100, Reserved: "h1", Candidates: []string{"n1 on h1: chosen"},
		Placed: []string{"Placed=True Placed: as before"}, Summary: onN1, SummaryAgain: "9h0m0s",
	}
	refused := func(s *observation) {
		s.refused = reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New("not allowed"))
	}
	for name, test := range map[string]struct {
		gpu  *pcapi.GPUInfo
		obs  *observation
		want summed
	}{
		"a node is chosen": {
			gpu: asking(), obs: world(3, hostIs("h1", false, 100), requested("now")),
			want: summed{
				Node: "n3", Host: "h3", MHz: 700, MB: 30, Hours: 100, Reserved: "h3", LastHandled: "now",
				Candidates: []string{"n3 on h3: chosen, and kept as long as it suits", "n2 on h2: suits; another was chosen", "n1 on h1: the host has no GPU"},
				Placed:     []string{strings.Replace("Placed=True Placed: "+onN1, `"n1" on host "h1"`, `"n3" on host "h3"`, 1)},
				Summary:    strings.Replace(onN1, `"n1" on host "h1"`, `"n3" on host "h3"`, 1), SummaryAgain: "10h0m0s",
			},
		},
		"no node suits": {
			gpu: asking(reported), obs: world(1, nodeIs(1, func(n *node) { n.cordoned = true })),
			want: summed{Node: pcapi.NoneAvailable, Host: pcapi.NoneAvailable, Candidates: []string{"n1 on h1: the node is cordoned"}, Placed: []string{none}},
		},
		"usage changed by a tenth: not written": {
			gpu: asking(reported), obs: world(1, serverIs("n1", func(s *cloud.Server) { s.CPUUsageMHz, s.MemoryUsageMB = 990, 9 })),
			want: summed{
				Node: "n1", Host: "h1", MHz: 900, MB: 10, Hours: 100, Reserved: "h1", Placed: []string{"Placed=True Placed: " + onN1},
				Candidates: []string{"n1 on h1: chosen, and kept as long as it suits"}, Summary: onN1, SummaryAgain: "9h0m0s",
			},
		},
		"usage changed by more than a tenth: written, with the host's hours": {
			gpu: asking(reported), obs: world(1, hostIs("h1", true, 99), serverIs("n1", func(s *cloud.Server) { s.CPUUsageMHz, s.MemoryUsageMB = 991, 8 })),
			want: summed{
				Node: "n1", Host: "h1", MHz: 991, MB: 8, Hours: 99, Reserved: "h1", Placed: []string{"Placed=True Placed: " + onN1},
				Candidates: []string{"n1 on h1: chosen, and kept as long as it suits"}, Summary: onN1, SummaryAgain: "9h0m0s",
			},
		},
		"another node is chosen: its usage is written": {
			gpu: asking(reported), obs: world(2, nodeIs(1, func(n *node) { n.ready = false }), serverIs("n2", func(s *cloud.Server) { s.CPUUsageMHz = 901 })),
			want: summed{
				Node: "n2", Host: "h2", MHz: 901, MB: 20, Hours: 100, Reserved: "h2", Placed: []string{"Placed=True Placed: " + onN2},
				Candidates: []string{"n2 on h2: chosen, and kept as long as it suits", "n1 on h1: the node is not Ready"}, Summary: onN2, SummaryAgain: "10h0m0s",
			},
		},
		"the reservation has ended": {
			gpu: asking(reported), obs: world(1, func(s *observation) { s.now = noon.Add(9 * time.Hour) }),
			want: summed{
				Node: pcapi.NoneAvailable, Host: pcapi.NoneAvailable, ExpiredGeneration: 1,
				Placed: []string{"Placed=False Expired: " + expired(asking()).Error()},
			},
		},
		"a choice after the reservation has ended": {
			gpu: asking(hoursOver), obs: world(1, requested("again")),
			want: summed{
				Node: "n1", Host: "h1", MHz: 900, MB: 10, Hours: 100, Reserved: "h1", LastHandled: "again", Placed: []string{"Placed=True Placed: " + onN1},
				Candidates: []string{"n1 on h1: chosen, and kept as long as it suits"}, Summary: onN1, SummaryAgain: "10h0m0s",
			},
		},
		"the cloud is unavailable: the status stays":                 {gpu: asking(reported), obs: world(0, away, requested("now")), want: before},
		"the cloud is unavailable, nothing chosen before: no status": {gpu: asking(), obs: world(0, away)},
		"the cloud is unavailable, the reservation of an earlier spec has ended: it is removed": {
			gpu: asking(reported, edited), obs: world(0, away, func(s *observation) { s.now = noon.Add(9 * time.Hour) }),
		},
		"the Cloud is refused: the status shows nothing of it": {gpu: asking(reported), obs: world(1, refused)},
	} {
		t.Run(name, func(t *testing.T) {
			got := sum(test.gpu, reconcileOnce(t, test.gpu, test.obs))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportAfterFailedObserveKeepsOrExpiresTheReservation(t *testing.T) {
	failed := func(o *observation) { o.unknown = errors.New("list nodes: the API server is unavailable") }
	for name, test := range map[string]struct {
		gpu  *pcapi.GPUInfo
		obs  *observation
		node string
		want []string
	}{
		"reserved: it stays": {asking(reported), world(2, failed), "n1", []string{"Placed=True Placed: as before"}},
		"the reservation has ended: it expires": {
			asking(reported), world(2, failed, func(o *observation) { o.now = noon.Add(9 * time.Hour) }),
			pcapi.NoneAvailable, []string{"Placed=False Expired: " + expired(asking()).Error()},
		},
		"nothing reserved: nothing is reported": {asking(), world(2, failed), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := sum(test.gpu, (&kind{}).Report(test.gpu, test.obs, test.obs.unknown))
			if diff := cmp.Diff([]any{test.node, test.want}, []any{got.Node, got.Placed}); diff != "" {
				t.Errorf("node and Placed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportDoesNotChangeAnUpToDateStatus(t *testing.T) {
	for name, obs := range map[string]*observation{
		"chosen": world(2), "nothing suits": world(0), "over": world(1, func(s *observation) { s.now = noon.Add(20 * time.Hour) }),
		"away": world(0, away), "refused": world(0, func(s *observation) {
			s.refused = reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New("not allowed"))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			gpu := asking(reported)
			reconcileOnce(t, gpu, obs)
			for i := range gpu.Status.Conditions {
				gpu.Status.Conditions[i].LastTransitionTime = metav1.NewTime(noon)
			}
			want := gpu.Status.DeepCopy()
			reconcileOnce(t, gpu, obs)
			if diff := cmp.Diff(*want, gpu.Status); diff != "" {
				t.Errorf("a second reconcile would write (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReportBoundsTheStatus(t *testing.T) {
	s := world(100, serverIs("n7", func(s *cloud.Server) { s.Host = strings.Repeat("x", 254) }))
	for i := range s.nodes {
		s.nodes[i].cordoned = true
	}
	gpu := asking()
	reconcileOnce(t, gpu, s)
	if n := len(gpu.Status.Candidates); n != maxCandidates {
		t.Errorf("got %d candidates, want %d", n, maxCandidates)
	}
	for _, c := range gpu.Status.Candidates {
		if len(c.HostName) > maxHost || len(c.Message) > 256 {
			t.Errorf("%s: the status would be refused: host %q, outcome %q", c.NodeName, c.HostName, c.Message)
		}
	}
}

func TestRequestIsTruncated(t *testing.T) {
	gpu := asking(func(gpu *pcapi.GPUInfo) {
		gpu.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: strings.Repeat("ä", 200)}
	})
	if got := requestOf(gpu); got != strings.Repeat("ä", 128) {
		t.Errorf("got %q", got)
	}
}
