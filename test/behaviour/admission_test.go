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

const nameRule = "vmname must be 1-63 letters and digits of any script; space, '.', '_' and '-' may stand inside, not at the ends"

// refusal is a spec that the API server refuses, and a sentence of its message.
type refusal struct{ spec, sentence string }

// refused returns the cases of manifests of a kind that are refused.
func refused(kind string, refusals map[string]refusal) cases {
	all := cases{}
	for name, r := range refusals {
		all[name] = func(t *T) {
			output, err := dryRun(t, kind, r.spec)
			t.Expect(err).To(HaveOccurred(), "it was accepted: %s", output)
			t.Expect(output).To(ContainSubstring(r.sentence))
		}
	}
	return all
}

// dryRun creates an object with a spec in a server-side dry run.
func dryRun(t *T, kind, spec string) (string, error) {
	manifest := fmt.Sprintf("apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: %s\nmetadata:\n  generateName: bad-\nspec: %s\n", kind, spec)
	return env.Kubectl(t.Context(), manifest, "create", "--dry-run=server", "-f", "-")
}

func TestInvalidVMIsRefused(t *testing.T) { refused("VM", invalidVMs).run(t) }

var invalidVMs = map[string]refusal{
	"vmname is missing":                                 {`{}`, "spec.vmname: Required value"},
	"vmname is empty":                                   {`{vmname: ""}`, "spec.vmname: Invalid value"},
	"vmname is too long":                                {`{vmname: ` + strings.Repeat("n", 64) + `}`, "spec.vmname: Too long: may not be more than 63"},
	"vmname has a control character":                    {`{vmname: "web\u0007"}`, nameRule},
	"vmname has a line break":                           {`{vmname: "web\n1"}`, nameRule},
	"vmname ends with a space":                          {`{vmname: "web "}`, nameRule},
	"vmname begins with a dot":                          {`{vmname: ".web"}`, nameRule},
	"vmname is a path":                                  {`{vmname: "../servers"}`, nameRule},
	"vmname has a percent sign":                         {`{vmname: "web%2f1"}`, nameRule},
	"cpu is negative":                                   {`{vmname: web, cpu: -1}`, "spec.cpu: Invalid value: -1: " + coresRule},
	"cpu is too large":                                  {`{vmname: web, cpu: 2000000000}`, "spec.cpu: Invalid value: 2000000000: " + coresRule},
	"cpu is a fraction":                                 {`{vmname: web, cpu: 0.5}`, "spec.cpu"},
	"memory is 0":                                       {`{vmname: web, memory: 0}`, "spec.memory: Invalid value: 0: " + memoryRule},
	"powerState is unknown":                             {`{vmname: web, powerState: Sleeping}`, `Unsupported value: "Sleeping": supported values: "On", "Off"`},
	"the spec has an unknown field":                     {`{vmname: web, cpus: 4}`, `unknown field "spec.cpus"`},
	"the spec has a field of the status":                {`{vmname: web, vmId: x}`, `unknown field "spec.vmId"`},
	"managementPolicy is ObserveOnly without an import": {`{vmname: web, managementPolicy: ObserveOnly}`, "managementPolicy ObserveOnly needs import.vmId: the id of the VM to observe"},
	"import has no vmId":                                {`{vmname: web, import: {}}`, "spec.import.vmId: Required value"},
	"cloudRef has no name":                              {`{vmname: web, cloudRef: {name: ""}}`, "spec.cloudRef.name"},
	"cloudRef has a namespace":                          {`{vmname: web, cloudRef: {name: default, namespace: theirs}}`, `unknown field "spec.cloudRef.namespace"`},
}

func TestInvalidCloudIsRefused(t *testing.T) { refused("Cloud", invalidClouds).run(t) }

