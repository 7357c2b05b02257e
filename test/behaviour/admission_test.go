package behaviour_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const nameRule = "vmname must be 1-63 letters and digits of any script; space, '.', '_' and '-' may stand inside, not at the ends"

var _ = Describe("a manifest that cannot be meant", func() {
	apply := func(ctx SpecContext, kind, spec string) (string, error) {
		manifest := fmt.Sprintf("apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: %s\nmetadata:\n  generateName: bad-\nspec: %s\n", kind, spec)
		return tryKubectl(ctx, manifest, "create", "--dry-run=server", "-f", "-")
	}

	DescribeTable("of a VM is refused with a sentence that says what to do",
		func(ctx SpecContext, spec, sentence string) {
			output, err := apply(ctx, "VM", spec)
			Expect(err).To(HaveOccurred(), "it was accepted: %s", output)
			Expect(output).To(ContainSubstring(sentence))
		},
		Entry("without a name", `{}`, "spec.vmname: Required value"),
		Entry("with an empty name", `{vmname: ""}`, "spec.vmname: Invalid value"),
		Entry("with a name that is too long", `{vmname: `+strings.Repeat("n", 64)+`}`, "spec.vmname: Too long: may not be more than 63"),
		Entry("with a control character in the name", `{vmname: "web\u0007"}`, nameRule),
		Entry("with a line break in the name", `{vmname: "web\n1"}`, nameRule),
		Entry("with a space at the end of the name", `{vmname: "web "}`, nameRule),
		Entry("with a dot at the start of the name", `{vmname: ".web"}`, nameRule),
		Entry("with a path in the name", `{vmname: "../servers"}`, nameRule),
		Entry("with a percent sign in the name", `{vmname: "web%2f1"}`, nameRule),
		Entry("with fewer cores than none", `{vmname: web, cpu: -1}`, "spec.cpu: Invalid value: -1: spec.cpu in body should be greater than or equal to 1"),
		Entry("with an absurd number of cores", `{vmname: web, cpu: 2000000000}`, "spec.cpu in body should be less than or equal to 1024"),
		Entry("with half a core", `{vmname: web, cpu: 0.5}`, "spec.cpu"),
		Entry("with no memory", `{vmname: web, memory: 0}`, "spec.memory in body should be greater than or equal to 1"),
		Entry("with a power state that there is not", `{vmname: web, powerState: Sleeping}`, `Unsupported value: "Sleeping": supported values: "On", "Off"`),
		Entry("with a field that there is not", `{vmname: web, cpus: 4}`, `unknown field "spec.cpus"`),
		Entry("with a status in the spec", `{vmname: web, vmId: x}`, `unknown field "spec.vmId"`),
		Entry("with nothing to observe", `{vmname: web, managementPolicy: ObserveOnly}`, "managementPolicy ObserveOnly needs import.vmId: the id of the VM to observe"),
		Entry("with an import of nothing", `{vmname: web, import: {}}`, "spec.import.vmId: Required value"),
		Entry("with a Cloud without a name", `{vmname: web, cloudRef: {name: ""}}`, "spec.cloudRef.name"),
		Entry("with a Cloud in another namespace", `{vmname: web, cloudRef: {name: default, namespace: theirs}}`, `unknown field "spec.cloudRef.namespace"`),
	)

	DescribeTable("of a Cloud is refused with a sentence that says what to do",
		func(ctx SpecContext, spec, sentence string) {
			output, err := apply(ctx, "Cloud", spec)
			Expect(err).To(HaveOccurred(), "it was accepted: %s", output)
			Expect(output).To(ContainSubstring(sentence))
		},
		Entry("without an endpoint", `{}`, "spec.endpoint: Required value"),
		Entry("with an endpoint that is no URL", `{endpoint: cloud.example.com}`, "endpoint must be a URL such as https://cloud.example.com/api"),
		Entry("with another scheme", `{endpoint: "ftp://cloud.example.com"}`, "endpoint must be a URL such as"),
		Entry("with credentials in the endpoint", `{endpoint: "https://user:secret@cloud.example.com"}`, "without user, query or fragment"),
		Entry("with a query in the endpoint", `{endpoint: "https://cloud.example.com/?a=b"}`, "without user, query or fragment"),
		Entry("polled without a pause", `{endpoint: "https://c.example.com", pollInterval: 0s}`, "pollInterval must lie between 1s and 1h"),
		Entry("polled once a day", `{endpoint: "https://c.example.com", pollInterval: 24h}`, "pollInterval must lie between 1s and 1h"),
		Entry("polled whenever", `{endpoint: "https://c.example.com", pollInterval: soon}`, "spec.pollInterval"),
		Entry("that settles in the past", `{endpoint: "https://c.example.com", settleTime: -1s}`, "settleTime must lie between 0s and 1h"),
		Entry("that takes every change for none", `{endpoint: "https://c.example.com", utilizationStep: 101}`, "spec.utilizationStep"),
		Entry("of a type that there is not", `{endpoint: "https://c.example.com", type: SOAP}`, `Unsupported value: "SOAP"`),
		Entry("with a Secret in another namespace", `{endpoint: "https://c.example.com", credentialsSecretRef: {name: x, namespace: theirs}}`, `unknown field "spec.credentialsSecretRef.namespace"`),
	)

	It("is let through where it is only unusual", func(ctx SpecContext) {
		for _, spec := range []string{
			`{vmname: "9"}`, `{vmname: Größe 9}`, `{vmname: 数据库}`, `{vmname: a.b_c-d e}`, `{vmname: "` + strings.Repeat("ж", 63) + `"}`,
		} {
			output, err := apply(ctx, "VM", spec)
			Expect(err).NotTo(HaveOccurred(), "%s: %s", spec, output)
		}
	})
})

