package behaviour_test

import (
	"regexp"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

var _ = Describe("what people see", func() {
	It("is a line for each VM with its state, use, id and why it is not ready", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		sample := s.ready(ctx, "sample", func(vm *v1alpha1.VM) { vm.Spec.VMName = "vmsample" })
		taboo := s.create(ctx, "taboo", func(vm *v1alpha1.VM) { vm.Spec.VMName = "forbidden" })
		Eventually(ctx, now(taboo)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Prohibited"))

		want := [][]string{
			{"NAME", "VMNAME", "STATE", "CPU%", "VM ID", "READY", "REASON", "AGE"},
			{"sample", "vmsample", "Running", "50", sample.Status.VMID, "True", "Running", "<age>"},
			{"taboo", "forbidden", "Failed", "", "", "False", "Prohibited", "<age>"},
		}
		got := table(kubectl(ctx, "", "get", "vms", "--namespace", s.namespace))
		Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get vms (-want +got)")
	})

	It("is a line for each Cloud with where it is, how it stands and how many servers it has", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{SeedServers: 2})
		s.ready(ctx, "web")
		Eventually(ctx, now(s.object)).Should(HaveField("Status.Servers", HaveValue(Equal(v1alpha1.CloudServers{Known: 3, Managed: 1}))))

		want := [][]string{
			{"NAME", "ENDPOINT", "READY", "SERVERS", "MANAGED", "AGE"},
			{s.object.Name, s.object.Spec.Endpoint, "True", "3", "1", "<age>"},
		}
		got := table(kubectl(ctx, "", "get", "clouds", s.object.Name))
		Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get clouds (-want +got)")
	})

	It("is all kinds under one category", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		s.ready(ctx, "web")

		output := kubectl(ctx, "", "get", "privatecloud", "--namespace", s.namespace, "-o", "name")
		Expect(strings.Fields(output)).To(ContainElements(
			"vm.samplecontroller.k8s.io/web", "cloud.samplecontroller.k8s.io/"+s.object.Name))
	})

	DescribeTable("is an explanation of each field, with its bounds and whether it can be changed",
		func(ctx SpecContext, field string, sentences ...string) {
			text := strings.Join(strings.Fields(kubectl(ctx, "", "explain", field)), " ")
			for _, sentence := range sentences {
				Expect(text).To(ContainSubstring(sentence))
			}
		},
		Entry("of the name", "vm.spec.vmname", "FIELD: vmname <string>", "vmname is the VM's name in the cloud. Required, 1-63 characters",
			"Cannot be changed once the VM exists; a name that the cloud refused can be corrected."),
		Entry("of what is wanted", "vm.spec", "vmname <string> -required-"),
		Entry("of the id", "vm.status.vmId", "vmId is the cloud's id of this VM. Set once and never changed."),
		Entry("of the use", "vm.status.cpuUtilization", "in percent, 0-100"),
		Entry("of the kind", "vm", "VM is a virtual machine in a private cloud: created when the object is"),
		Entry("of a Cloud's endpoint", "cloud.spec.endpoint", "endpoint is the base URL of the cloud's API"),
	)

	It("is a story told once, and not again at every poll", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		Eventually(ctx, story(vm)).Should(Equal([]string{"Created"}))

		for percent := range 3 {
			Expect(s.SetUtilisation(vm.Status.VMID, percent)).To(Succeed())
			s.polls(ctx, 1)
		}
		Expect(story(vm)(ctx)).To(Equal([]string{"Created"}))
		Expect(story(s.object)(ctx)).To(Equal([]string{"Connected"}), "the Cloud tells when it is connected, and nothing at polls")
	})
})

var (
	apart = regexp.MustCompile(` {2,}`)
	age   = regexp.MustCompile(`^(\d+[smh])+$`)
)

// table takes what kubectl prints apart into cells, by where the header's words begin.
func table(text string) [][]string {
	GinkgoHelper()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	header := apart.Split(strings.TrimSpace(lines[0]), -1)
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
