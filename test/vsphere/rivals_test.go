package vsphere_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
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
	first, second := connect(t, one, v, name, orphansDeleted), connect(t, newCluster(t, startCluster), v, name, orphansDeleted)
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

// patient has a Cloud wait longer for what another manager has begun. With the settle time of
// other tests, a manager that gets no time for that long takes the name of a VM that another one
// has cloned for taken, and the group replaces that member.
func patient(c *pcapi.Cloud) { c.Spec.SettleTime = &metav1.Duration{Duration: 4 * testkit.SettleTime} }

// read reads a VM of a site that has the name of another.
func read(s *site, vm *pcapi.VM) *pcapi.VM {
	s.Helper()
	now := &pcapi.VM{}
	s.Expect(s.env.Client.Get(s.Context(), client.ObjectKeyFromObject(vm), now)).To(Succeed())
	return now
}

// The tests have a cluster of their own, since their managers end, and run one after the other.
func TestManagersOfOneClusterMakeEachVMOnce(tt *testing.T) {
	tt.Parallel()
	const members = 20
	c := newCluster(newT(tt), startServer)
	// A manager ends with its subtest, also if that fails: it would act in the next one.
	started := func(t *testkit.T, change ...func(*ctrl.Options)) (stop func() error) {
		manager, err := c.start(change...)
		t.Expect(err).NotTo(HaveOccurred())
		stop = sync.OnceValue(manager.Stop)
		t.Cleanup(func() { t.Expect(stop()).To(Succeed()) })
		return stop
	}
	connected := func(t *testkit.T) *site {
		s := connect(t, c, newVCenter(t), fmt.Sprintf("managed-%d", made.Add(1)), orphansDeleted, patient)
		s.ready(s.cloud())
		return s
	}
	removed := func(s *site, group *pcapi.VmGroup) {
		s.remove(group)
		s.Eventually(s.names).Should(BeEmpty())
		s.Eventually(s.vcenter.FolderNames).ShouldNot(ContainElement(s.name + "-" + group.Name))
		s.remove(s.cloud())
	}

	tt.Run("two act", func(tt *testing.T) {
		t := newT(tt)
		stop := started(t)
		started(t)
		s := connected(t)
		restore := s.vcenter.Front.HoldTasks()
		group := s.group("pool", members)
		s.Eventually(s.names).Should(HaveLen(members))
		restore()
		s.ready(group)
		s.Expect(s.names()).To(HaveLen(members))
		s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero(), "no VM was made that had to be deleted")
		s.edit(group, func() { group.Spec.Replicas = new(int32(members / 2)) })
		s.Eventually(s.names).Should(HaveLen(members / 2))
		// A folder may stay if one manager deletes the last VM and the other finds it gone.
		s.Expect(stop()).To(Succeed())
		removed(s, group)
	})

	tt.Run("one leads and ends while clones run", func(tt *testing.T) {
		t := newT(tt)
		stop := started(t, c.elected)
		s := connected(t)
		started(t, c.elected)
		restore := s.vcenter.Front.HoldTasks()
		group := s.group("pool", members)
		s.Eventually(s.names).Should(HaveLen(members))
		s.Eventually(func() ([]pcapi.VM, error) {
			var vms pcapi.VMList
			return vms.Items, s.env.Client.List(s.Context(), &vms, client.InNamespace(s.name))
		}).Should(HaveEach(HaveField("Status.Operation", Not(BeNil()))))
		s.Expect(stop()).To(Succeed())
		restore()
		s.ready(group)
		s.Expect(s.names()).To(HaveLen(members))
		s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero(), "no VM was made that had to be deleted")
		s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(members))
		removed(s, group)
	})

	tt.Run("one after the other ends, and answers are lost", func(tt *testing.T) {
		t := newT(tt)
		stop := started(t)
		s := connected(t)
		s.vcenter.Front.LoseRandomly(func(string) bool { return rand.IntN(10) == 0 })
		group := s.group("many", members)
		for _, made := range []int{2, 8, 14} {
			s.Eventually(func() int { return len(s.names()) }).Should(BeNumerically(">=", made))
			s.Expect(stop()).To(Succeed())
			stop = started(t)
		}
		s.vcenter.Front.LoseRandomly(nil)
		s.ready(group)
		s.Expect(s.names()).To(HaveLen(members))
		ids := map[string]bool{}
		for _, name := range s.names() {
			ids[s.vcenter.VM(name).Config.InstanceUuid] = true
		}
		s.Expect(ids).To(HaveLen(members))
		removed(s, group)
	})
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
