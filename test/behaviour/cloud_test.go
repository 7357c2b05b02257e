package behaviour_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestCloud(t *testing.T) { cloudCases.run(t) }

var cloudCases = cases{
	"the cloud is an extended one: the status lists its capabilities": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		t.Expect(get(t, f.object).Status.Capabilities).To(ContainElements("idempotency", "labels", "uniqueNames", "bulkStatus"))
	},

	"the cloud is a core cloud: the status lists unique names, which the spec promises by default": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		t.Expect(get(t, f.object).Status.Capabilities).To(Equal([]string{"exclusiveNames", "uniqueNames"}))
	},

	"the cloud is a core cloud and the spec promises no unique names: the status lists no capability": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core}, func(c *pcapi.Cloud) { c.Spec.REST.UniqueNames = new(false) })
		t.Expect(get(t, f.object).Status.Capabilities).To(BeEmpty())
	},

	"the listing has the CPU use: it is not read for each VM": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.followUse()
		t.Expect(f.CountCalls("", "/servers/{id}/status")).To(BeZero())
	},

	"the listing has no CPU use: it is read for each VM once a poll interval": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		began := time.Now()
		f.followUse()
		reads := func() int { return f.CountCalls("GET", "/servers/{id}/status") }
		t.Eventually(reads).Should(BeNumerically(">=", 2))
		counted := reads()
		t.Expect(counted).To(BeNumerically("<=", 1+int(time.Since(began)/testkit.PollInterval)), "at most once a poll interval")
		t.Expect(f.CountCalls("", "/servers/{id}")).To(BeZero())
	},

	"VMs refer to the Cloud: it reports InUse and is deleted after the last of them": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")

		deleteObject(t, f.object)
		t.Eventually(latest(f.object)).Should(SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "InUse", "VMs, Networks and VMSnapshots that refer to this Cloud: 1; delete them first"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "InUse"),
			testkit.HaveCondition("InUse", metav1.ConditionTrue, "InUse", "VMs: 1 ("+f.namespace+" 1: web); Networks: 0"),
		))
		t.Eventually(eventReasons(f.object)).Should(ContainElement("InUse"))
		t.Expect(kubectl(t, "", "get", "events", "--namespace", "default", "--field-selector", "involvedObject.name="+f.object.Name)).NotTo(
			ContainSubstring(f.namespace), "users of the namespace default may read the events of Clouds")
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serversNamed("web")).To(BeEmpty(), "its VMs can still be deleted")
		t.Eventually(isGone(f.object)).Should(BeTrue())
	},

	"allowedNamespaces is set: only these namespaces use the Cloud": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		denied := f.createVM("web")
		t.Eventually(latest(denied)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", `Cloud "`+f.object.Name+`" does not exist, or namespace "`+f.namespace+`" may not use it`),
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Pending"),
		))
		f.namespace = newNamespace(t, map[string]string{"cloud": "yes"})
		f.readyVM("allowed")
		t.Expect(f.serversNamed("web")).To(BeEmpty())
		deleteObject(t, denied)
		t.Eventually(isGone(denied)).Should(BeTrue())
	},

	"the namespace is not allowed any more: its guest is unknown, and its VM can still be deleted": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.ReadinessProbe = socketProbe() })
		f.openPort(vm)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionTrue, pcapi.PortOpenReason))
		edit(t, f.object, func(c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		requestReconcile(t, vm)
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"),
			testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionUnknown, "CloudUnavailable", "the condition Ready says why"),
		))
		t.Expect(get(t, vm)).To(HaveField("Status.VMID", vm.Status.VMID))

		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serversNamed("web")).To(BeEmpty())
	},
}

// followUse waits until the status of a VM has the CPU use of its server, and then
// for three polls whose calls are counted.
func (f *fixture) followUse() {
	f.t.Helper()
	vm := f.readyVM("web")
	f.t.Expect(f.SetUtilisation(vm.Status.VMID, 61)).To(Succeed())
	f.t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(61))))
	f.ResetCalls()
	f.waitForPolls(3)
}

// putOrphan puts a server with the owner labels of an object of the fixture's namespace into the cloud.
func (f *fixture) putOrphan(name, uid, cluster string) mockcloud.Server {
	f.t.Helper()
	return f.putForeignServer(name, map[string]string{
		"samplecontroller.k8s.io/uid": uid, "samplecontroller.k8s.io/cluster": cluster,
		"samplecontroller.k8s.io/namespace": f.namespace, "samplecontroller.k8s.io/name": name,
	})
}

func TestOrphanedServers(t *testing.T) { orphanedServers.run(t) }

var orphanedServers = cases{
	"orphanPolicy is not set: orphaned servers are counted and kept": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.putOrphan("leaked", "a-uid-that-is-gone", clusterID(t))
		t.Eventually(latest(f.object)).Should(HaveField("Status.Servers", HaveValue(Equal(pcapi.CloudServers{Known: 1, Orphaned: 1}))))

		f.waitForPolls(2)
		t.Expect(f.serversNamed("leaked")).To(HaveLen(1))
	},

	"orphanPolicy is Delete: orphaned servers are deleted, servers of other owners are not": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) { c.Spec.OrphanPolicy = pcapi.OrphanPolicyDelete })
		vm := f.readyVM("web")
		f.putOrphan("leaked", "a-uid-that-is-gone", clusterID(t))
		f.putOrphan("web", "the-uid-of-the-web-before", clusterID(t))
		theirs := f.putOrphan("theirs", "a-uid-that-is-gone", "another-cluster")
		unlabelled := f.putForeignServer("unlabelled", map[string]string{"team": "red"})
		unprovable := f.putForeignServer("unprovable", map[string]string{"samplecontroller.k8s.io/cluster": clusterID(t)})

		ids := func() []string {
			var ids []string
			for _, server := range f.Servers() {
				ids = append(ids, server.ID)
			}
			return ids
		}
		t.Eventually(ids).Should(ConsistOf(vm.Status.VMID, theirs.ID, unlabelled.ID, unprovable.ID))
		f.waitForPolls(2)
		t.Expect(ids()).To(ConsistOf(vm.Status.VMID, theirs.ID, unlabelled.ID, unprovable.ID))
		t.Expect(get(t, vm)).To(testkit.BeReady())
	},
}
