package gpuinfo

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// planned is a decision and the outcome of its plan.
type planned struct {
	// Node is what is reserved, Since how long ago that began.
	Node  string
	Since time.Duration
	// Stays, Expired: see decision.
	Stays, Expired bool
	Reason         string
}

func planOf(t *testing.T, gpu *pcapi.GPUInfo, obs *observation) planned {
	t.Helper()
	p := (&kind{}).Plan(gpu, obs)
	if diff := cmp.Diff([]string{"Decide"}, p.Names()); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if err := p.Steps[0].Run(t.Context(), gpu, obs); err != nil {
		t.Fatalf("Decide: %v", err)
	}
	d := obs.decision
	out := planned{Stays: d.stays, Expired: d.expired, Reason: reconciler.Reason(p.Outcome)}
	if d.chosen != nil {
		out.Node, out.Since = d.chosen.node, noon.Sub(d.reservation.Since.Time)
	}
	return out
}

func TestDecisions(t *testing.T) {
	const hour = time.Hour
	refused := func(s *observation) {
		s.refused = reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New("not allowed"))
	}
	cordon := nodeIs(1, func(n *node) { n.cordoned = true })
	for name, test := range map[string]struct {
		gpu  *pcapi.GPUInfo
		obs  *observation
		want planned
	}{
		"the least CPU usage is chosen": {asking(), world(3), planned{Node: "n3"}},
		"equal usage: the first by name is chosen": {
			asking(), world(3, serverIs("n2", func(s *cloud.Server) { s.CPUUsageMHz = 700 })), planned{Node: "n2"},
		},
		"one that does not suit is not chosen": {asking(), world(3, hostIs("h3", false, 100)), planned{Node: "n2"}},
		"no nodes: nothing is chosen": {
			asking(), world(0), planned{Reason: pcapi.NoneAvailableReason},
		},
		"others have reserved too many hours: nothing is chosen": {
			asking(), world(1, claimed("other", 91, hour)), planned{Reason: pcapi.NoneAvailableReason},
		},
		"a reservation of the same second counts: nothing is chosen": {
			asking(), world(1, claimed("z", 91, 0)), planned{Reason: pcapi.NoneAvailableReason},
		},
		"a reservation that has ended does not count": {
			asking(), world(1, claimed("other", 0, hour)), planned{Node: "n1"},
		},

		"the choice suits, another uses less: kept": {
			asking(holding("n1", hour)), world(3), planned{Node: "n1", Since: hour},
		},
		"the choice suits for the hours that are left: kept": {
			asking(holding("n1", 8*hour)), world(2, hostIs("h1", true, 2)), planned{Node: "n1", Since: 8 * hour},
		},
		"the choice does not suit for the hours that are left: another": {
			asking(holding("n1", 8*hour)), world(2, hostIs("h1", true, 1)), planned{Node: "n2"},
		},
		"the host's hours count down with the reservation: kept": {
			asking(holding("n1", hour/2)), world(2, hostIs("h1", true, 9)), planned{Node: "n1", Since: hour / 2},
		},
		"the host's hours count down with two reservations: kept": {
			asking(holding("n1", hour/2)), world(2, hostIs("h1", true, 18), claimed("other", 9, hour)), planned{Node: "n1", Since: hour / 2},
		},
		"halves of hours of two reservations add up: another": {
			asking(holding("n1", hour/2)), world(2, hostIs("h1", true, 18), claimedFor("other", 9*hour+hour/2, hour)), planned{Node: "n2"},
		},
		"a later reservation of the same hours: kept": {
			asking(holding("n1", hour)), world(2, claimed("other", 100, time.Minute)), planned{Node: "n1", Since: hour},
		},
		"an earlier reservation of the same hours: another": {
			asking(holding("n1", hour)), world(2, claimed("other", 100, 2*hour)), planned{Node: "n2"},
		},
		"a reservation of the same second, greater UID: kept": {
			asking(holding("n1", hour)), world(2, claimed("z", 100, hour)), planned{Node: "n1", Since: hour},
		},
		"a reservation of the same second, smaller UID: another": {
			asking(holding("n1", hour)), world(2, claimed("a", 100, hour)), planned{Node: "n2"},
		},
		"an earlier reservation, no other node: nothing is chosen": {
			asking(holding("n1", hour)), world(1, claimed("a", 100, hour)), planned{Reason: pcapi.NoneAvailableReason},
		},
		"the cloud lists no server of the node: kept": {
			asking(holding("n1", hour)), world(2, func(s *observation) { s.servers["n1"] = nil }), planned{Node: "n1", Since: hour},
		},
		"the cloud lists two servers of the node: kept": {
			asking(holding("n1", hour)), world(2, func(s *observation) { s.servers["n1"] = append(s.servers["n1"], cloud.Server{ID: "x"}) }), planned{Node: "n1", Since: hour},
		},
		"the cloud does not list the host: another": {
			asking(holding("n1", hour)), world(2, func(s *observation) { delete(s.hosts, "h1") }), planned{Node: "n2"},
		},
		"the cloud lists no hosts: kept": {
			asking(holding("n1", hour)), world(2, func(s *observation) { clear(s.hosts) }), planned{Node: "n1", Since: hour},
		},
		"the server is on another host, which the cloud does not list: another": {
			asking(holding("n1", hour)), world(2, serverIs("n1", func(s *cloud.Server) { s.Host = "h9" })), planned{Node: "n2"},
		},
		"the cloud lists nothing: kept": {
			asking(holding("n1", hour)), world(2, func(s *observation) { clear(s.hosts); clear(s.servers) }), planned{Node: "n1", Since: hour},
		},
		"the cloud lists no server of the node, which is not Ready: another": {
			asking(holding("n1", hour)), world(2, nodeIs(1, func(n *node) { n.ready = false }), func(s *observation) { s.servers["n1"] = nil }), planned{Node: "n2"},
		},
		"the cloud lists no server of a node: not chosen": {
			asking(), world(2, func(s *observation) { s.servers["n2"] = nil }), planned{Node: "n1"},
		},
		"the node is cordoned: another":          {asking(holding("n1", hour)), world(2, cordon), planned{Node: "n2"}},
		"the node is gone: another":              {asking(holding("n9", hour)), world(2), planned{Node: "n2"}},
		"the server is on another host: another": {asking(holding("n2", hour)), world(2), planned{Node: "n2"}},
		"the spec changed: chosen again":         {asking(holding("n1", hour), edited), world(2), planned{Node: "n2"}},
		"the Cloud changed: chosen again":        {asking(holding("n1", hour)), world(2, func(s *observation) { s.cloud = "other" }), planned{Node: "n2"}},
		"a request while the choice suits: kept": {asking(holding("n1", hour)), world(2, requested("now")), planned{Node: "n1", Since: hour}},

		"the reservation has ended: expired":                     {asking(holding("n1", 10*hour)), world(2), planned{Expired: true, Reason: pcapi.ExpiredReason}},
		"a moment before its end: kept":                          {asking(holding("n1", 10*hour-1)), world(2), planned{Node: "n1", Since: 10*hour - 1}},
		"expired: stays so":                                      {asking(hoursOver), world(2), planned{Expired: true, Reason: pcapi.ExpiredReason}},
		"expired, the cloud is unavailable: stays so":            {asking(hoursOver), world(2, away), planned{Expired: true, Reason: pcapi.ExpiredReason}},
		"expired, a request: chosen again":                       {asking(hoursOver), world(2, requested("again")), planned{Node: "n2"}},
		"a request when the reservation ends: chosen again":      {asking(holding("n1", 10*hour)), world(2, requested("again")), planned{Node: "n2"}},
		"expired, a request, the cloud is unavailable: stays so": {asking(hoursOver), world(2, requested("again"), away), planned{Expired: true, Reason: pcapi.ExpiredReason}},
		"expired, the spec changed: chosen again":                {asking(hoursOver, edited), world(2), planned{Node: "n2"}},

		"the cloud is unavailable: stays": {
			asking(holding("n1", hour)), world(0, away), planned{Stays: true},
		},
		"the cloud is unavailable, the reservation has ended: expired": {
			asking(holding("n1", 10*hour)), world(0, away), planned{Expired: true, Reason: pcapi.ExpiredReason},
		},
		"the cloud is unavailable, the spec changed: stays, and not ready": {
			asking(holding("n1", hour), edited), world(0, away), planned{Stays: true, Reason: pcapi.CloudUnavailableReason},
		},
		"the cloud is unavailable, the Cloud changed: stays, and not ready": {
			asking(holding("n1", hour)), world(0, away, func(s *observation) { s.cloud = "other" }), planned{Stays: true, Reason: pcapi.CloudUnavailableReason},
		},
		"the cloud is unavailable, nothing chosen before: nothing": {asking(), world(0, away), planned{Reason: pcapi.CloudUnavailableReason}},
		"the Cloud is refused: nothing": {
			asking(holding("n1", hour)), world(2, refused), planned{Reason: pcapi.CloudUnavailableReason},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, planOf(t, test.gpu, test.obs)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanRequeuesAtTheEndOfTheReservationWhileBlocked(t *testing.T) {
	observed, _ := errors.AsType[*reconciler.BlockedError](errAway)
	for name, test := range map[string]struct {
		gpu  *pcapi.GPUInfo
		obs  *observation
		want time.Duration
	}{
		"the spec changed":    {asking(holding("n1", time.Hour), edited), world(0, away), 9 * time.Hour},
		"nothing is reserved": {asking(), world(0, away), 0},
	} {
		t.Run(name, func(t *testing.T) {
			blocked, _ := errors.AsType[*reconciler.BlockedError]((&kind{}).Plan(test.gpu, test.obs).Outcome)
			want := *observed
			want.RequeueAfter = test.want
			if diff := cmp.Diff(&want, blocked); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
	if observed.RequeueAfter != 0 {
		t.Error("the outcome that Observe gave was changed")
	}
}

func TestReservationLastsForTheRequestedHours(t *testing.T) {
	s := world(1)
	s.now = noon.Add(999 * time.Millisecond)
	got := decide(asking(edited), s).reservation
	want := &pcapi.GPUReservation{
		Host: "h1", Cloud: "default", Generation: 2, Since: metav1.NewTime(noon), Until: metav1.NewTime(noon.Add(10 * time.Hour)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reservation (-want +got):\n%s", diff)
	}
}

func TestOrderOfCandidatesDoesNotDependOnUsage(t *testing.T) {
	s := world(5, nodeIs(1, func(n *node) { n.cordoned = true }), nodeIs(4, func(n *node) { n.ready = false }))
	var got []string
	for _, c := range decide(asking(), s).candidates {
		got = append(got, c.node)
	}
	if diff := cmp.Diff([]string{"n5", "n2", "n3", "n1", "n4"}, got); diff != "" {
		t.Errorf("the chosen one, those that suit, the others (-want +got):\n%s", diff)
	}
}

func TestOutcomesSayWhatToDo(t *testing.T) {
	wait, _ := errors.AsType[*reconciler.WaitError]((&kind{}).Plan(asking(), world(0)).Outcome)
	want := &reconciler.WaitError{
		After: time.Minute, Reason: pcapi.NoneAvailableReason,
		Message: "no node suits now: status.candidates says why of each; asked again when nodes, servers, hosts or reservations change",
	}
	if diff := cmp.Diff(want, wait, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("nothing suits (-want +got):\n%s", diff)
	}
	const over = "the 10 hours that were reserved are over: to ask for a node again, edit the spec or set the annotation " +
		"samplecontroller.k8s.io/reconcile-requested-at to another value"
	if diff := cmp.Diff(over, (&kind{}).Plan(asking(hoursOver), world(1)).Outcome.Error()); diff != "" {
		t.Errorf("the hours are over (-want +got):\n%s", diff)
	}
}
