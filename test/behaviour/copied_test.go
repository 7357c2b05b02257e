package behaviour_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// copyMetadata gives an object the finalizers and annotations of another one, as kubectl get -o yaml has them.
func copyMetadata(to, from client.Object) {
	to.SetFinalizers(from.GetFinalizers())
	to.SetAnnotations(from.GetAnnotations())
}

// settlingInAnHour sets a settle time that does not pass during a case.
func settlingInAnHour(c *pcapi.Cloud) { c.Spec.SettleTime.Duration = time.Hour }

func TestObjectThatIsCopiedWithItsClaimIsCreatedAtOnce(t *testing.T) {
	all := cases{
		"a Network": func(t *T) {
			f := newFixture(t, mockcloud.Options{}, settlingInAnHour)
			original := f.readyNetwork("net", func(n *pcapi.Network) { n.Spec.CIDR, n.Spec.Gateway = "10.1.0.0/24", "10.1.0.1" })
			f.readyNetwork("copy", func(n *pcapi.Network) {
				n.Spec.CIDR, n.Spec.Gateway = "10.2.0.0/24", "10.2.0.1"
				copyMetadata(n, original)
			})
			t.Expect(f.Networks()).To(HaveLen(2))
		},
		"a VMSnapshot": func(t *T) {
			f := newFixture(t, mockcloud.Options{}, settlingInAnHour)
			f.readyVM("web")
			original := f.createSnapshot()
			t.Eventually(latest(original)).Should(testkit.BeReady())
			snapshot := f.createSnapshot(func(s *pcapi.VMSnapshot) {
				s.Name = "copy"
				copyMetadata(s, get(t, original))
			})
			t.Eventually(latest(snapshot)).Should(testkit.BeReady())
		},
	}
	for name, options := range map[string]mockcloud.Options{
		"a core cloud": {Profile: mockcloud.Core}, "a cloud with labels and keys": {},
		"a cloud with labels alone": {Capabilities: map[mockcloud.Capability]bool{mockcloud.Idempotency: false}},
	} {
		all["a VM on "+name] = func(t *T) {
			f := newFixture(t, options, settlingInAnHour)
			original := f.readyVM("web")
			vm := waitReady(t, f.createVM("copy", func(vm *pcapi.VM) { copyMetadata(vm, original) }))
			t.Expect(eventReasons(vm)(t.Context())).NotTo(ContainElement("Taken"))
			t.Expect(f.createCalls()).To(Equal(2))
			t.Expect(vm.Annotations).To(HaveKeyWithValue(pcapi.ClaimedUIDAnnotation, string(vm.UID)))
			t.Expect(f.serversNamed("copy")).To(Equal([]string{vm.Status.VMID}))
			t.Expect(f.serversNamed("web")).To(Equal([]string{original.Status.VMID}))
		}
	}
	all.run(t)
}
