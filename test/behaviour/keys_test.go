package behaviour_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// groupWithCreateInProgress returns a group of two on a cloud that holds the first create, until
// the fault is removed, and refuses to repeat it meanwhile.
func groupWithCreateInProgress(t *T, options mockcloud.Options) (f *fixture, g *pcapi.VmGroup, fault string) {
	t.Helper()
	options.Quirks.KeysInProgress = true
	f = newFixture(t, options, settlingLate)
	fault = f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1}, Hold: true})
	g = f.createGroup("web", 2)
	t.Expect(f.WaitHeld(t.Context(), fault, 1)).To(Succeed())
	t.Eventually(func() int { return f.CountCalls("POST", "/servers") }).Should(BeNumerically(">=", 5), "the create is repeated")
	t.Eventually(readyReasons(g)).Should(ConsistOf(pcapi.OutcomeUnknownReason, pcapi.RunningReason))
	return f, g, fault
}

// readyReasons returns a function that lists the reasons of the conditions Ready of the members of a group.
func readyReasons(g *pcapi.VmGroup) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		members, err := membersOf(g)(ctx)
		var reasons []string
		for _, vm := range members {
			if ready := meta.FindStatusCondition(vm.Status.Conditions, pcapi.ReadyCondition); ready != nil {
				reasons = append(reasons, ready.Reason)
			}
		}
		return reasons, err
	}
}

func TestCreateInProgress(t *testing.T) {
	inProgress := cases{}
	for name, options := range map[string]mockcloud.Options{
		"all capabilities":                            {},
		"names are not unique":                        {Capabilities: map[mockcloud.Capability]bool{mockcloud.UniqueNames: false}},
		"names are not unique, refusals have no code": {Capabilities: map[mockcloud.Capability]bool{mockcloud.UniqueNames: false}, Quirks: mockcloud.Quirks{NoCodes: true}},
	} {
		inProgress[name+": the group keeps the member, which gets the server of its first create"] = func(t *T) {
			f, g, fault := groupWithCreateInProgress(t, options)
			members, err := membersOf(g)(t.Context())
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(f.RemoveFault(fault)).To(Succeed())
			t.Eventually(latest(g)).Should(testkit.BeReady())
			now, err := membersOf(g)(t.Context())
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(namesOf(now)).To(ConsistOf(namesOf(members)))
			t.Expect(f.createdServers()).To(Equal(2))
		}
		inProgress[name+": the group is deleted meanwhile, and leaves nothing"] = func(t *T) {
			f, g, fault := groupWithCreateInProgress(t, options)
			deleteObject(t, g)
			t.Expect(f.RemoveFault(fault)).To(Succeed())
			t.Eventually(isGone(g)).Should(BeTrue())
			t.Eventually(f.Servers).Should(BeEmpty())
			t.Expect(f.createdServers()).To(Equal(2))
		}
	}
	inProgress.run(t)
}
