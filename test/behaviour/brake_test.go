package behaviour_test

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// fourVMs returns a fixture with four VMs that are ready.
func fourVMs(t *T) (*fixture, []*pcapi.VM) {
	t.Helper()
	f := newFixture(t, mockcloud.Options{})
	var vms []*pcapi.VM
	for _, name := range []string{"a", "b", "c", "d"} {
		vms = append(vms, f.createVM(name))
	}
	for i := range vms {
		vms[i] = waitReady(t, vms[i])
	}
	f.waitForPolls(2)
	return f, vms
}

func TestBrake(t *testing.T) { brakeCases.run(t) }

var brakeCases = cases{
	"the listing is empty: the brake is on and nothing is created or deleted until it is acknowledged": func(t *T) {
		f, vms := fourVMs(t)
		showServers := f.showNoServers()
		t.Eventually(latest(f.object)).Should(SatisfyAll(
			testkit.HaveCondition("Braked", metav1.ConditionTrue, "ServersVanished", "lacks 4 servers", "kubectl annotate cloud "+f.object.Name),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "ServersVanished"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "ServersVanished"),
		))
		fresh := f.createVM("fresh")
		deleteObject(t, vms[0])
		t.Eventually(latest(fresh)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Braked", "until it is acknowledged"))
		t.Eventually(latest(vms[0])).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked"))

		t.Log("the brake stays on when the listing is complete again")
		showServers()
		f.forcePoll()
		requestReconcile(t, fresh)
		requestReconcile(t, vms[0])
		annotate(t, f.object, pcapi.AcknowledgeAnnotation, "some-other-snapshot")
		f.forcePoll()
		t.Expect(f.createCalls()).To(Equal(4))
		t.Expect(f.CountCalls("DELETE", "")).To(BeZero())
		t.Expect(get(t, f.object)).To(testkit.HaveCondition("Braked", metav1.ConditionTrue, ""))
		for _, vm := range vms[1:] {
			t.Expect(get(t, vm)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.State", pcapi.VMStateRunning)))
		}

		t.Log("the brake is acknowledged as its message says")
		f.acknowledge()
		waitReady(t, fresh)
		t.Eventually(isGone(vms[0])).Should(BeTrue())
		t.Eventually(latest(f.object)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition("Braked", metav1.ConditionFalse, "Released")))
	},

	"the listing lacks servers that exist: the Cloud reports it, and nothing is braked or lost": func(t *T) {
		f, vms := fourVMs(t)
		empty := f.addFault(emptyListing)
		t.Eventually(latest(f.object)).Should(SatisfyAll(
			testkit.HaveCondition("Conformant", metav1.ConditionFalse, "ListingIncomplete", "caps its listing"),
			testkit.HaveCondition("Braked", metav1.ConditionFalse, "Released"),
			testkit.BeReady(),
		))
		f.waitForPolls(2)
		for _, vm := range vms {
			t.Expect(get(t, vm)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.State", pcapi.VMStateRunning)))
		}
		deleteObject(t, vms[0])
		t.Eventually(isGone(vms[0])).Should(BeTrue())
		f.readyVM("fresh")

		t.Expect(f.RemoveFault(empty)).To(Succeed())
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Conformant", metav1.ConditionTrue, "Readable"))
	},

	"two of four servers are deleted: the brake is on and their VMs are Lost once it is acknowledged": func(t *T) {
		f, vms := fourVMs(t)
		t.Expect(f.DeleteServer(vms[0].Status.VMID)).To(Succeed())
		t.Expect(f.DeleteServer(vms[1].Status.VMID)).To(Succeed())
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Braked", metav1.ConditionTrue, "ServersVanished", "lacks 2 servers"))

		f.forcePoll()
		t.Expect(get(t, vms[0])).To(testkit.BeReady(), "the brake is not acknowledged yet")
		f.acknowledge()
		for _, vm := range vms[:2] {
			t.Eventually(latest(vm)).Should(HaveField("Status.State", pcapi.VMStateLost))
		}
		f.forcePoll()
		t.Expect(get(t, f.object)).To(testkit.HaveCondition("Braked", metav1.ConditionFalse, "Released"))
		t.Expect(f.createCalls()).To(Equal(4))
	},
}

var emptyListing = mockcloud.Fault{Match: mockcloud.Match{Method: "GET", Path: "/servers"}, List: &mockcloud.ListFault{Empty: true}}

// showNoServers makes the cloud answer as it would another tenant: it neither
// lists the servers nor returns them by id. The function that it returns ends this.
func (f *fixture) showNoServers() (show func()) {
	f.t.Helper()
	faults := []string{
		f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "GET", Path: "/servers/{id}"}, Status: 404, Body: `{"code":"notFound","message":"no such server"}`}),
		f.addFault(emptyListing),
	}
	return func() {
		f.t.Helper()
		for _, id := range faults {
			f.t.Expect(f.RemoveFault(id)).To(Succeed())
		}
	}
}

var command = regexp.MustCompile(`kubectl annotate cloud (\S+) --overwrite (\S+)=(\S+)$`)

// acknowledge runs the command that the Braked condition names.
func (f *fixture) acknowledge() {
	t := f.t
	t.Helper()
	braked := meta.FindStatusCondition(get(t, f.object).Status.Conditions, pcapi.BrakedCondition)
	words := command.FindStringSubmatch(braked.Message)
	t.Expect(words).NotTo(BeNil(), "the message names a command: %s", braked.Message)
	kubectl(t, "", "annotate", "cloud", words[1], "--overwrite", words[2]+"="+words[3])
}
