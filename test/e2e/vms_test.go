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

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// The namespaces of VMs.
const (
	// samples holds config/samples, as a user applies them.
	samples            = "default"
	inFlight, failover = "in-flight", "failover"
)

// applySamples applies config/samples and waits until all are Ready.
func applySamples(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "-n", samples, "-f", "config/samples")
	kubectl(ctx, "wait", "-n", samples, "--for=condition=Ready", "--timeout=120s", "vm/sample", "vm/database", "vm/web", "vm/standby", "vm/networked",
		"network.samplecontroller.k8s.io/example-network", "vmgroup/vmgroup-sample", "vmgroup/workers", "vmgroup/databases")
}

// prohibited is the sample of a name that the mock cloud prohibits.
const prohibited = "config/samples/prohibited"

// expectRefusedName looks that a name is checked before it is stored.
func expectRefusedName(ctx context.Context) {
	GinkgoHelper()
	const refusal = `The VM "taboo" is invalid: spec.vmname: Invalid value: "forbidden": rejected by Cloud "default": the name "forbidden" is prohibited`
	// OLM renews the certificate with each installation, and starts the pod that has it a little later.
	Eventually(func() string {
		output, err := tryKubectl(ctx, "", "apply", "-n", samples, "-f", prohibited)
		if err == nil {
			kubectl(ctx, "delete", "-n", samples, "-f", prohibited, "--timeout=60s")
		}
		return output
	}).Should(ContainSubstring(refusal))
	Expect(kubectl(ctx, "get", "vm", "taboo", "-n", samples, "--ignore-not-found")).To(BeEmpty())
}

// expectStalledName looks that a name is checked before its VM is created,
// where it is not checked before it is stored.
func expectStalledName(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "-n", samples, "-f", prohibited)
	Eventually(asks(ctx, "get", "vm", "taboo", "-n", samples, "-o", "jsonpath={.status.conditions[?(@.type=='NameChecked')].reason}")).
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

// expectColumns looks at what kubectl get prints of the samples.
func expectColumns(ctx context.Context) {
	GinkgoHelper()
	lines := strings.Split(kubectl(ctx, "get", "vms", "-n", samples), "\n")
	Expect(strings.Join(strings.Fields(lines[0]), " ")).To(Equal("NAME VMNAME STATE CPU% VM ID READY REASON AGE"))
	Expect(lines).To(ContainElement(MatchRegexp(`^sample +vmsample +Running +\d+ +[0-9a-f-]{36} +True +Running +\S+$`)))
	clouds := strings.Split(kubectl(ctx, "get", "clouds"), "\n")
	Expect(strings.Join(strings.Fields(clouds[0]), " ")).To(Equal("NAME ENDPOINT READY SERVERS MANAGED AGE"))
}

// expectStory looks at the events that kubectl describe tells of a VM.
func expectStory(ctx context.Context) {
	GinkgoHelper()
	Eventually(asks(ctx, "describe", "vm", "sample", "-n", samples)).Should(MatchRegexp(`(?s)Events:.*Normal +Created`))
}

// fleet is a namespace of VMs on the cloud that outlives the operator.
type fleet struct {
	namespace string
	names     []string
}

// newFleet makes the namespace, and has the cloud build for a while, so that
// something is always under way.
func newFleet(ctx context.Context, namespace string) *fleet {
	GinkgoHelper()
	Expect(cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	apart.ask(ctx, http.MethodPatch, "/admin/behaviour", map[string]string{"buildTime": "3s"}, nil)
	return &fleet{namespace: namespace}
}

// grow makes n more VMs and does not wait for them.
func (f *fleet) grow(ctx context.Context, n int) {
	GinkgoHelper()
	for range n {
		name := fmt.Sprintf("%s-%d", f.namespace, len(f.names))
		f.names = append(f.names, name)
		vm := testkit.VM(f.namespace, name, func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: elsewhere} })
		Expect(cluster.Create(ctx, vm)).To(Succeed())
	}
}

// expectExactlyOne waits until all are Ready, and looks that the cloud made one
// server of each and has done nothing to it since.
func (f *fleet) expectExactlyOne(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "wait", "-n", f.namespace, "--for=condition=Ready", "vm", "--all", "--timeout=180s")
	effects := apart.effects(ctx)
	for _, name := range f.names {
		Expect(effects[name]).To(Equal([]mockcloud.Op{mockcloud.OpCreate}), "VM %s", name)
	}
	var vms v1alpha1.VMList
	Expect(cluster.List(ctx, &vms, client.InNamespace(f.namespace))).To(Succeed())
	Expect(vms.Items).To(HaveLen(len(f.names)))
}

// end deletes the VMs with their namespace, and looks that their servers are gone.
func (f *fleet) end(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "namespace", f.namespace, "--timeout=180s")
	effects := apart.effects(ctx)
	for _, name := range f.names {
		Expect(effects[name]).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}), "VM %s", name)
	}
}
