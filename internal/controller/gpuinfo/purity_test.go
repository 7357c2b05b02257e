package gpuinfo

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

func TestPlanAndReportDoNotChangeTheirInputs(t *testing.T) {
	changes := map[string]func(*observation){
		"as it is": func(*observation) {}, "the cloud is unavailable": away, "a request": requested("again"),
		"the Cloud is refused": func(o *observation) {
			o.refused = reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New("not allowed"))
		},
	}
	for seed := range uint64(200) {
		c := newCluster(t, seed)
		for range 10 {
			c.disturb()
			for _, gpu := range c.gpus {
				for _, name := range slices.Sorted(maps.Keys(changes)) {
					obs := *c.obs
					changes[name](&obs)
					wantInputsUnchanged(t, gpu, &obs)
				}
				c.reconcile(gpu)
			}
		}
	}
}

// wantInputsUnchanged checks that Plan changes neither the GPUInfo nor the
// observation, and that Report does not change the observation, whether the
// step Decide ran or not.
func wantInputsUnchanged(t *testing.T, gpu *pcapi.GPUInfo, obs *observation) {
	t.Helper()
	k := &kind{}
	asked, observed := gpu.DeepCopy(), copyOf(obs)
	p := k.Plan(gpu, obs)
	wantSame(t, "the GPUInfo after Plan", asked, gpu)
	wantSame(t, "the observation after Plan", observed, obs)
	k.Report(gpu.DeepCopy(), obs, errors.New("Observe failed"))
	wantSame(t, "the observation after Report without a decision", observed, obs)
	if err := p.Steps[0].Run(t.Context(), gpu, obs); err != nil {
		t.Fatalf("Decide: %v", err)
	}
	observed = copyOf(obs)
	k.Report(gpu.DeepCopy(), obs, p.Outcome)
	wantSame(t, "the observation after Report", observed, obs)
	obs.decision = nil
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
	c.nodes, c.claims, c.hosts, c.servers = slices.Clone(obs.nodes), slices.Clone(obs.claims), maps.Clone(obs.hosts), maps.Clone(obs.servers)
	c.taken = maps.Clone(obs.taken)
	for name, servers := range c.servers {
		c.servers[name] = slices.Clone(servers)
	}
	if obs.decision != nil {
		d := *obs.decision
		d.candidates, d.reservation = slices.Clone(d.candidates), d.reservation.DeepCopy()
		if d.chosen != nil {
			d.chosen = new(*d.chosen)
		}
		c.decision = &d
	}
	return &c
}
