package cloud

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestEachServerIsCountedOnceInTheMetric(t *testing.T) {
	for name, tc := range map[string]struct {
		vms  []client.Object
		want map[string]float64
	}{
		"one of a VM, one orphan, two others": {[]client.Object{vm("a")}, map[string]float64{"managed": 1, "orphaned": 1, "other": 2}},
		"two VMs with the same server: none is negative": {
			[]client.Object{vm("a"), vm("a2", records("a")), vm("a3", records("a")), vm("a4", records("a"))},
			map[string]float64{"managed": 4, "orphaned": 1, "other": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, home(claimed), newCloud(nil, server("a"), server("b"), server("c"), server("x", ownedBy("gone", "here"))), tc.vms...)
			w.reconcile()
			got := map[string]float64{}
			for owner := range tc.want {
				got[owner] = testutil.ToFloat64(w.kind.gauge.servers.WithLabelValues("home", owner))
			}
			equal(t, "servers by owner", tc.want, got)
			equal(t, "series", len(tc.want), testutil.CollectAndCount(w.kind.gauge.servers))
		})
	}
}

// records makes the VM record the server with this id.
func records(id string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Status.VMID = id }
}
