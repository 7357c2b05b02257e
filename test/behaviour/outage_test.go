package behaviour_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const fleet = 20

// listingOutage returns a case of a listing with a fault: the known state is kept.
func listingOutage(fault mockcloud.Fault) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		one, two := f.readyVM("one"), f.readyVM("two")
		fault.Match = mockcloud.Match{Method: "GET", Path: "/servers"}
		id := f.addFault(fault)

		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, ""))
		t.Expect(get(t, f.object)).To(testkit.HaveCondition("Braked", metav1.ConditionFalse, ""))
		t.Expect(get(t, one)).To(testkit.BeReady())
		deleteObject(t, two)
		t.Expect(f.RemoveFault(id)).To(Succeed())
		touch(t, f.object)
		t.Eventually(isGone(two)).Should(BeTrue())
		t.Expect(get(t, one)).To(testkit.BeReady())
		t.Expect(f.serversNamed("one")).To(Equal([]string{one.Status.VMID}))
	}
}

func TestCloudOutage(t *testing.T) { outageCases.run(t) }

var outageCases = cases{
	"the cloud is disconnected and connected again: only the Cloud is written and no VM is read by itself": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		var vms []*pcapi.VM
		for n := range fleet {
			vms = append(vms, f.createVM(fmt.Sprintf("web-%d", n)))
		}
		for _, vm := range vms {
			waitReady(t, vm)
		}
		f.waitForPolls(2)
		written := len(f.writes())
		f.ResetCalls()

		f.Disconnect()
		t.Eventually(latest(f.object)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable", "connection refused"),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, ""),
		))
		touch(t, f.object)
		requestReconcile(t, vms[0])
		touch(t, f.object)
		t.Consistently(func() []string { return f.writes()[written:] }, "2s", "200ms").
			Should(HaveEach(ContainSubstring("/clouds/"+f.object.Name)), "an outage is reported by the Cloud and not by its VMs")
		t.Expect(f.writes()[written:]).To(HaveLen(1))
		t.Expect(get(t, vms[1])).To(testkit.BeReady(), "the known state of a VM is kept")

		f.reconnect()
		touch(t, f.object)
		t.Eventually(latest(f.object)).Should(testkit.BeReady())
		f.waitForPolls(2)
		t.Expect(f.writes()[written:]).To(And(HaveLen(2), HaveEach(ContainSubstring("/clouds/"+f.object.Name))))
		t.Expect(f.CountCalls("", "/servers/{id}")).To(BeZero(), "the listing covers every server")
	},

	"the cloud becomes available: all waiting VMs are reconciled": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		old := f.readyVM("old")
		f.SetUnavailable(true)
		var vms []*pcapi.VM
		for n := range fleet {
			vms = append(vms, f.createVM(fmt.Sprintf("web-%d", n)))
		}
		deleteObject(t, old)
		for _, vm := range vms {
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))
		}
		t.Expect(f.createCalls()).To(Equal(1))

		f.SetUnavailable(false)
		for _, vm := range vms {
			waitReady(t, vm)
		}
		t.Eventually(isGone(old)).Should(BeTrue())
		t.Expect(f.Servers()).To(HaveLen(fleet))
	},

	"the listing has no CPU use: it is read again after the outage": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		vm := f.readyVM("web")
		t.Expect(f.SetUtilisation(vm.Status.VMID, 50)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))))

		f.Disconnect()
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		annotate(t, vm, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		annotate(t, vm, pcapi.PausedAnnotation, "")
		t.Eventually(latest(vm)).Should(testkit.BeReady())

		f.reconnect()
		touch(t, f.object)
		t.Eventually(latest(f.object)).Should(testkit.BeReady())
		t.Expect(f.SetUtilisation(vm.Status.VMID, 88)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(88))))
	},

	"the listing answers 500: the known state is kept":          listingOutage(mockcloud.Fault{Status: 500}),
	"the listing is a login page: the known state is kept":      listingOutage(mockcloud.Fault{Status: 200, ContentType: "text/html", Body: "<html>log in</html>"}),
	"the listing is truncated: the known state is kept":         listingOutage(mockcloud.Fault{Truncate: &mockcloud.Truncation{Keep: 20}}),
	"the listing has nulls: the known state is kept":            listingOutage(mockcloud.Fault{Corrupt: mockcloud.CorruptNulls}),
	"the listing has wrong types: the known state is kept":      listingOutage(mockcloud.Fault{Corrupt: mockcloud.CorruptTypes}),
	"the listing's marker loops: the known state is kept":       listingOutage(mockcloud.Fault{List: &mockcloud.ListFault{Loop: true}}),
	"the listing is redirected: the known state is kept":        listingOutage(mockcloud.Fault{Redirect: "https://elsewhere.example.com/servers"}),
	"the listing is too large: the known state is kept":         listingOutage(mockcloud.Fault{HugeBytes: 64 << 20}),
	"the listing is nested too deeply: the known state is kept": listingOutage(mockcloud.Fault{Depth: 100_000}),
}

// writes returns the operator's writes to objects of the fixture and to its Cloud, without events.
func (f *fixture) writes() []string {
	var found []string
	for _, write := range operator.Writes.To("") {
		ours := strings.Contains(write, "/namespaces/"+f.namespace+"/") || strings.Contains(write, "/clouds/"+f.object.Name)
		if ours && !strings.Contains(write, "/events") {
			found = append(found, write)
		}
	}
	return found
}
