package vm

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

var withNetworks = cloud.NewCapabilities(append(without(), cloud.Networks)...)

func withNetworkRef(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} }

func detached(obs *observation) { obs.detached = unattachable("net", "is being deleted") }

// netWith returns the Network net, which is created on the Cloud "default", with changes.
func netWith(change ...func(*pcapi.Network)) *pcapi.Network {
	net := &pcapi.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "net"},
		Status:     pcapi.NetworkStatus{NetworkID: "n1", Cloud: "default"},
	}
	for _, f := range change {
		f(net)
	}
	return net
}

func TestPlanCreateWhileNetworkIsNotReady(t *testing.T) {
	vm := vmWith(withNetworkRef)
	keyedOnly := cloud.NewCapabilities(append(without(cloud.Labels, cloud.UniqueNames), cloud.Networks)...)
	runPlans(t, []planCase{
		{name: "no claim: blocked without a name check", vm: vm, obs: obsWith(withNetworks, detached), outcome: "blocked: NetworkNotReady by Network/net", message: "is being deleted"},
		{name: "cloud has no networks: stalled", vm: vm, obs: obsWith(everything), outcome: "stalled: Unsupported, again in 10m0s", message: "cannot set networkRef"},
		{name: "cloud attaches and does not create networks: blocked by the Network alone", vm: vm, obs: obsWith(cloud.NewCapabilities(append(without(), cloud.NetworkAttach)...), detached),
			outcome: "blocked: NetworkNotReady by Network/net", message: "is being deleted"},
		{name: "claim: look", vm: vm, obs: obsWith(withNetworks, claimed, detached), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "server found: adopted", vm: vm, obs: obsWith(withNetworks, withCandidates(external.OwnerProof, serverWith()), detached), steps: []string{external.StepAdopt}, outcome: "in sync"},
		{name: "settle time is not over: wait, even with a key", vm: vm, obs: obsWith(withNetworks, withCandidates(external.NoProof), awaitingSettleTime, detached), outcome: "waiting: OutcomeUnknown, again in 1m0s", message: "since now Network"},
		{name: "create had no effect: claim removed because it keeps the Network", vm: vm, obs: obsWith(withNetworks, withCandidates(external.NoProof), detached), steps: []string{external.StepUnclaim}, outcome: "blocked: NetworkNotReady by Network/net", message: "is being deleted"},
		{name: "server found by name that proves nothing: claim kept", vm: vm, obs: obsWith(keyedOnly, withCandidates(external.NoProof, serverWith(unlabelled)), detached), outcome: "blocked: NetworkNotReady by Network/net", message: "is being deleted"},
		{name: "server recorded: the Network is not needed", vm: vmWith(withNetworkRef, recorded), obs: obsWith(withNetworks, withServer(serverWith()), detached), outcome: "in sync"},
	})
}

func TestCreateWaitsForNetwork(t *testing.T) {
	deletedNet := func(net *pcapi.Network) {
		now := metav1.NewTime(startTime)
		net.DeletionTimestamp, net.Finalizers = &now, []string{"any"}
	}
	describe := func(status metav1.ConditionStatus) func(*pcapi.Network) {
		return func(net *pcapi.Network) {
			net.Status.Conditions = []metav1.Condition{{Type: pcapi.CreatedCondition, Status: status, Reason: "Any"}}
		}
	}
	for name, test := range map[string]struct {
		net *pcapi.Network
		// message is empty if the VM is created.
		ready, message string
	}{
		"Network created: the VM is created on it": {net: netWith(describe(metav1.ConditionTrue))},
		"Network missing: blocked":                 {ready: "False NetworkNotReady", message: `Network "net" does not exist`},
		"Network without an id: blocked":           {net: netWith(func(net *pcapi.Network) { net.Status.NetworkID = "" }), ready: "False NetworkNotReady", message: "is not made yet"},
		"Network lost: blocked":                    {net: netWith(describe(metav1.ConditionFalse)), ready: "False NetworkNotReady", message: "is lost"},
		"Network being deleted: blocked":           {net: netWith(deletedNet), ready: "False NetworkNotReady", message: "is being deleted"},
		"Network on another Cloud: stalled":        {net: netWith(func(net *pcapi.Network) { net.Status.Cloud = "other" }), ready: "False NetworkNotReady", message: `is on Cloud "other" and this VM on Cloud "default"`},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{vmWith(withNetworkRef)}
			if test.net != nil {
				objects = append(objects, test.net)
			}
			h := newHarness(t, withNetworks, objects...)
			h.cloud.AddNetworks(cloud.Network{ID: "n1", Name: "net"})
			h.mustReconcile()
			if test.message != "" {
				h.wantCondition(pcapi.ReadyCondition, test.ready, test.message)
				h.wantCalls()
				h.wantClaim("")
				return
			}
			h.wantCalls("check web", "create web")
			equal(t, "the server's network", "n1", h.cloud.Server("s1").NetworkID)
		})
	}
}
