package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// The namespaces of VMs.
const (
	// samples is the namespace of config/samples.
	samples            = "default"
	inFlight, failover = "in-flight", "failover"
)

// applySamples applies config/samples and waits until all are Ready.
func applySamples(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "-n", samples, "-f", "config/samples")
	kubectl(ctx, "wait", "-n", samples, "--for=condition=Ready", "--timeout=120s", "vm/sample", "vm/database", "vm/web", "vm/standby", "vm/asleep", "vm/workstation", "vm/networked",
		"network.samplecontroller.k8s.io/example-network", "vmgroup/vmgroup-sample", "vmgroup/workers", "vmgroup/databases")
}

// prohibited is the sample of a name that the mock cloud prohibits.
const prohibited = "config/samples/prohibited"

// expectRefusedName checks that the webhook refuses a prohibited name.
func expectRefusedName(ctx context.Context) {
	GinkgoHelper()
	const refusal = `The VM "taboo" is invalid: spec.vmname: Invalid value: "forbidden": rejected by Cloud "default": the name "forbidden" is prohibited`
	// OLM renews the certificate after an upgrade, and the pod with the new one starts later.
	Eventually(func() (string, error) {
		output, refused := tryKubectl(ctx, "", "apply", "-n", samples, "-f", prohibited)
		var err error
		if refused == nil {
			_, err = tryKubectl(ctx, "", "delete", "-n", samples, "-f", prohibited, "--ignore-not-found", "--timeout=60s")
		}
		return output, err
	}).Should(ContainSubstring(refusal), func() string { return "the name check webhook:\n" + admission(ctx) })
	Expect(kubectl(ctx, "get", "vm", "taboo", "-n", samples, "--ignore-not-found")).To(BeEmpty())
}

// expectStalledName checks that a VM with a prohibited name stalls where there is no
// webhook.
func expectStalledName(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "-n", samples, "-f", prohibited)
	Eventually(outputOf(ctx, "get", "vm", "taboo", "-n", samples, "-o", "jsonpath={.status.conditions[?(@.type=='NameChecked')].reason}")).
		Should(Equal("Prohibited"))
	kubectl(ctx, "delete", "-n", samples, "-f", prohibited, "--timeout=60s")
}

func removeSamples(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "-n", samples, "-f", "config/samples", "--timeout=120s")
}

func serversOfSamples(ctx context.Context) string {
	GinkgoHelper()
	return kubectl(ctx, "get", "vms", "-n", samples, "-o", "jsonpath={range .items[*]}{.metadata.name} {.status.vmId}{\"\\n\"}{end}")
}

// expectColumns checks the columns that kubectl get prints of the samples.
func expectColumns(ctx context.Context) {
	GinkgoHelper()
	lines := strings.Split(kubectl(ctx, "get", "vms", "-n", samples), "\n")
	Expect(strings.Join(strings.Fields(lines[0]), " ")).To(Equal("NAME VMNAME STATE CPU% VM ID READY REASON AGE"))
	Expect(lines).To(ContainElement(MatchRegexp(`^sample +vmsample +Running +\d+ +[0-9a-f-]{36} +True +Running +\S+$`)))
	clouds := strings.Split(kubectl(ctx, "get", "clouds"), "\n")
	Expect(strings.Join(strings.Fields(clouds[0]), " ")).To(Equal("NAME ENDPOINT READY REASON SERVERS MANAGED AGE"))
}

// expectEvents checks the events that kubectl describe prints of a VM.
func expectEvents(ctx context.Context) {
	GinkgoHelper()
	Eventually(outputOf(ctx, "describe", "vm", "sample", "-n", samples)).Should(MatchRegexp(`(?s)Events:.*Normal +Created`))
}

// fleet is a namespace of VMs on the separate cloud.
type fleet struct {
	namespace string
	names     []string
}

// newFleet creates the namespace, and makes the cloud take time to build, so that
// creates are always in progress.
func newFleet(ctx context.Context, namespace string) *fleet {
	GinkgoHelper()
	Expect(cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	separateMock.call(ctx, http.MethodPatch, "/admin/behaviour", map[string]string{"buildTime": "3s"}, nil)
	return &fleet{namespace: namespace}
}

// create creates n more VMs and does not wait for them.
func (f *fleet) create(ctx context.Context, n int) {
	GinkgoHelper()
	for range n {
		name := fmt.Sprintf("%s-%d", f.namespace, len(f.names))
		f.names = append(f.names, name)
		vm := testkit.VM(f.namespace, name, func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: separateCloud} })
		Expect(cluster.Create(ctx, vm)).To(Succeed())
	}
}

// expectExactlyOne waits until all VMs are Ready, and checks that the cloud created one
// server for each and did nothing else.
func (f *fleet) expectExactlyOne(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "wait", "-n", f.namespace, "--for=condition=Ready", "vm", "--all", "--timeout=180s")
	effects := separateMock.effects(ctx)
	for _, name := range f.names {
		Expect(effects[name]).To(Equal([]mockcloud.Op{mockcloud.OpCreate}), "VM %s", name)
	}
	var vms pcapi.VMList
	Expect(cluster.List(ctx, &vms, client.InNamespace(f.namespace))).To(Succeed())
	Expect(vms.Items).To(HaveLen(len(f.names)))
}

// remove deletes the VMs with their namespace, and checks that their servers are deleted.
func (f *fleet) remove(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "namespace", f.namespace, "--timeout=180s")
	effects := separateMock.effects(ctx)
	for _, name := range f.names {
		Expect(effects[name]).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}), "VM %s", name)
	}
}
