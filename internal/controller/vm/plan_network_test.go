package vm

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

var wiring = cloud.NewCapabilities(append(without(), cloud.Networks)...)

func wired(vm *v1alpha1.VM) { vm.Spec.NetworkRef = &v1alpha1.NetworkReference{Name: "net"} }

func detached(obs *observation) { obs.detached = unattachable("net", "is being deleted") }

// netWith returns the Network net, made, on the Cloud "default", changed.
func netWith(change ...func(*v1alpha1.Network)) *v1alpha1.Network {
	net := &v1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "net"},
		Status:     v1alpha1.NetworkStatus{NetworkID: "n1", Cloud: "default"},
	}
	for _, f := range change {
		f(net)
	}
	return net
}

func TestPlanOfAVMWhoseNetworkCannotTakeIt(t *testing.T) {
	vm := vmWith(wired)
	keyedOnly := cloud.NewCapabilities(append(without(cloud.Labels, cloud.UniqueNames), cloud.Networks)...)
	runPlans(t, []planCase{
		{name: "nothing was sent: not even the name is asked for", vm: vm, obs: seeing(wiring, detached), outcome: "blocked: NetworkNotReady by Network/net", says: "is being deleted"},
		{name: "the cloud has no networks", vm: vm, obs: seeing(everything), outcome: "stalled: Unsupported, again in 10m0s", says: "cannot set networkRef"},
		{name: "a create may have been sent: its server is looked for", vm: vm, obs: seeing(wiring, claimed, detached), steps: []string{external.StepLook}, outcome: "in sync"},
		{name: "its server is found: it is taken, whatever becomes of the Network", vm: vm, obs: seeing(wiring, finding(external.OwnerProof, serverWith()), detached), steps: []string{external.StepAdopt}, outcome: "in sync"},
		{name: "a server may still come: a key is no reason to send another create, nor to give the claim up", vm: vm, obs: seeing(wiring, finding(external.NoProof), settling, detached), outcome: "waiting: OutcomeUnknown, again in 1m0s", says: "since now Network"},
		{name: "nothing came of it: the claim is given up, for it would keep the Network", vm: vm, obs: seeing(wiring, finding(external.NoProof), detached), steps: []string{external.StepUnclaim}, outcome: "blocked: NetworkNotReady by Network/net", says: "is being deleted"},
		{name: "a server may be ours, and nothing but another create would tell: the claim stays", vm: vm, obs: seeing(keyedOnly, finding(external.NoProof, serverWith(bare)), detached), outcome: "blocked: NetworkNotReady by Network/net", says: "is being deleted"},
		{name: "it exists: the Network does not matter any more", vm: vmWith(wired, recorded), obs: seeing(wiring, holding(serverWith()), detached), outcome: "in sync"},
	})
}

func TestAVMIsMadeOnTheNetworkThatItNames(t *testing.T) {
	deletedNet := func(net *v1alpha1.Network) {
		now := metav1.NewTime(dawn)
		net.DeletionTimestamp, net.Finalizers = &now, []string{"any"}
	}
	said := func(status metav1.ConditionStatus) func(*v1alpha1.Network) {
		return func(net *v1alpha1.Network) {
			net.Status.Conditions = []metav1.Condition{{Type: v1alpha1.CreatedCondition, Status: status, Reason: "Any"}}
		}
	}
	for name, test := range map[string]struct {
		net *v1alpha1.Network
		// says is empty where the VM is made.
		ready, says string
	}{
		"made":             {net: netWith(said(metav1.ConditionTrue))},
		"missing":          {ready: "False NetworkNotReady", says: `Network "net" does not exist`},
		"not made yet":     {net: netWith(func(net *v1alpha1.Network) { net.Status.NetworkID = "" }), ready: "False NetworkNotReady", says: "is not made yet"},
		"lost":             {net: netWith(said(metav1.ConditionFalse)), ready: "False NetworkNotReady", says: "is lost"},
		"being deleted":    {net: netWith(deletedNet), ready: "False NetworkNotReady", says: "is being deleted"},
		"on another Cloud": {net: netWith(func(net *v1alpha1.Network) { net.Status.Cloud = "other" }), ready: "False NetworkNotReady", says: `is on Cloud "other" and this VM on Cloud "default"`},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{vmWith(wired)}
			if test.net != nil {
				objects = append(objects, test.net)
			}
			w := newWorld(t, wiring, objects...)
			w.cloud.AddNetworks(cloud.Network{ID: "n1", Name: "net"})
			w.mustPass()
			if test.says != "" {
				w.wantSays(v1alpha1.ReadyCondition, test.ready, test.says)
				w.wantCalls()
				w.wantClaim("")
				return
			}
			w.wantCalls("check web", "create web")
			equal(t, "the server's network", "n1", w.cloud.Server("s1").NetworkID)
		})
	}
}
