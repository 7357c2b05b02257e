package behaviour_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestKubectlOutput(t *testing.T) { kubectlOutput.run(t) }

var kubectlOutput = cases{
	"kubectl get vms: state, CPU use, id and reason of each VM": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		sample := f.readyVM("sample", func(vm *pcapi.VM) { vm.Spec.VMName = "vmsample" })
		prohibited := f.createVM("taboo", func(vm *pcapi.VM) { vm.Spec.VMName = "forbidden" })
		t.Eventually(latest(prohibited)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Prohibited"))

		want := [][]string{
			{"NAME", "VMNAME", "STATE", "CPU%", "VM ID", "READY", "REASON", "AGE"},
			{"sample", "vmsample", "Running", "50", sample.Status.VMID, "True", "Running", "<age>"},
			{"taboo", "forbidden", "Failed", "", "", "False", "Prohibited", "<age>"},
		}
		got := table(t, kubectl(t, "", "get", "vms", "--namespace", f.namespace))
		t.Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get vms (-want +got)")
	},

	"kubectl get vms -o wide: cloud, host, zone, address, image and size of each VM, and none is being deleted": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		web := f.readyVM("web", func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.Memory, vm.Spec.Template = pcapi.Cores(4), pcapi.GiB(16), "debian"
		})
		server, _ := f.Server(web.Status.VMID)

		want := [][]string{
			{"NAME", "VMNAME", "STATE", "CPU%", "VM ID", "READY", "REASON", "AGE", "CLOUD", "HOST", "ZONE", "IP", "GUEST", "CLASS", "IMAGE", "CPU", "MEMORY", "DELETING"},
			{"web", web.Spec.VMName, "Running", "50", web.Status.VMID, "True", "Running", "<age>", f.object.Name, server.Host, server.Zone, server.Interfaces[0].Addresses[0], "", "", "debian", "4", "16Gi", ""},
		}
		got := table(t, kubectl(t, "", "get", "vms", "--namespace", f.namespace, "-o", "wide"))
		t.Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get vms -o wide (-want +got)")
	},

	"kubectl get clouds: endpoint, readiness, its reason and number of servers of each Cloud": func(t *T) {
		f := newFixture(t, mockcloud.Options{SeedServers: 2})
		f.readyVM("web")
		t.Eventually(latest(f.object)).Should(HaveField("Status.Servers", HaveValue(Equal(pcapi.CloudServers{Known: 3, Managed: 1}))))

		want := [][]string{
			{"NAME", "ENDPOINT", "READY", "REASON", "SERVERS", "MANAGED", "AGE"},
			{f.object.Name, f.object.Spec.Endpoint, "True", "Connected", "3", "1", "<age>"},
		}
		got := table(t, kubectl(t, "", "get", "clouds", f.object.Name))
		t.Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get clouds (-want +got)")
	},

	"kubectl get vms --field-selector: VMs by state and by Cloud": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.readyVM("on")
		f.readyVM("off", func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		for selector, names := range map[string]string{
			"status.state=Running":                                     "vm.samplecontroller.k8s.io/on\n",
			"status.state!=Running,status.cloud=" + f.object.Name:      "vm.samplecontroller.k8s.io/off\n",
			"status.state=Stopped,spec.cloudRef.name=" + f.object.Name: "vm.samplecontroller.k8s.io/off\n",
			"status.cloud=other":                                       "",
		} {
			t.Expect(kubectl(t, "", "get", "vms", "--namespace", f.namespace, "--field-selector", selector, "-o", "name")).To(Equal(names), selector)
		}
	},

	"kubectl get privatecloud: objects of all kinds": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.readyVM("web")

		output := kubectl(t, "", "get", "privatecloud", "--namespace", f.namespace, "-o", "name")
		t.Expect(strings.Fields(output)).To(ContainElements(
			"vm.samplecontroller.k8s.io/web", "cloud.samplecontroller.k8s.io/"+f.object.Name))
	},

	"events: one for each transition and none for polls": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		t.Eventually(eventReasons(vm)).Should(Equal([]string{"Created"}))

		for percent := range 3 {
			t.Expect(f.SetUtilisation(vm.Status.VMID, percent)).To(Succeed())
			f.waitForPolls(1)
		}
		t.Eventually(eventReasons(vm)).Should(Equal([]string{"Created"}))
		t.Eventually(eventReasons(f.object)).Should(Equal([]string{"Connected", "NotEncrypted"}), "a Cloud records when it is connected, and nothing at polls")
	},
}

func TestKubectlExplain(t *testing.T) {
	all := cases{}
	for field, sentences := range explanations {
		all[field] = func(t *T) {
			text := strings.Join(strings.Fields(kubectl(t, "", "explain", field)), " ")
			for _, sentence := range sentences {
				t.Expect(text).To(ContainSubstring(sentence))
			}
		}
	}
	all.run(t)
}

// explanations are what kubectl explain says of each field: its meaning, its
// bounds and whether it can be changed.
var explanations = map[string][]string{
	"vm.spec.vmname": {"FIELD: vmname <string>", "vmname is the VM's name in the cloud. Required, 1-63 characters",
		"Cannot be changed once the VM exists; a name that the cloud refused can be corrected."},
	"vm.spec":                  {"vmname <string> -required-"},
	"vm.status.vmId":           {"vmId is the cloud's id of this VM. Set once and never changed."},
	"vm.status.cpuUtilization": {"in percent, 0-100"},
	"vm":                       {"VM is a virtual machine in a private cloud: created when the object is"},
	"cloud.spec.endpoint":      {"endpoint is the base URL of the cloud's API"},
}

var (
	gap = regexp.MustCompile(` {2,}`)
	age = regexp.MustCompile(`^(\d+[smh])+$`)
)

// table splits what kubectl prints into cells, at the columns of the header's words.
func table(t *T, text string) [][]string {
	t.Helper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	header := gap.Split(strings.TrimSpace(lines[0]), -1)
	var begins []int
	for begin := 0; len(begins) < len(header); {
		title := header[len(begins)]
		begin += strings.Index(lines[0][begin:], title)
		begins = append(begins, begin)
		begin += len(title)
	}
	rows := [][]string{header}
	for _, line := range lines[1:] {
		var row []string
		for i, begin := range begins {
			end := len(line)
			if i+1 < len(begins) {
				end = begins[i+1]
			}
			cell := strings.TrimSpace(line[min(begin, len(line)):min(end, len(line))])
			if header[i] == "AGE" && age.MatchString(cell) {
				cell = "<age>"
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return rows
}
