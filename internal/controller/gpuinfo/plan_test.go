package gpuinfo

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// outcome is a decision and its outcome in a few words.
type outcome struct {
	// Node is what is reserved, Since how long ago that began.
	Node  string
	Since time.Duration
	// Stays, Expired: see decision.
	Stays, Expired bool
	Reason         string
}

func outcomeOf(gpu *v1alpha1.GPUInfo, obs *scope) outcome {
	d := decide(gpu, obs)
	out := outcome{Stays: d.stays, Expired: d.expired, Reason: reconciler.Reason(plan(gpu, obs))}
	if d.chosen != nil {
		out.Node, out.Since = d.chosen.node, noon.Sub(d.reservation.Since.Time)
	}
	return out
}

func TestDecisions(t *testing.T) {
	const hour = time.Hour
	refused := func(s *scope) {
		s.refused = reconciler.Stalled(v1alpha1.CloudUnavailableReason, 0, errors.New("may not"))
	}
	cordon := nodeIs(1, func(n *node) { n.cordoned = true })
	for name, test := range map[string]struct {
		gpu  *v1alpha1.GPUInfo
		obs  *scope
		want outcome
	}{
		"the least CPU use wins": {asking(), world(3), outcome{Node: "n3"}},
		"of equal use, the first by name wins": {
			asking(), world(3, serverIs("n2", func(s *cloud.Server) { s.CPUUsageMHz = 700 })), outcome{Node: "n2"},
		},
		"one that does not suit is passed over": {asking(), world(3, hostIs("h3", false, 100)), outcome{Node: "n2"}},
		"nothing suits where there are no nodes": {
			asking(), world(0), outcome{Reason: v1alpha1.NoneAvailableReason},
		},
		"nothing suits where others have reserved the last window": {
			asking(), world(1, claimed("other", 91, hour)), outcome{Reason: v1alpha1.NoneAvailableReason},
		},
		"a new choice counts those who chose in the same second": {
			asking(), world(1, claimed("z", 91, 0)), outcome{Reason: v1alpha1.NoneAvailableReason},
		},
		"hours that are over are nobody's": {
			asking(), world(1, claimed("other", 0, hour)), outcome{Node: "n1"},
		},

		"what suits is kept while another uses less": {
			asking(holding("n1", hour)), world(3), outcome{Node: "n1", Since: hour},
		},
		"what suits is kept for the hours that are left": {
			asking(holding("n1", 8*hour)), world(2, hostIs("h1", true, 2)), outcome{Node: "n1", Since: 8 * hour},
		},
		"what does not suit for the hours that are left is left": {
			asking(holding("n1", 8*hour)), world(2, hostIs("h1", true, 1)), outcome{Node: "n2"},
		},
		"it is not left as its host's hours count down": {
			asking(holding("n1", hour/2)), world(2, hostIs("h1", true, 9)), outcome{Node: "n1", Since: hour / 2},
		},
		"nor beside an earlier one": {
			asking(holding("n1", hour/2)), world(2, hostIs("h1", true, 18), claimed("other", 9, hour)), outcome{Node: "n1", Since: hour / 2},
		},
		"though halves of hours of several add up": {
			asking(holding("n1", hour/2)), world(2, hostIs("h1", true, 18), claimed("other", 9, hour), func(s *scope) {
				s.claims[0].until = s.claims[0].until.Add(hour / 2)
			}), outcome{Node: "n2"},
		},
		"what was reserved later takes nothing from what is kept": {
			asking(holding("n1", hour)), world(2, claimed("other", 100, time.Minute)), outcome{Node: "n1", Since: hour},
		},
		"of two that won at once, the later one yields": {
			asking(holding("n1", hour)), world(2, claimed("other", 100, 2*hour)), outcome{Node: "n2"},
		},
		"of two that won in the same second, the smaller UID keeps": {
			asking(holding("n1", hour)), world(2, claimed("z", 100, hour)), outcome{Node: "n1", Since: hour},
		},
		"of two that won in the same second, the greater UID yields": {
			asking(holding("n1", hour)), world(2, claimed("a", 100, hour)), outcome{Node: "n2"},
		},
		"one that yields and finds nothing has nothing": {
			asking(holding("n1", hour)), world(1, claimed("a", 100, hour)), outcome{Reason: v1alpha1.NoneAvailableReason},
		},
		"a node that is cordoned is left":       {asking(holding("n1", hour)), world(2, cordon), outcome{Node: "n2"}},
		"a node that is gone is left":           {asking(holding("n9", hour)), world(2), outcome{Node: "n2"}},
		"a server that moved is chosen anew":    {asking(holding("n2", hour)), world(2), outcome{Node: "n2"}},
		"another spec is a new question":        {asking(holding("n1", hour), edited), world(2), outcome{Node: "n2"}},
		"another Cloud is a new question":       {asking(holding("n1", hour)), world(2, func(s *scope) { s.cloud = "other" }), outcome{Node: "n2"}},
		"a request while it suits moves nobody": {asking(holding("n1", hour)), world(2, requested("now")), outcome{Node: "n1", Since: hour}},

		"when the hours are over, nothing is held":     {asking(holding("n1", 10*hour)), world(2), outcome{Expired: true, Reason: v1alpha1.ExpiredReason}},
		"a moment before, it is":                       {asking(holding("n1", 10*hour-1)), world(2), outcome{Node: "n1", Since: 10*hour - 1}},
		"it remains so":                                {asking(expired), world(2), outcome{Expired: true, Reason: v1alpha1.ExpiredReason}},
		"also with the cloud away":                     {asking(expired), world(2, away), outcome{Expired: true, Reason: v1alpha1.ExpiredReason}},
		"a request after that is answered":             {asking(expired), world(2, requested("again")), outcome{Node: "n2"}},
		"a request as the hours end is answered":       {asking(holding("n1", 10*hour)), world(2, requested("again")), outcome{Node: "n2"}},
		"a request is answered when the cloud is back": {asking(expired), world(2, requested("again"), away), outcome{Expired: true, Reason: v1alpha1.ExpiredReason}},
		"an edit after that is answered":               {asking(expired, edited), world(2), outcome{Node: "n2"}},

		"with the cloud away, what was chosen stays": {
			asking(holding("n1", hour)), world(0, away), outcome{Stays: true},
		},
		"until its hours are over": {
			asking(holding("n1", 10*hour)), world(0, away), outcome{Expired: true, Reason: v1alpha1.ExpiredReason},
		},
		"but another spec is not answered": {
			asking(holding("n1", hour), edited), world(0, away), outcome{Stays: true, Reason: v1alpha1.CloudUnavailableReason},
		},
		"nor by what was chosen on another Cloud": {
			asking(holding("n1", hour)), world(0, away, func(s *scope) { s.cloud = "other" }), outcome{Stays: true, Reason: v1alpha1.CloudUnavailableReason},
		},
		"nor is a new question": {asking(), world(0, away), outcome{Reason: v1alpha1.CloudUnavailableReason}},
		"without a Cloud, what was chosen stays and is not said to be in order": {
			asking(holding("n1", hour)), world(0, away, func(s *scope) { s.cloudless = true }), outcome{Stays: true, Reason: v1alpha1.CloudUnavailableReason},
		},
		"where the Cloud may not be used, nothing is held": {
			asking(holding("n1", hour)), world(2, refused), outcome{Reason: v1alpha1.CloudUnavailableReason},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, outcomeOf(test.gpu, test.obs)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhileTheCloudIsBlockedItIsLookedAtAgainWhenItsHoursAreOver(t *testing.T) {
	gone := func(s *scope) { s.cloudless = true }
	observed, _ := errors.AsType[*reconciler.BlockedError](errAway)
	for name, test := range map[string]struct {
		gpu  *v1alpha1.GPUInfo
		obs  *scope
		want time.Duration
	}{
		"without a Cloud":                 {asking(holding("n1", time.Hour)), world(0, away, gone), 9 * time.Hour},
		"edited meanwhile":                {asking(holding("n1", time.Hour), edited), world(0, away), 9 * time.Hour},
		"with nothing that could be over": {asking(), world(0, away, gone), 0},
	} {
		t.Run(name, func(t *testing.T) {
			blocked, _ := errors.AsType[*reconciler.BlockedError](plan(test.gpu, test.obs))
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

func TestAReservationIsForTheHoursThatWereAskedFor(t *testing.T) {
	s := world(1)
	s.now = noon.Add(999 * time.Millisecond)
	got := decide(asking(edited), s).reservation
	want := &v1alpha1.GPUReservation{
		Host: "h1", Cloud: "default", Generation: 2, Since: metav1.NewTime(noon), Until: metav1.NewTime(noon.Add(10 * time.Hour)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reservation (-want +got):\n%s", diff)
	}
}

func TestCandidatesAreInAnOrderThatUseDoesNotChange(t *testing.T) {
	s := world(5, nodeIs(1, func(n *node) { n.cordoned = true }), nodeIs(4, func(n *node) { n.ready = false }))
	var got []string
	for _, c := range decide(asking(), s).candidates {
		got = append(got, c.node)
	}
	if diff := cmp.Diff([]string{"n5", "n2", "n3", "n1", "n4"}, got); diff != "" {
		t.Errorf("the chosen one, those that suit, the others (-want +got):\n%s", diff)
	}
}

func TestVerdictsSayWhatToDo(t *testing.T) {
	wait, _ := errors.AsType[*reconciler.WaitError](plan(asking(), world(0)))
	want := &reconciler.WaitError{
		After: time.Minute, Reason: v1alpha1.NoneAvailableReason,
		Message: "no node suits now: status.candidates says why of each; asked again when nodes, servers, hosts or reservations change",
	}
	if diff := cmp.Diff(want, wait, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("nothing suits (-want +got):\n%s", diff)
	}
	const over = "the 10 hours that were reserved are over: to ask for a node again, edit the spec or set the annotation " +
		"samplecontroller.k8s.io/reconcile-requested-at to another value"
	if diff := cmp.Diff(over, plan(asking(expired), world(1)).Error()); diff != "" {
		t.Errorf("the hours are over (-want +got):\n%s", diff)
	}
}
