package setup_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func (s *split) noObjectIsTouchedByBoth() {
	s.Eventually(s.leases).Should(HaveLen(2), "both lead, with a lease each")
	sites := map[string]*site{
		east: s.newSite("cloud-e", mockcloud.Options{}, selectedByEast),
		west: s.newSite("cloud-w", mockcloud.Options{}),
	}
	for _, of := range sites {
		for _, object := range of.populate() {
			s.Eventually(s.ready(object)).Should(testkit.BeReady(), "%T %s", object, object.GetName())
		}
	}
	home := testkit.Cloud(pcapi.DefaultCloudName, s.fallback.URL)
	s.Eventually(s.ready(home)).Should(testkit.BeReady(), "the Cloud that a manager made")
	s.Expect(s.managers[east].Writes.To("POST", "/clouds")).To(BeEmpty(), "who made it")
	s.Expect(s.managers[east].Writes.To("/clouds/default")).To(BeEmpty())
	lost := testkit.VM("default", "lost", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "typo"} })
	s.create(lost)
	s.Eventually(s.ready(lost)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "does not exist"))

	for owner, of := range sites {
		other := map[string]string{east: west, west: east}[owner]
		s.Expect(of.writes(owner)).NotTo(BeEmpty())
		s.Expect(of.writes(other)).To(BeEmpty(), "what %s wrote to objects of %s", other, owner)
		s.Expect(of.callers.names()).To(Equal([]string{owner}), "who called the cloud of %s", owner)
		s.Expect(of.created()).To(HaveLen(9), "the servers of %s", owner)
		s.Expect(of.created()).To(HaveEach(1), "the creates of %s", owner)
		s.Eventually(s.reportedVMs(of.namespace)).Should(BeEquivalentTo(9), "VMs of %s that both report", owner)
	}
	s.Expect(s.managers[east].Writes.To("/vms/lost")).To(BeEmpty(), "an object of no Cloud")
	s.Expect(s.managers[west].Writes.To("/vms/lost")).NotTo(BeEmpty(), "an object of no Cloud")
	s.Eventually(s.reportedVMs("default")).Should(BeEquivalentTo(1), "VMs of no Cloud that both report")

	vm := sites[west].vm(0)
	s.Expect(s.env.Client.Delete(s.Context(), vm)).To(Succeed())
	s.Eventually(func(ctx context.Context) error {
		return client.IgnoreNotFound(s.env.Client.Get(ctx, client.ObjectKeyFromObject(vm), vm))
	}).Should(Succeed())
	s.Eventually(sites[west].Servers).Should(HaveLen(8), "the server of a VM that was deleted")
	s.Expect(sites[west].writes(east)).To(BeEmpty())
}

func (s *split) cloudsOfAStoppedManagerWait() {
	theirs := s.newSite("stopped", mockcloud.Options{}, selectedByEast)
	mine := s.newSite("goes-on", mockcloud.Options{})
	s.stopManager(east)

	waiting, goesOn := theirs.vm(0), mine.vm(0)
	s.create(waiting, goesOn)
	s.Eventually(s.ready(goesOn)).Should(testkit.BeReady())
	theirs.callers.forget()
	mine.waitForPolls(3)
	s.Expect(theirs.callers.names()).To(BeEmpty(), "who called the cloud of the manager that is stopped")
	s.Expect(theirs.writes(west)).To(BeEmpty())
	untouched, err := s.ready(waiting)(s.Context())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(untouched.GetFinalizers()).To(BeEmpty())

	s.startManager(east, eastSelector)
	s.Eventually(s.ready(waiting)).Should(testkit.BeReady())
	s.Expect(theirs.writes(west)).To(BeEmpty())
	s.Expect(theirs.created()).To(Equal(map[string]int{waiting.Spec.VMName: 1}))
}