var invalidClouds = map[string]refusal{
	"endpoint is missing":                  {`{}`, "spec.endpoint: Required value"},
	"endpoint is no URL":                   {`{endpoint: cloud.example.com}`, "endpoint must be a URL such as https://cloud.example.com/api"},
	"endpoint has another scheme":          {`{endpoint: "ftp://cloud.example.com"}`, "endpoint must be a URL such as"},
	"endpoint has credentials":             {`{endpoint: "https://user:secret@cloud.example.com"}`, "without user, query or fragment"},
	"endpoint has a query":                 {`{endpoint: "https://cloud.example.com/?a=b"}`, "without user, query or fragment"},
	"pollInterval is 0":                    {`{endpoint: "https://c.example.com", pollInterval: 0s}`, "pollInterval must lie between 1s and 1h"},
	"pollInterval is too long":             {`{endpoint: "https://c.example.com", pollInterval: 24h}`, "pollInterval must lie between 1s and 1h"},
	"pollInterval is no duration":          {`{endpoint: "https://c.example.com", pollInterval: soon}`, "spec.pollInterval"},
	"settleTime is negative":               {`{endpoint: "https://c.example.com", settleTime: -1s}`, "settleTime must lie between 0s and 1h"},
	"utilizationStep is above 100":         {`{endpoint: "https://c.example.com", utilizationStep: 101}`, "spec.utilizationStep"},
	"type is unknown":                      {`{endpoint: "https://c.example.com", type: SOAP}`, `Unsupported value: "SOAP"`},
	"credentials are sent over http":       {`{endpoint: "http://c.example.com", credentialsSecretRef: {name: x}}`, "credentials are sent over https only"},
	"credentialsSecretRef has a namespace": {`{endpoint: "https://c.example.com", credentialsSecretRef: {name: x, namespace: theirs}}`, `unknown field "spec.credentialsSecretRef.namespace"`},

	"type OpenStack without its block":    {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}}`, "openstack holds the settings of type OpenStack"},
	"type OpenStack with the block rest":  {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {}, rest: {}}`, "rest holds settings of type REST"},
	"type REST with the block openstack":  {`{endpoint: "https://c.example.com", openstack: {}}`, "openstack holds the settings of type OpenStack"},
	"type OpenStack without credentials":  {`{endpoint: "https://c.example.com", type: OpenStack, openstack: {}}`, "a cloud of type OpenStack needs credentials"},
	"openstack.flavors.match is unknown":  {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {flavors: {match: Roughly}}}`, `Unsupported value: "Roughly"`},
	"openstack.network.default is empty":  {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {network: {default: ""}}}`, "spec.openstack.network.default"},
	"openstack.project has 65 characters": {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {project: ` + strings.Repeat("p", 65) + `}}`, "spec.openstack.project: Too long"},
	"openstack.interface is unknown":      {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {interface: internal}}`, `Unsupported value: "internal"`},
	"openstack.endpoints has no URL":      {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {endpoints: {compute: nova}}}`, "spec.openstack.endpoints.compute"},
	"openstack.endpoints has a user":      {`{endpoint: "https://c.example.com", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {endpoints: {image: "https://u:p@i"}}}`, "spec.openstack.endpoints.image"},
}

func TestCloudOfEachTypeIsAccepted(t *testing.T) {
	all := cases{}
	for name, spec := range map[string]string{
		"REST without a block":                           `{endpoint: "https://c.example.com"}`,
		"REST with its block":                            `{endpoint: "https://c.example.com", type: REST, rest: {}}`,
		"OpenStack with an empty block":                  `{endpoint: "https://c.example.com/v3", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {}}`,
		"OpenStack with all settings and another domain": `{endpoint: "https://c.example.com/v3", type: OpenStack, credentialsSecretRef: {name: x}, openstack: {cloudName: c, region: R, interface: Internal, endpoints: {compute: "https://c", network: "https://n:9696/v2.0", image: "http://i/image"}, project: p, domain: d, images: {default: i}, flavors: {default: f, match: AtLeast}, network: {default: auto}, availabilityZone: z, keyPair: k}}`,
	} {
		all[name] = func(t *T) {
			output, err := dryRun(t, "Cloud", spec)
			t.Expect(err).NotTo(HaveOccurred(), output)
		}
	}
	all.run(t)
}

func TestUnusualVMIsAccepted(t *testing.T) {
	all := cases{}
	for name, spec := range map[string]string{
		"the name is one digit":                                        `{vmname: "9"}`,
		"the name has a letter outside ASCII and a space":              `{vmname: Größe 9}`,
		"the name is Chinese":                                          `{vmname: 数据库}`,
		"the name has a dot, an underscore, a dash and a space inside": `{vmname: a.b_c-d e}`,
		"the name has 63 characters of two bytes":                      `{vmname: "` + strings.Repeat("ж", 63) + `"}`,
	} {
		all[name] = func(t *T) {
			output, err := dryRun(t, "VM", spec)
			t.Expect(err).NotTo(HaveOccurred(), output)
		}
	}
	all.run(t)
}

// refusedEdit returns a case of an edit that the API server refuses once the VM exists.
func refusedEdit(sentence string, change func(*pcapi.VM)) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.Template, vm.Spec.Folder = "debian-13", "databases" })
		_, err := tryEdit(t, vm, change)
		t.Expect(err).To(MatchError(ContainSubstring(sentence)))
	}
}

// refusedImportEdit returns a case of an edit of spec.import that the API server refuses.
func refusedImportEdit(change func(*pcapi.VM)) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("web", importServer("5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10"))
		_, err := tryEdit(t, vm, change)
		t.Expect(err).To(MatchError(ContainSubstring("import cannot be changed once it is set; delete the VM with deletionPolicy Orphan and make another")))
	}
}

const immutable = " cannot be changed once the VM exists; delete this VM and make another"

func TestEditOfImmutableField(t *testing.T) { immutableFields.run(t) }

var immutableFields = cases{
	"vmname of a VM that exists: refused":          refusedEdit("vmname"+immutable, func(vm *pcapi.VM) { vm.Spec.VMName = "other" }),
	"import is added to a VM that exists: refused": refusedEdit("import cannot be added once the VM exists", importServer("another")),
	"import names another server: refused":         refusedImportEdit(importServer("another")),
	"import is removed: refused":                   refusedImportEdit(func(vm *pcapi.VM) { vm.Spec.Import = nil }),

	"the VM does not exist yet: accepted": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("forbidden", func(vm *pcapi.VM) { vm.Spec.Template = "debian-12" })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))

		edit(t, vm, func(vm *pcapi.VM) {
			vm.Spec.VMName, vm.Spec.Template, vm.Spec.Folder = "web", "debian-13", "databases"
		})
		vm = waitReady(t, vm)
		t.Expect(f.serverOf(vm)()).To(SatisfyAll(
			HaveField("Name", "web"), HaveField("Template", "debian-13"), HaveField("Folder", "databases")))
	},
}
