package behaviour_test

import (
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// beUpdated succeeds on a group whose members are all as an edited spec requires.
func beUpdated(edited *pcapi.VmGroup) types.GomegaMatcher {
	return SatisfyAll(HaveField("Status.ObservedGeneration", edited.Generation), testkit.BeReady(), HaveField("Status.UpdatedReplicas", *edited.Spec.Replicas))
}

func rolling(unavailable, surge int32) func(*pcapi.VmGroup) {
	return func(g *pcapi.VmGroup) {
		g.Spec.Strategy = pcapi.VmGroupStrategy{
			Type: pcapi.StrategyRollingUpdate, MaxUnavailable: new(intstr.FromInt32(unavailable)), MaxSurge: new(intstr.FromInt32(surge)),
		}
	}
}

// neverFewer fails if fewer than n servers run at any time while do runs.
func (f *fixture) neverFewer(n int, do func()) {
	f.t.Helper()
	fewest := n
	f.watchServers(func(servers []mockcloud.Server) {
		running := 0
		for _, server := range servers {
			if server.State == mockcloud.StateActive {
				running++
			}
		}
		fewest = min(fewest, running)
	}, do)
	f.t.Expect(fewest).To(Equal(n), "the lowest number of running servers")
}

// mostServers returns the highest number of servers while do ran.
func (f *fixture) mostServers(do func()) int {
	most := 0
	f.watchServers(func(servers []mockcloud.Server) { most = max(most, len(servers)) }, do)
	return most
}

// watchServers passes the cloud's servers to observe at short intervals while do runs.
func (f *fixture) watchServers(observe func([]mockcloud.Server), do func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(shortestInterval):
				observe(f.Servers())
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	do()
}
