package vmgroup

import (
	"errors"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// TestPlanAndReportDoNotChangeTheirInputs plays groups as TestEveryGroupConverges
// does, and deletes each of them in each way in between.
func TestPlanAndReportDoNotChangeTheirInputs(t *testing.T) {
	for seed := range uint64(100) {
		w := newPlay(t, seed)
		for range 60 {
			w.disturb()
			for _, change := range []func(*pcapi.VmGroup){
				func(*pcapi.VmGroup) {}, doomed(), doomed(metav1.FinalizerDeleteDependents), doomed(metav1.FinalizerOrphanDependents),
			} {
				g := w.group.DeepCopy()
				change(g)
				wantInputsUnchanged(t, g, w.obs())
			}
			w.reconcile()
			w.time()
		}
	}
}

// wantInputsUnchanged checks that Plan changes neither the group nor the
// observation, and that Report does not change the observation.
func wantInputsUnchanged(t *testing.T, g *pcapi.VmGroup, obs *observation) {
	t.Helper()
	group, observed := g.DeepCopy(), copyOf(obs)
	p := planned.Plan(g, obs)
	wantSame(t, "the group after Plan", group, g)
	wantSame(t, "the observation after Plan", observed, obs)
	for _, outcome := range []error{p.Outcome, errors.New("a step failed")} {
		planned.Report(g.DeepCopy(), obs, outcome)
		wantSame(t, "the observation after Report", observed, obs)
	}
}

// wantSame fails if a value differs from its copy.
func wantSame(t *testing.T, what string, was, is any) {
	t.Helper()
	if !reflect.DeepEqual(was, is) {
		t.Fatalf("%s: changed to %+v, was %+v", what, is, was)
	}
}

func copyOf(obs *observation) *observation {
	c := *obs
	c.members = nil
	for _, vm := range obs.members {
		c.members = append(c.members, vm.DeepCopy())
	}
	return &c
}
