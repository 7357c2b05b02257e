package behaviour_test

import (
	"github.com/google/uuid"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// documented is the manifest of the documentation, as it stands there.
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

var creations = theme{"creating a VM", cases{
	"takes the documented manifest as it stands to a running VM on the Cloud that an installation begins with": func(ctx SpecContext) {
		namespace := newNamespace(ctx, nil)
		vm := testkit.VM(namespace, "sample")
		kubectl(ctx, documented, "apply", "--namespace", namespace, "-f", "-")
		kubectl(ctx, "", "wait", "--namespace", namespace, "--for=condition=Ready", "vm/sample", "--timeout=20s")

		vm = read(ctx, vm)
		Expect(vm).To(SatisfyAll(
			testkit.HaveCondition("NameChecked", metav1.ConditionTrue, "Available"),
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			testkit.HaveCondition("Ready", metav1.ConditionTrue, "Running"),
			HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))),
			HaveField("Status.State", v1alpha1.VMStateRunning),
			HaveField("Status.Cloud", "default"),
		))
		Expect(uuid.Validate(vm.Status.VMID)).To(Succeed(), "vmId %q is a uuid", vm.Status.VMID)
		server, exists := defaultCloud.Server(vm.Status.VMID)
		Expect(exists).To(BeTrue(), "vmId is the id that the cloud gave")
		Expect(server).To(SatisfyAll(HaveField("Name", "vmsample"), HaveField("Host", vm.Status.Host)))
	},

	"shows the use that the cloud reports, from poll to poll": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")

		for _, percent := range []int{0, 100, 73} {
			Expect(s.SetUtilisation(vm.Status.VMID, percent)).To(Succeed())
			Eventually(ctx, now(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(percent))))
		}
	},

	"does not write a change of use that is smaller than utilizationStep": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, func(c *v1alpha1.Cloud) { c.Spec.UtilizationStep = 10 })
		vm := s.ready(ctx, "web")

		Expect(s.SetUtilisation(vm.Status.VMID, 59)).To(Succeed())
		s.polls(ctx, 2)
		Expect(read(ctx, vm)).To(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(50))))

		Expect(s.SetUtilisation(vm.Status.VMID, 60)).To(Succeed())
		Eventually(ctx, now(vm)).Should(HaveField("Status.CPUUtilization", HaveValue(BeEquivalentTo(60))))
	},

	"shows a VM that takes its time as Creating until the cloud has built it": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(3 * testkit.PollInterval)}})
		vm := s.create(ctx, "web")

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Creating"),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Progressing"),
			HaveField("Status.State", v1alpha1.VMStateCreating),
			HaveField("Status.VMID", Not(BeEmpty())),
		))
		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionTrue, "Created"),
			testkit.BeReady(),
			HaveField("Status.State", v1alpha1.VMStateRunning),
		))
		Expect(s.posts()).To(Equal(1))
	},

	"asks for all that the spec names, and labels the server as its own": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		cpu, memory := int32(4), int32(16)
		vm := s.ready(ctx, "database", func(vm *v1alpha1.VM) {
			vm.Spec.VMName = "Größe 9"
			vm.Spec.CPU, vm.Spec.Memory = &cpu, &memory
			vm.Spec.Template, vm.Spec.Folder = "debian-13", "databases"
			vm.Spec.PowerState = v1alpha1.PowerOff
		})

		server, _ := s.Server(vm.Status.VMID)
		Expect(server).To(SatisfyAll(
			HaveField("Name", "Größe 9"), HaveField("CPU", 4), HaveField("Memory", 16),
			HaveField("Template", "debian-13"), HaveField("Folder", "databases"), HaveField("State", mockcloud.StateStopped),
			HaveField("Labels", Equal(map[string]string{
				"samplecontroller.k8s.io/uid":       string(vm.UID),
				"samplecontroller.k8s.io/namespace": s.namespace,
				"samplecontroller.k8s.io/name":      "database",
				"samplecontroller.k8s.io/cluster":   clusterID(ctx),
			})),
		))
		Expect(vm).To(SatisfyAll(
			HaveField("Status.State", v1alpha1.VMStateStopped), testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped")))
	},

	"refuses what the cloud says no to, in the cloud's words, and tries again when the spec is corrected": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{Templates: []string{"debian-13"}}})
		vm := s.create(ctx, "web", func(vm *v1alpha1.VM) { vm.Spec.Template = "debian-12" })

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "Rejected", "debian-12"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected"),
			HaveField("Status.State", v1alpha1.VMStateFailed),
		))
		edit(ctx, vm, func(vm *v1alpha1.VM) { vm.Spec.Template = "debian-13" })
		untilReady(ctx, vm)
		Expect(s.named("web")).To(HaveLen(1))
	},

	"waits for room where a quota is used up, and creates once there is some": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{Quota: 1}, SeedServers: 1})
		vm := s.create(ctx, "web")

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Created", metav1.ConditionFalse, "QuotaExceeded"),
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Progressing"),
			HaveField("Status.State", v1alpha1.VMStatePending),
		))
		Expect(s.SetBehaviour(mockcloud.Behaviour{Quota: 2, Utilisation: "fixed:50"})).To(Succeed())
		poke(ctx, vm)
		untilReady(ctx, vm)
	},

	"waits for a Cloud that does not exist yet, and says so": func(ctx SpecContext) {
		_, endpoint := serveCloud(mockcloud.Options{})
		vm := testkit.VM(newNamespace(ctx, nil), "web", func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: "cloud-late"} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())

		Eventually(ctx, now(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", `Cloud "cloud-late" does not exist: create it`),
			testkit.HaveCondition("NameChecked", metav1.ConditionUnknown, "CheckFailed"),
		))
		openCloud(ctx, endpoint, func(c *v1alpha1.Cloud) { c.Name = "cloud-late" })
		untilReady(ctx, vm)
	},

	"is read by kstatus as under way, in sync and stalled": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(2 * testkit.PollInterval)}})
		vm, taboo := s.create(ctx, "web"), s.create(ctx, "forbidden")

		Eventually(ctx, kstatus(vm)).Should(Equal(status.InProgressStatus))
		Eventually(ctx, kstatus(vm)).Should(Equal(status.CurrentStatus))
		Eventually(ctx, kstatus(taboo)).Should(Equal(status.FailedStatus))
		Expect(kstatus(s.object)(ctx)).To(Equal(status.CurrentStatus))

		Expect(s.SetBehaviour(mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * testkit.PollInterval), Utilisation: "fixed:50"})).To(Succeed())
		remove(ctx, vm)
		Expect(kstatus(vm)(ctx)).To(Equal(status.TerminatingStatus))
	},
}}

// kstatus computes what Flux and kubectl's kin make of an object.
func kstatus(object client.Object) func(SpecContext) (status.Status, error) {
	return func(ctx SpecContext) (status.Status, error) {
		fresh, err := now(object)(ctx)
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
