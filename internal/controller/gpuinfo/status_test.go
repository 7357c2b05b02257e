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

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// cond writes a condition as "Type=Status Reason: message".
func cond(c metav1.Condition) string {
	return c.Type + "=" + string(c.Status) + " " + c.Reason + ": " + c.Message
}

// summed is a status in words.
type summed struct {
	Node, Host            string
	MHz, MB, Hours        int64
	Reserved              string
	Candidates, Placed    []string
	ExpiredGeneration     int64
	LastHandled           string
	Summary, SummaryAgain string
}

func sum(gpu *v1alpha1.GPUInfo, summary reconciler.Summary) summed {
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

// told gives a GPUInfo what an earlier pass said of n1 on h1.
func told(gpu *v1alpha1.GPUInfo) {
	holding("n1", time.Hour)(gpu)
	gpu.Status.NodeCPUUsage, gpu.Status.NodeMemoryUsage, gpu.Status.AvailableAcceleratorTime = 900, 10, 100
	gpu.Status.Candidates = []v1alpha1.GPUCandidate{{NodeName: "n1", HostName: "h1", Message: "chosen"}}
	gpu.Status.Conditions = []metav1.Condition{{Type: v1alpha1.PlacedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.PlacedReason, Message: "as before"}}
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
	refused := func(s *scope) {
		s.refused = reconciler.Stalled(v1alpha1.CloudUnavailableReason, 0, errors.New("may not"))
	}
	for name, test := range map[string]struct {
		gpu  *v1alpha1.GPUInfo
		obs  *scope
		want summed
	}{
		"a choice, and why": {
			gpu: asking(), obs: world(3, hostIs("h1", false, 100), requested("now")),
			want: summed{
				Node: "n3", Host: "h3", MHz: 700, MB: 30, Hours: 100, Reserved: "h3", LastHandled: "now",
				Candidates: []string{"n3 on h3: chosen, and kept as long as it suits", "n2 on h2: suits; another was chosen", "n1 on h1: the host has no GPU"},
				Placed:     []string{strings.Replace("Placed=True Placed: "+onN1, `"n1" on host "h1"`, `"n3" on host "h3"`, 1)},
				Summary:    strings.Replace(onN1, `"n1" on host "h1"`, `"n3" on host "h3"`, 1), SummaryAgain: "10h0m0s",
			},
		},
		"nothing that suits, and why": {
			gpu: asking(told), obs: world(1, nodeIs(1, func(n *node) { n.cordoned = true })),
			want: summed{Node: v1alpha1.NoneAvailable, Host: v1alpha1.NoneAvailable, Candidates: []string{"n1 on h1: the node is cordoned"}, Placed: []string{none}},
		},
		"a use that moved by a tenth is not worth a write": {
			gpu: asking(told), obs: world(1, serverIs("n1", func(s *cloud.Server) { s.CPUUsageMHz, s.MemoryUsageMB = 990, 9 })),
			want: summed{
				Node: "n1", Host: "h1", MHz: 900, MB: 10, Hours: 100, Reserved: "h1", Placed: []string{"Placed=True Placed: " + onN1},
				Candidates: []string{"n1 on h1: chosen, and kept as long as it suits"}, Summary: onN1, SummaryAgain: "9h0m0s",
			},
		},
		"a use that moved by more is, and the host's hours are": {
			gpu: asking(told), obs: world(1, hostIs("h1", true, 99), serverIs("n1", func(s *cloud.Server) { s.CPUUsageMHz, s.MemoryUsageMB = 991, 8 })),
			want: summed{
				Node: "n1", Host: "h1", MHz: 991, MB: 8, Hours: 99, Reserved: "h1", Placed: []string{"Placed=True Placed: " + onN1},
				Candidates: []string{"n1 on h1: chosen, and kept as long as it suits"}, Summary: onN1, SummaryAgain: "9h0m0s",
			},
		},
		"another node has a use of its own": {
			gpu: asking(told), obs: world(2, nodeIs(1, func(n *node) { n.ready = false }), serverIs("n2", func(s *cloud.Server) { s.CPUUsageMHz = 901 })),
			want: summed{
				Node: "n2", Host: "h2", MHz: 901, MB: 20, Hours: 100, Reserved: "h2", Placed: []string{"Placed=True Placed: " + onN2},
				Candidates: []string{"n2 on h2: chosen, and kept as long as it suits", "n1 on h1: the node is not Ready"}, Summary: onN2, SummaryAgain: "10h0m0s",
			},
		},
		"the hours are over": {
			gpu: asking(told), obs: world(1, func(s *scope) { s.now = noon.Add(9 * time.Hour) }),
			want: summed{
				Node: v1alpha1.NoneAvailable, Host: v1alpha1.NoneAvailable, ExpiredGeneration: 1,
				Placed: []string{"Placed=False Expired: " + plan(asking(expired), world(0)).Error()},
			},
		},
		"a choice after that": {
			gpu: asking(expired), obs: world(1, requested("again")),
			want: summed{
				Node: "n1", Host: "h1", MHz: 900, MB: 10, Hours: 100, Reserved: "h1", LastHandled: "again", Placed: []string{"Placed=True Placed: " + onN1},
				Candidates: []string{"n1 on h1: chosen, and kept as long as it suits"}, Summary: onN1, SummaryAgain: "10h0m0s",
			},
		},
		"with the cloud away, all is said as before": {gpu: asking(told), obs: world(0, away, requested("now")), want: before},
		"nothing is said of what was never asked":    {gpu: asking(), obs: world(0, away)},
		"hours that were over for an earlier spec are not said to be reserved": {
			gpu: asking(told, edited), obs: world(0, away, func(s *scope) { s.now = noon.Add(9 * time.Hour) }),
		},
		"whoever may not use the Cloud reads nothing about it": {gpu: asking(told), obs: world(1, refused)},
	} {
		t.Run(name, func(t *testing.T) {
			got := sum(test.gpu, report(test.gpu, test.obs))
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStatusThatSaysTheSameIsTheSame(t *testing.T) {
	for name, obs := range map[string]*scope{
		"chosen": world(2), "nothing suits": world(0), "over": world(1, func(s *scope) { s.now = noon.Add(20 * time.Hour) }),
		"away": world(0, away), "refused": world(0, func(s *scope) {
			s.refused = reconciler.Stalled(v1alpha1.CloudUnavailableReason, 0, errors.New("may not"))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			gpu := asking(told)
			report(gpu, obs)
			for i := range gpu.Status.Conditions {
				gpu.Status.Conditions[i].LastTransitionTime = metav1.NewTime(noon)
			}
			want := gpu.Status.DeepCopy()
			report(gpu, obs)
			if diff := cmp.Diff(*want, gpu.Status); diff != "" {
				t.Errorf("a second pass over the same would write (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAStatusIsBoundedWhateverTheCloudSays(t *testing.T) {
	s := world(100, serverIs("n7", func(s *cloud.Server) { s.Host = strings.Repeat("x", 254) }))
	for i := range s.nodes {
		s.nodes[i].cordoned = true
	}
	gpu := asking()
	report(gpu, s)
	if n := len(gpu.Status.Candidates); n != maxCandidates {
		t.Errorf("got %d candidates, want %d", n, maxCandidates)
	}
	for _, c := range gpu.Status.Candidates {
		if len(c.HostName) > maxHost || len(c.Message) > 256 {
			t.Errorf("%s: the status would be refused: host %q, outcome %q", c.NodeName, c.HostName, c.Message)
		}
	}
}

func TestARequestIsRememberedWithinItsBound(t *testing.T) {
	gpu := asking(func(gpu *v1alpha1.GPUInfo) {
		gpu.Annotations = map[string]string{v1alpha1.ReconcileRequestedAtAnnotation: strings.Repeat("ä", 200)}
	})
	if got := requestOf(gpu); got != strings.Repeat("ä", 128) {
		t.Errorf("got %q", got)
	}
}
