package vm

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var placing = cloud.NewCapabilities(append(withoutKeys, cloud.Zones, cloud.WithAntiAffinity)...)

func apart(policy pcapi.AntiAffinityPolicy) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.AntiAffinity = &pcapi.VMAntiAffinity{Group: "db", Policy: policy} }
}

// peer returns another VM with a server of the Cloud on a host.
func peer(namespace, name, cloudName, host string, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       pcapi.VMSpec{VMName: name},
		Status:     pcapi.VMStatus{VMID: "v-" + name, Cloud: cloudName, Host: host},
	}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

func TestMessageOfNoHostNamesTheVMsOfTheGroupOnly(t *testing.T) {
	required := apart(pcapi.AntiAffinityRequired)
	h := newHarness(t, placing,
		vmWith(required, func(vm *pcapi.VM) { vm.Spec.Zone = "z" }),
		peer("ns", "db-2", "default", "h2", required), peer("ns", "db-1", "default", "h1", required), peer("ns", "hidden", "default", "", required),
		peer("other", "db-3", "default", "h3", required), peer("ns", "elsewhere", "second", "h4", required),
		peer("ns", "preferred", "default", "h5", apart(pcapi.AntiAffinityPreferred)), peer("ns", "plain", "default", "h6"),
		peer("ns", "unmade", "default", "h7", required, func(vm *pcapi.VM) { vm.Status.VMID = "" }),
	)
	noHost := &cloud.Error{Kind: cloud.NoHost, Op: `create server "a"`, Detail: "no host is left"}
	h.cloud.Fail(cloudfake.CreateServer, noHost, false)
	h.mustReconcile()
	why := `no host is left; spec.zone is "z"; of the anti-affinity group "db" db-1 runs on h1, db-2 runs on h2, hidden runs on a host that the cloud does not show`
	h.wantCondition(pcapi.ReadyCondition, "False "+pcapi.UnschedulableReason, why)
	h.wantCondition(pcapi.CreatedCondition, "False "+pcapi.UnschedulableReason)
	h.wantNoWords("h3", "h4", "h5", "h6", "h7")
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True "+pcapi.RunningReason)
	h.wantServers("s1")
}

func TestStartForWhichThereIsNoHostIsUnschedulable(t *testing.T) {
	required := apart(pcapi.AntiAffinityRequired)
	h := newHarness(t, placing, onRecord(required),
		peer("ns", "db-1", "default", "h1", required), peer("ns", "db-2", "default", "h2", required, func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateStopped }),
		peer("ns", "db-3", "default", "h3", required, func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateSuspended }))
	h.cloud.AddServers(serverWith(func(s *cloud.Server) { s.State = cloud.StateStopped }))
	h.poll()
	h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.NoHost, Op: "update server", Detail: "no host is left"}, false)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False "+pcapi.UnschedulableReason, `no host is left; of the anti-affinity group "db" db-1 runs on h1, db-2 is stopped on h2, db-3 is suspended on h3`)
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True "+pcapi.RunningReason)
}
