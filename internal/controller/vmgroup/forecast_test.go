package vmgroup

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// texts returns changes as text; members that are created have no name there.
func texts(changes []memberChange) []string {
	var lines []string
	for _, change := range changes {
		switch {
		case change.before == nil:
			lines = append(lines, "create")
		case change.after == nil:
			lines = append(lines, "delete "+change.before.Name)
		default:
			lines = append(lines, "change "+change.before.Name)
		}
	}
	return lines
}

func TestForecastOfMembers(t *testing.T) {
	reading, three := kindReading(t), []*pcapi.VM{vm("a"), vm("b"), vm("c")}
	for name, tc := range map[string]struct {
		group   *pcapi.VmGroup
		members []*pcapi.VM
		obs     []func(*observation)
		want    []string
		outcome string
	}{
		"in sync":                            {groupOfSize(3), three, nil, nil, ""},
		"new":                                {groupOfSize(2), nil, nil, []string{"create", "create"}, ""},
		"larger":                             {groupOfSize(4), three, nil, []string{"create"}, ""},
		"smaller":                            {groupOfSize(2), three, nil, []string{"delete a"}, ""},
		"no members":                         {groupOfSize(0), three, nil, []string{"delete a", "delete b", "delete c"}, ""},
		"a member is leaving: another":       {groupOfSize(2), list(vm("a"), vm("b", leaving)), nil, []string{"create"}, ""},
		"a member is not ready yet":          {groupOfSize(2), list(vm("a"), vm("b", building)), nil, nil, ""},
		"a lost member":                      {groupOfSize(2), list(vm("a"), vm("b", lost)), nil, []string{"delete b", "create"}, ""},
		"a size, one at a time":              {groupOfSize(2, bounds(1, 0)), list(vm("a", smaller), vm("b", smaller)), nil, []string{"change b", "change a"}, ""},
		"a size, the cloud cannot: replaced": {groupOfSize(2, bounds(1, 0)), list(vm("a", smaller), vm("b", smaller)), []func(*observation){rigid}, []string{"delete a", "create", "delete b", "create"}, ""},
		"a template, with surge":             {groupOfSize(2, bounds(0, 1)), list(vm("a", former), vm("b", former)), nil, []string{"create", "delete a", "create", "delete b"}, ""},
		"a template, one is not ready yet":   {groupOfSize(2, bounds(0, 1)), list(vm("a", former, building), vm("b", former)), nil, []string{"delete a", "create", "create", "delete b"}, ""},
		"a template, OnDelete":               {groupOfSize(2, onDelete), list(vm("a", former), vm("b", former)), nil, nil, ""},
		"a template, one is protected":       {groupOfSize(2, bounds(1, 0)), list(vm("a", former, protected), vm("b", former)), nil, []string{"delete b", "create"}, pcapi.MembersStalledReason},
		"a template, one stands still":       {groupOfSize(2, bounds(0, 1)), list(vm("a", unknown), vm("b", former)), nil, []string{"create"}, pcapi.MembersStalledReason},
		"smaller, one is protected":          {groupOfSize(1), list(vm("a", protected), vm("b", protected)), nil, nil, pcapi.MembersStalledReason},
		"tags that the cloud cannot have":    {groupOfSize(2), list(vm("a", former), vm("b", former)), []func(*observation){tagless}, nil, pcapi.UnsupportedReason},
		"the Cloud closes: not larger":       {groupOfSize(4), three, []func(*observation){closes}, nil, pcapi.CloudUnavailableReason},
		"the Cloud closes: smaller":          {groupOfSize(2), three, []func(*observation){closes}, []string{"delete a"}, ""},
		"the Cloud closes: not replaced":     {groupOfSize(2, bounds(1, 0)), list(vm("a", former), vm("b")), []func(*observation){closes}, nil, pcapi.CloudUnavailableReason},
		"the Cloud closes: nothing":          {groupOfSize(3), three, []func(*observation){closes}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obs := copyOf(observed(tc.members, tc.obs...))
			changes, err := reading.forecast(tc.group, obs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, texts(changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got := reconciler.Reason(leftOver(tc.group, obs)); got != tc.outcome {
				t.Errorf("outcome %q, want %q", got, tc.outcome)
			}
		})
	}
}

// TestForecastOfEveryGroup: after the forecast, nothing is left to do that does not wait for
// somebody, and the group has its size.
func TestForecastOfEveryGroup(t *testing.T) {
	reading := kindReading(t)
	for seed := range uint64(100) {
		w := newPlay(t, seed)
		for range 60 {
			w.disturb()
			group, obs := w.group.DeepCopy(), copyOf(w.obs())
			changes, err := reading.forecast(w.group, obs)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "the group after Forecast", group, w.group)
			m := movesFor(w.group, obs)
			if left := leftOver(w.group, obs); left != nil || !m.none() || len(obs.members) != int(w.desired()) {
				t.Fatalf("seed %d: after %v, %v and %+v are left, %d of %d members exist", seed, texts(changes), left, m, len(obs.members), w.desired())
			}
			w.reconcile()
			w.time()
		}
	}
}

