package behaviour_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// documented is the manifest in the documentation.
const documented = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata:
  name: sample
spec:
  vmname: vmsample
status:
  vmId: 0f0e7a3c-…      # uuid, never changes once set
  cpuUtilization: 50    # 0-100, refreshed every poll
`

func TestCreateVM(t *testing.T) { createCases.run(t) }

var createCases = cases{
	"the documented manifest is applied: a VM runs on the default Cloud": func(t *T) {
		namespace := newNamespace(t, nil)
		vm := testkit.VM(namespace, "sample")
		kubectl(t, documented, "apply", "--namespace", namespace, "-f", "-")
		kubectl(t, "", "wait", "--namespace", namespace, "--for=condition=Ready", "vm/sample", "--timeout="+timeout.String())

		vm = get(t, vm)
		t.Expect(vm).To(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionTrue, "Available"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "Running"),
			HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))),
			HaveField("Status.State", pcapi.VMStateRunning),
			HaveField("Status.Cloud", "default"),
		))
		t.Expect(uuid.Validate(vm.Status.VMID)).To(Succeed(), "vmId %q is a uuid", vm.Status.VMID)
		server, exists := defaultCloud.Server(vm.Status.VMID)
		t.Expect(exists).To(BeTrue(), "vmId is the id that the cloud gave")
		t.Expect(server).To(SatisfyAll(HaveField("Name", "vmsample"), HaveField("Host", vm.Status.Host)))
	},

	"the reported CPU use changes: the status follows at the next poll": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")

		for _, percent := range []int{0, 100, 73} {
			t.Expect(f.SetUtilisation(vm.Status.VMID, percent)).To(Succeed())
			t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(percent))))
		}
	},

	"the CPU use changes by less than utilizationStep: the status is not written": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) { c.Spec.UtilizationStep = 10 })
		vm := f.readyVM("web")

		t.Expect(f.SetUtilisation(vm.Status.VMID, 59)).To(Succeed())
		f.waitForPolls(2)
		t.Expect(get(t, vm)).To(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))))

		t.Expect(f.SetUtilisation(vm.Status.VMID, 60)).To(Succeed())
		t.Eventually(latest(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(60))))
	},

	"the cloud takes time to build: the VM is Creating until it is built": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(3 * testkit.PollInterval)}})
		vm := f.createVM("web")

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Creating"),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Progressing"),
			HaveField("Status.State", pcapi.VMStateCreating),
			HaveField("Status.VMID", Not(BeEmpty())),
		))
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			testkit.BeReady(),
			HaveField("Status.State", pcapi.VMStateRunning),
		))
		t.Expect(f.createCalls()).To(Equal(1))
	},

	"cpu and memory are texts: the server has that size, and another form of it is no change": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web", func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.Memory = new(pcapi.VMCores(intstr.FromString("2"))), new(pcapi.VMMemory(intstr.FromString("4Gi")))
		})
		t.Expect(f.serverOf(vm)()).To(SatisfyAll(HaveField("CPU", 2), HaveField("Memory", 4)))
		edited := edit(t, vm, func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(2), new(pcapi.VMMemory(intstr.FromString("4096Mi")))
		})
		t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ObservedGeneration", edited.Generation)))
		t.Expect(f.CountCalls("PATCH", "/servers/{id}")).To(BeZero())
	},

	"memory is no whole number of GiB on a cloud that has no other sizes: the VM stalls until it is": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.Memory = new(pcapi.VMMemory(intstr.FromString("512Mi"))) })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "sizes in whole GiB, not 512 MiB"))
		t.Expect(f.createCalls()).To(BeZero())
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.Memory = pcapi.GiB(1) })
		t.Expect(f.serverOf(waitReady(t, vm))()).To(HaveField("Memory", 1))
	},

	"all fields of the spec are set: the server has them and the owner labels": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("database", func(vm *pcapi.VM) {
			vm.Spec.VMName = "Größe 9"
			vm.Spec.CPU, vm.Spec.Memory = pcapi.Cores(4), pcapi.GiB(16)
			vm.Spec.Template, vm.Spec.Folder = "debian-13", "databases"
			vm.Spec.PowerState = pcapi.PowerOff
		})

		server, _ := f.Server(vm.Status.VMID)
		t.Expect(server).To(SatisfyAll(
			HaveField("Name", "Größe 9"), HaveField("CPU", 4), HaveField("Memory", 16),
			HaveField("Template", "debian-13"), HaveField("Folder", "databases"), HaveField("State", mockcloud.StateStopped),
			HaveField("Labels", Equal(map[string]string{
				"samplecontroller.k8s.io/uid":       string(vm.UID),
				"samplecontroller.k8s.io/namespace": f.namespace,
				"samplecontroller.k8s.io/name":      "database",
				"samplecontroller.k8s.io/cluster":   clusterID(t),
			})),
		))
		t.Expect(vm).To(SatisfyAll(
			HaveField("Status.State", pcapi.VMStateStopped), testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped")))
	},

	"the cloud rejects the create: the VM stalls with the cloud's message and is created once the spec is corrected": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{Templates: []string{"debian-13"}}})
		vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.Template = "debian-12" })

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected", "debian-12"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected"),
			HaveField("Status.State", pcapi.VMStateFailed),
		))
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.Template = "debian-13" })
		waitReady(t, vm)
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
	},

	"the quota is used up: the VM waits and is created once there is room": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{Quota: 1}, SeedServers: 1})
		vm := f.createVM("web")

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "QuotaExceeded"),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Progressing"),
			HaveField("Status.State", pcapi.VMStatePending),
		))
		t.Expect(f.SetBehaviour(mockcloud.Behaviour{Quota: 2, Utilisation: "fixed:50"})).To(Succeed())
		requestReconcile(t, vm)
		waitReady(t, vm)
	},

	"the Cloud does not exist yet: the VM reports it and is created once the Cloud exists": func(t *T) {
		endpoint := serveCloud(t, mockcloud.Options{}).URL
		vm := testkit.VM(newNamespace(t, nil), "web", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "cloud-late"} })
		t.Expect(env.Client.Create(t.Context(), vm)).To(Succeed())

		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", `Cloud "cloud-late" does not exist, or namespace`),
			testkit.HaveCondition("NameChecked", metav1.ConditionUnknown, "CheckFailed"),
		))
		createCloud(t, endpoint, func(c *pcapi.Cloud) { c.Name = "cloud-late" })
		waitReady(t, vm)
	},

	"kstatus: computes InProgress, Current, Failed and Terminating": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(2 * testkit.PollInterval)}})
		vm, prohibited := f.createVM("web"), f.createVM("forbidden")

		t.Eventually(kstatus(vm)).Should(Equal(status.InProgressStatus))
		t.Eventually(kstatus(vm)).Should(Equal(status.CurrentStatus))
		t.Eventually(kstatus(prohibited)).Should(Equal(status.FailedStatus))
		t.Expect(kstatus(f.object)(t.Context())).To(Equal(status.CurrentStatus))

		t.Expect(f.SetBehaviour(mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * testkit.PollInterval), Utilisation: "fixed:50"})).To(Succeed())
		deleteObject(t, vm)
		t.Expect(kstatus(vm)(t.Context())).To(Equal(status.TerminatingStatus))
	},
}

// kstatus returns a function that computes the status that Flux and similar tools see of an object.
func kstatus(object client.Object) func(context.Context) (status.Status, error) {
	return func(ctx context.Context) (status.Status, error) {
		fresh, err := latest(object)(ctx)
		if err != nil {
			return "", err
		}
		gvk, err := env.Client.GroupVersionKindFor(fresh)
		if err != nil {
			return "", err
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fresh)
		if err != nil {
			return "", err
		}
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(gvk)
		result, err := status.Compute(u)
		if err != nil {
			return "", err
		}
		return result.Status, nil
	}
}