var _ = Describe("an edit of what cannot change", func() {
	It("is refused once the VM exists, with the way out", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web", func(vm *v1alpha1.VM) { vm.Spec.Template, vm.Spec.Folder = "debian-13", "databases" })

		const wayOut = " cannot be changed once the VM exists; delete this VM and make another"
		for field, change := range map[string]func(*v1alpha1.VMSpec){
			"vmname":   func(spec *v1alpha1.VMSpec) { spec.VMName = "other" },
			"cloudRef": func(spec *v1alpha1.VMSpec) { spec.CloudRef = &v1alpha1.CloudReference{Name: "other"} },
			"template": func(spec *v1alpha1.VMSpec) { spec.Template = "debian-14" },
			"folder":   func(spec *v1alpha1.VMSpec) { spec.Folder = "" },
		} {
			_, err := tryEdit(ctx, vm, func(vm *v1alpha1.VM) { change(&vm.Spec) })
			Expect(err).To(MatchError(ContainSubstring(field+wayOut)), field)
		}
		_, err := tryEdit(ctx, vm, importing("another"))
		Expect(err).To(MatchError(ContainSubstring("import cannot be added once the VM exists")))
	})

	It("is refused of an import from the start", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.create(ctx, "web", importing("5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10"))

		for _, change := range []func(*v1alpha1.VM){importing("another"), func(vm *v1alpha1.VM) { vm.Spec.Import = nil }} {
			_, err := tryEdit(ctx, vm, change)
			Expect(err).To(MatchError(ContainSubstring("import cannot be changed once it is set; delete the VM with deletionPolicy Orphan and make another")))
		}
	})

	It("is accepted as long as the VM does not exist", func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		vm := s.create(ctx, "forbidden", func(vm *v1alpha1.VM) { vm.Spec.Template = "debian-12" })
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))

		edit(ctx, vm, func(vm *v1alpha1.VM) {
			vm.Spec.VMName, vm.Spec.Template, vm.Spec.Folder = "web", "debian-13", "databases"
		})
		vm = untilReady(ctx, vm)
		Expect(s.serverOf(vm)()).To(SatisfyAll(
			HaveField("Name", "web"), HaveField("Template", "debian-13"), HaveField("Folder", "databases")))
	})
})