// TestForecastReadsTheGroup: what is done with the members depends on their owner, and on how
// the group is deleted.
func TestForecastReadsTheGroup(t *testing.T) {
	onHome := func(g *pcapi.VmGroup) { g.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} }
	ready := func(c *pcapi.Cloud) {
		c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
	}
	closed := func(c *pcapi.Cloud) {
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: dawn}, []string{pcapi.CloudFinalizer}
	}
	others := allows(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}})
	member := func(name string, owner *pcapi.VmGroup) client.Object {
		v := vm(name)
		v.Labels[pcapi.GroupLabel], v.Status.Cloud = labelOf(owner), "home"
		v.OwnerReferences = []metav1.OwnerReference{{APIVersion: pcapi.GroupVersion.String(), Kind: "VmGroup", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
		return v
	}
	stranger := groupOfSize(1, func(g *pcapi.VmGroup) { g.UID = "another" })
	for name, tc := range map[string]struct {
		group   *pcapi.VmGroup
		cloud   []func(*pcapi.Cloud)
		want    []string
		outcome string
	}{
		"new size":                         {groupOfSize(0, onHome), nil, []string{"delete a", "delete b"}, ""},
		"deleted":                          {groupOfSize(2, onHome, doomed()), nil, []string{"delete a", "delete b"}, ""},
		"deleted in the foreground":        {groupOfSize(2, onHome, doomed(metav1.FinalizerDeleteDependents)), nil, []string{"delete a", "delete b"}, ""},
		"deleted, and its members kept":    {groupOfSize(2, onHome, doomed(metav1.FinalizerOrphanDependents)), nil, nil, ""},
		"the Cloud is for others":          {groupOfSize(0, onHome), []func(*pcapi.Cloud){others}, nil, pcapi.CloudUnavailableReason},
		"the Cloud is closing: not larger": {groupOfSize(5, onHome), []func(*pcapi.Cloud){closed}, nil, pcapi.CloudUnavailableReason},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, listedCloud(slices.Concat([]func(*pcapi.Cloud){ready}, tc.cloud)...),
				member("a", tc.group), member("b", tc.group), member("c", stranger),
			}
			f := &Forecaster{kind: kindReading(t, objects...)}
			was := tc.group.DeepCopy()
			forecast, err := f.Forecast(t.Context(), tc.group)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, change := range forecast.Changes {
				text := strings.ToLower(string(change.Action))
				if change.Action != pcapi.PlannedCreate {
					text += " " + change.Name
				}
				got = append(got, text)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got := reconciler.Reason(forecast.Outcome); got != tc.outcome {
				t.Errorf("outcome %q (%v), want %q", got, forecast.Outcome, tc.outcome)
			}
			wantSame(t, "the group after Forecast", was, tc.group)
		})
	}
}
