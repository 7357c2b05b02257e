package vsphere_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// orphansDeleted has a Cloud delete servers of this cluster that belong to no VM.
func orphansDeleted(c *pcapi.Cloud) { c.Spec.OrphanPolicy = pcapi.OrphanPolicyDelete }

func TestTwoClustersOnOneFolderLeaveEachOthersVMsAlone(tt *testing.T) {
	tt.Parallel()
	t := newT(tt)
	v := newVCenter(t)
	one, err := home()
	t.Expect(err).NotTo(HaveOccurred())
	name := fmt.Sprintf("shared-%d", made.Add(1))
	first, second := connect(t, one, v, name, orphansDeleted), connect(t, newCluster(t), v, name, orphansDeleted)
	first.ready(first.cloud())
	second.ready(second.cloud())

	// The same name at the same time.
	mine, theirs := first.vm("web"), second.vm("web")
	t.Eventually(func(ctx context.Context) (int, error) {
		ready := 0
		for _, s := range []*site{first, second} {
			vm, err := s.stored(mine)(ctx)
			if err != nil {
				return 0, err
			}
			if is, _ := testkit.BeReady().Match(vm); is {
				ready++
			}
		}
		return ready, nil
	}).Should(Equal(1))
	winner, loser := first, second
	if is, _ := testkit.BeReady().Match(read(second, theirs)); is {
		winner, loser, mine, theirs = second, first, theirs, mine
	}
	t.Eventually(loser.stored(theirs)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.TakenReason))
	t.Expect(read(loser, theirs).Status.VMID).To(BeEmpty())
	t.Expect(v.VM("web").Config.InstanceUuid).To(Equal(string(mine.UID)))
	t.Expect(namesIn(v)).To(ConsistOf("web"))

	// Groups of one name have one folder.
	for _, s := range []*site{first, second} {
		s.ready(s.group("pool", 3))
	}
	folder := name + "-pool"
	t.Expect(namesIn(v)).To(HaveLen(7))
	t.Expect(v.FolderNames()).To(ContainElement(folder))
	t.Eventually(first.stored(first.cloud())).Should(HaveField("Status.Servers.Orphaned", BeZero()))
	loser.remove(theirs, &pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: loser.name, Name: "pool"}})
	names := func() []string { return namesIn(v) }
	// The group is released before its members are gone.
	t.Eventually(names).Should(HaveLen(4), "the VM and the group of the other cluster are left")
	t.Expect(v.FolderNames()).To(ContainElement(folder))
	t.Consistently(names, 2*testkit.SettleTime).Should(HaveLen(4), "and are no orphans")

	// The name is free once its VM is deleted.
	next := loser.vm("web")
	t.Eventually(loser.stored(next)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.TakenReason))
	winner.remove(mine, &pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: winner.name, Name: "pool"}})
	loser.requestReconcile(next)
	loser.ready(next)
	t.Eventually(names).Should(ConsistOf("web"))
	t.Eventually(v.FolderNames).ShouldNot(ContainElement(folder))
	loser.remove(next)
}

// read reads a VM of a site that has the name of another.
func read(s *site, vm *pcapi.VM) *pcapi.VM {
	s.Helper()
	now := &pcapi.VM{}
	s.Expect(s.env.Client.Get(s.Context(), client.ObjectKeyFromObject(vm), now)).To(Succeed())
	return now
}

func TestTwoManagersOfOneClusterMakeEachVMOnce(tt *testing.T) {
	tt.Parallel()
	const members = 20
	for name, elected := range map[string]bool{"both act": false, "one leads and ends while clones run": true} {
		tt.Run(name, func(tt *testing.T) {
			tt.Parallel()
			t := newT(tt)
			c := newCluster(t)
			t.Expect(c.operator.Stop()).To(Succeed())
			var leading []func(*ctrl.Options)
			if elected {
				leading = append(leading, c.elected)
			}
			var err error
			c.operator, err = c.start(leading...)
			t.Expect(err).NotTo(HaveOccurred())
			s := connect(t, c, newVCenter(t), "shared", orphansDeleted)
			s.ready(s.cloud())
			other, err := c.start(leading...)
			t.Expect(err).NotTo(HaveOccurred())

			restore := s.vcenter.Front.HoldTasks()
			group := s.group("pool", members)
			s.Eventually(s.names).Should(HaveLen(members))
			if elected {
				s.Eventually(func() ([]pcapi.VM, error) {
					var vms pcapi.VMList
					return vms.Items, s.env.Client.List(s.Context(), &vms, client.InNamespace(s.name))
				}).Should(HaveEach(HaveField("Status.Operation", Not(BeNil()))))
				t.Expect(c.operator.Stop()).To(Succeed())
				c.operator = other
			} else {
				t.Cleanup(func() { t.Expect(other.Stop()).To(Succeed()) })
			}
			restore()
			s.ready(group)
			s.Expect(s.names()).To(HaveLen(members))
			s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero(), "no VM was made that had to be deleted")
			if elected {
				s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(members))
			}
			s.remove(group)
			s.Eventually(s.names).Should(BeEmpty())
			s.Eventually(s.vcenter.FolderNames).ShouldNot(ContainElement("shared-pool"))
		})
	}
}

// elected makes a manager compete for a lease.
func (c *cluster) elected(options *ctrl.Options) {
	options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, "lease", specs.OperatorNamespace
	options.LeaderElectionConfig, options.LeaderElectionReleaseOnCancel = c.env.Config, true
	options.RetryPeriod = new(time.Second)
}

// A VM of somebody else has the name, also one that carries a mark of another cluster.
func TestVMOfSomebodyElseIsNotTaken(tt *testing.T) {
	tt.Parallel()
	for name, extra := range map[string]map[string]string{
		"without a mark":         nil,
		"with a mark of its own": {"privatecloud.labels": `{"` + inventory.ClusterLabel + `":"another"}`, "privatecloud.origin": `{"key":"6c6f6f6b-0000-4000-8000-000000000000"}`},
	} {
		tt.Run(name, func(tt *testing.T) {
			s := newSite(tt, orphansDeleted)
			foreign, err := s.vcenter.MakeVM(s.Context(), "database", extra)
			s.Expect(err).NotTo(HaveOccurred())
			vm := s.vm("database")
			s.Eventually(s.stored(vm)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.TakenReason))
			s.Expect(read(s, vm).Status.VMID).To(BeEmpty())
			s.remove(vm)
			s.Expect(s.vcenter.VM("database")).To(BeIdenticalTo(foreign))
			s.Expect(s.vcenter.Front.Sent("CloneVM_Task") + s.vcenter.Front.Sent("Destroy_Task") + s.vcenter.Front.Sent("ReconfigVM_Task")).To(BeZero())
		})
	}
}
