package behaviour_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// asStored creates an object and returns it as the API server stored it, before
// anybody reconciled it: the first event of a watch.
func asStored(t *T, resource string, object client.Object) *unstructured.Unstructured {
	t.Helper()
	objects, err := dynamic.NewForConfig(env.Config)
	t.Expect(err).NotTo(HaveOccurred())
	of := objects.Resource(schema.GroupVersionResource{Group: pcapi.GroupVersion.Group, Version: pcapi.GroupVersion.Version, Resource: resource})
	events, err := of.Namespace(object.GetNamespace()).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + object.GetName()})
	t.Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	t.Expect(env.Client.Create(t.Context(), object)).To(Succeed())
	var first watch.Event
	t.Eventually(events.ResultChan()).Should(Receive(&first))
	t.Expect(first.Type).To(Equal(watch.Added))
	stored, ok := first.Object.(*unstructured.Unstructured)
	t.Expect(ok).To(BeTrue(), "%T is unstructured", first.Object)
	return stored
}

// inProgressAtFirst returns a case of an object that is InProgress before it was
// reconciled, and has a status for its generation afterwards. Counts of the status
// are 0 at first, so that they are shown.
func inProgressAtFirst[O client.Object](resource string, object func(*T, *fixture) O, counts ...string) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		created := object(t, f)
		stored := asStored(t, resource, created)
		result, err := status.Compute(stored)
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(result.Status).To(Equal(status.InProgressStatus), "message: %s", result.Message)
		for _, count := range counts {
			t.Expect(stored.Object).To(HaveKeyWithValue("status", HaveKeyWithValue(count, BeEquivalentTo(0))))
		}
		t.Eventually(latest(created)).Should(HaveField("Status.ObservedGeneration", BeEquivalentTo(1)))
	}
}

func TestObjectThatWasNotReconciledIsInProgress(t *testing.T) { notReconciledCases.run(t) }

var notReconciledCases = cases{
	"Cloud": inProgressAtFirst("clouds", func(t *T, f *fixture) *pcapi.Cloud {
		cloud := testkit.Cloud("not-reconciled-"+f.namespace, f.URL)
		t.cleanup(func(ctx context.Context) { t.wipe(ctx, cloud) })
		return cloud
	}),
	"VM": inProgressAtFirst("vms", func(_ *T, f *fixture) *pcapi.VM {
		return testkit.VM(f.namespace, "web", func(vm *pcapi.VM) { vm.Spec.CloudRef = f.reference() })
	}),
	"VmGroup": inProgressAtFirst("vmgroups", func(_ *T, f *fixture) *pcapi.VmGroup {
		return testkit.VmGroup(f.namespace, "web", func(g *pcapi.VmGroup) { g.Spec.CloudRef = f.reference() })
	}, "replicas", "readyReplicas", "updatedReplicas"),
	"Network": inProgressAtFirst("networks", func(_ *T, f *fixture) *pcapi.Network {
		return testkit.Network(f.namespace, "net", func(n *pcapi.Network) { n.Spec.CloudRef = f.reference() })
	}, "attachedVMs"),
	"VMSnapshot": inProgressAtFirst("vmsnapshots", func(_ *T, f *fixture) *pcapi.VMSnapshot {
		return &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "snap"}, Spec: pcapi.VMSnapshotSpec{VMName: "web"}}
	}),
	"VMConsoleRequest": inProgressAtFirst("vmconsolerequests", func(_ *T, f *fixture) *pcapi.VMConsoleRequest { return f.consoleRequest("web", "") }),
	"GPUInfo": inProgressAtFirst("gpuinfos", func(_ *T, f *fixture) *pcapi.GPUInfo { return f.gpuInfo("job", 10) },
		"nodeCPUUsage", "nodeMemoryUsage", "availableAcceleratorTime"),

	"a VM that is paused from the start": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := testkit.VM(f.namespace, "web", func(vm *pcapi.VM) {
			vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"}
			vm.Spec.CloudRef = f.reference()
		})
		result, err := status.Compute(asStored(t, "vms", vm))
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(result.Status).To(Equal(status.InProgressStatus))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		t.Expect(kstatus(vm)(t.Context())).To(Equal(status.InProgressStatus))
		annotate(t, vm, pcapi.PausedAnnotation, "")
		waitReady(t, vm)
		t.Expect(kstatus(vm)(t.Context())).To(Equal(status.CurrentStatus))
	},
}

func (f *fixture) reference() *pcapi.CloudReference {
	return &pcapi.CloudReference{Name: f.object.Name}
}