// cloudMoves changes the label of a Cloud while its cloud works on creates, and back.
func (s *split) cloudMoves() {
	const each = 20
	slow := []mockcloud.Fault{{ID: "slow", Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Delay: mockcloud.Duration(300 * 1e6)}}
	for name, options := range map[string]mockcloud.Options{
		"keys":   {Faults: slow},
		"core":   {Profile: mockcloud.Core, Faults: slow},
		"labels": {Faults: slow, Capabilities: map[mockcloud.Capability]bool{mockcloud.Idempotency: false, mockcloud.UniqueNames: false}},
	} {
		s.Run(name, func(tt *testing.T) {
			s := s.in(tt)
			of := s.newSite("moves-with-"+name, options, settlingLate)
			var vms []*pcapi.VM
			next := west
			for _, shard := range []string{"east", "west"} {
				last := next
				next = map[string]string{"east": east, "west": west}[shard]
				begun := of.CountCalls("POST", "/servers")
				for range each {
					vm := of.vm(len(vms))
					vms = append(vms, vm)
					s.create(vm)
				}
				s.Eventually(func() int { return of.CountCalls("POST", "/servers") - begun }).Should(BeNumerically(">=", 2), "creates under way")
				of.moveTo(shard)
				s.moved(of, vms, last)
			}
			s.Expect(of.created()).To(HaveLen(2*each+2), "with that of the VM after each move")
			s.Expect(of.created()).To(HaveEach(1), "how often each server was created")

			vm := vms[0]
			s.Expect(s.env.Client.Delete(s.Context(), vm)).To(Succeed())
			s.Eventually(of.Servers).Should(HaveLen(2*each-1), "the server of a VM that was deleted")
		})
	}
}

// bothOwnACloud moves a Cloud while the cache of its last manager lags behind, so that
// both managers act.
func (s *split) bothOwnACloud() {
	const each = 20
	for name, options := range map[string]mockcloud.Options{
		"keys":  {},
		"names": {Capabilities: map[mockcloud.Capability]bool{mockcloud.Idempotency: false}},
		"core":  {Profile: mockcloud.Core},
	} {
		s.Run(name, func(tt *testing.T) {
			s := s.in(tt)
			of := s.newSite("both-with-"+name, options)
			s.Eventually(of.observedBy(west)).Should(testkit.BeReady(), "a manager does not act before its cache has the Cloud as Ready")
			s.lag.begin()
			s.Cleanup(s.lag.end)
			of.moveTo("east")
			s.Eventually(of.callers.names).Should(Equal([]string{east, west}), "the new manager has connected")
			var vms []*pcapi.VM
			for range each {
				vm := of.vm(len(vms))
				vms = append(vms, vm)
				s.create(vm)
			}
			for _, vm := range vms {
				s.Eventually(s.ready(vm)).Should(testkit.BeReady(), vm.Name)
			}
			s.Expect(s.managers[west].Writes.To("/namespaces/"+of.namespace+"/vms/")).NotTo(BeEmpty(), "the last manager still acts")
			for _, vm := range vms[:each/2] {
				s.Expect(s.env.Client.Delete(s.Context(), vm)).To(Succeed())
			}
			s.Eventually(of.Servers).Should(HaveLen(each/2), "the servers of VMs that were deleted")

			s.lag.end()
			s.Eventually(func() []string {
				of.callers.forget()
				of.waitForPolls(2)
				return of.callers.names()
			}).Should(Equal([]string{east}))
			s.moved(of, vms[each/2:], west)
			s.Expect(of.created()).To(HaveLen(each + 1))
			s.Expect(of.created()).To(HaveEach(1), "how often each server was created")
		})
	}
}

// moved waits until all VMs are Ready after their Cloud has moved, and expects that
// the last manager does nothing more with them.
func (s *split) moved(of *site, vms []*pcapi.VM, last string) {
	s.Helper()
	for _, vm := range vms {
		s.Eventually(s.ready(vm)).Should(testkit.BeReady(), vm.Name)
	}
	of.waitForPolls(1)
	of.callers.forget()
	written := len(of.writes(last))
	later := of.vm(90 + len(vms))
	s.create(later)
	s.Eventually(s.ready(later)).Should(testkit.BeReady())
	s.Expect(s.env.Client.Delete(s.Context(), later)).To(Succeed())
	s.Eventually(func() []string { return namesOf(of.Servers()) }).ShouldNot(ContainElement(later.Spec.VMName))
	s.Expect(of.callers.names()).NotTo(ContainElement(last), "who called the cloud after it had moved")
	s.Expect(of.writes(last)).To(HaveLen(written), "what the last manager wrote after the Cloud had moved")
}
