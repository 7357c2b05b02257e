package vsphere_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

// refusal is what a Cloud shows whose credentials are refused: the cause and the next step.
var refusal = testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.AuthenticationFailedReason,
	"logging in: the vCenter refuses the credentials (InvalidLogin)", "check the Secret")

func TestSessionThatExpiresChangesNoCondition(tt *testing.T) {
	// The session expires between any two polls.
	s := newSite(tt, func(c *pcapi.Cloud) { c.Spec.PollInterval = metav1.Duration{Duration: 5 * time.Second} })
	vm := s.vm("steady")
	s.ready(vm)
	ofCloud, ofVM := s.changesOf(s.cloud(), &pcapi.CloudList{}), s.changesOf(vm, &pcapi.VMList{})
	logins := func() int { return s.vcenter.Front.Sent("Login") }

	before := logins()
	stop := s.vcenter.ExpireSessions(2 * time.Second)
	s.Eventually(logins).Should(BeNumerically(">=", before+4))
	ended, err := stop()
	s.Expect(err).NotTo(HaveOccurred())
	s.Eventually(logins, "15s").Should(Equal(before+ended), "one login for each session that ended")
	s.Consistently(logins, "3s").Should(Equal(before + ended))
	s.Expect(ofCloud()).To(BeEmpty())
	s.Expect(ofVM()).To(BeEmpty())
	s.remove(vm)
}

func TestPasswordThatIsReplacedInTimeChangesNoCondition(tt *testing.T) {
	s := newSite(tt)
	vm := s.vm("steady")
	s.ready(vm)
	ofCloud, ofVM := s.changesOf(s.cloud(), &pcapi.CloudList{}), s.changesOf(vm, &pcapi.VMList{})
	before := s.vcenter.Front.Sent("Login")
	s.vcenter.Front.AcceptPassword("next") // sessions go on
	s.setPassword("next")
	s.Eventually(func() int { return s.vcenter.Front.Sent("Logout") }).Should(Equal(1), "the session with the old password is ended")
	s.Expect(s.vcenter.Front.Sent("Login")).To(Equal(before + 1))
	s.Expect(s.vcenter.EndSessions(s.Context())).To(Succeed())
	s.Eventually(func() int { return s.vcenter.Front.Sent("Login") }).Should(Equal(before + 2))
	later := s.vm("later")
	s.ready(later)
	s.Expect(ofCloud()).To(BeEmpty())
	s.Expect(ofVM()).To(BeEmpty())
	s.remove(vm, later)
}

func TestPasswordThatIsReplacedLateIsUsedAtOnce(tt *testing.T) {
	s := newSite(tt)
	vm := s.vm("steady")
	s.ready(vm)
	s.vcenter.Front.AcceptPassword("next")
	s.Expect(s.vcenter.EndSessions(s.Context())).To(Succeed())
	s.Eventually(s.stored(s.cloud())).Should(And(refusal, testkit.HaveCondition(pcapi.AuthenticatedCondition, metav1.ConditionFalse, pcapi.AuthenticationFailedReason)))
	waiting := s.vm("waiting")
	s.Eventually(s.stored(waiting)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.CloudUnavailableReason, "the cloud refuses the operator's credentials"))

	s.setPassword("next")
	s.Eventually(s.stored(s.cloud()), "20s").Should(testkit.BeReady(), "refusals of the old password do not hold the new one back")
	s.ready(waiting)
	s.ready(vm)
	s.remove(vm, waiting)
}

func TestRevokedCredentialsAreTriedSeldomAndUsedOnceTheyAreGivenBack(tt *testing.T) {
	s := newSite(tt)
	vm := s.vm("steady")
	s.ready(vm)
	s.vcenter.Front.AcceptPassword("of somebody else")
	s.Expect(s.vcenter.EndSessions(s.Context())).To(Succeed())
	s.Eventually(s.stored(s.cloud())).Should(refusal)
	before := s.vcenter.Front.Sent("Login")
	s.Consistently(func() int { return s.vcenter.Front.Sent("Login") - before }, "8s").Should(BeZero(), "an account must not be locked by many logins")

	s.vcenter.Front.AcceptPassword("")
	s.Eventually(s.stored(s.cloud())).Should(testkit.BeReady(), "without a restart of the operator")
	s.Expect(s.vcenter.Front.Sent("Login")).To(Equal(before + 1))
	s.ready(vm)
	s.remove(vm)
}

func TestVCenterThatRestartsLosesNothing(tt *testing.T) {
	tt.Parallel()
	for name, restart := range map[string]func(*site){
		"its state is kept":     func(*site) {},
		"its sessions are lost": func(s *site) { s.Expect(s.vcenter.EndSessions(s.Context())).To(Succeed()) },
		"its sessions and tasks are lost": func(s *site) {
			s.Expect(s.vcenter.EndSessions(s.Context())).To(Succeed())
			s.vcenter.ForgetTasks()
		},
	} {
		tt.Run(name, func(tt *testing.T) {
			s := newSite(tt)
			vm := s.vm("steady")
			s.ready(vm)
			restore := s.vcenter.Front.HoldTasks()
			cloning := s.vm("cloning")
			s.Eventually(s.stored(cloning)).Should(HaveField("Status.Operation.ID", HavePrefix("create/task-")))

			s.vcenter.Disconnect()
			s.Eventually(s.stored(s.cloud())).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.UnreachableReason, "connection refused"))
			restart(s)
			restore()
			s.Expect(s.vcenter.Connect()).To(Succeed())
			s.Eventually(s.stored(s.cloud())).Should(testkit.BeReady())
			s.ready(cloning)
			s.ready(vm)
			s.Expect(s.names()).To(ConsistOf("steady", "cloning"))
			s.Expect(s.vcenter.Front.Sent("CloneVM_Task")).To(Equal(2))
			s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero())
			s.remove(vm, cloning)
		})
	}
}
