package behaviour_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/console"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// consoleRequest returns a request for the console of a VM, with a public key or one that is none.
func (f *fixture) consoleRequest(vm, public string) *pcapi.VMConsoleRequest {
	f.t.Helper()
	if public == "" {
		public = strings.Repeat("A", 87) + "="
	}
	return &pcapi.VMConsoleRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "console"},
		Spec:       pcapi.VMConsoleRequestSpec{VMName: vm, PublicKey: public},
	}
}

// requestConsole creates a request for the console of the VM web, and returns the key that opens the answer.
func (f *fixture) requestConsole() (*pcapi.VMConsoleRequest, console.Key) {
	f.t.Helper()
	key, err := console.NewKey()
	f.t.Expect(err).NotTo(HaveOccurred())
	r := f.consoleRequest("web", key.Public())
	f.t.Expect(env.Client.Create(f.t.Context(), r)).To(Succeed())
	return r, key
}

func TestVMConsoleRequest(t *testing.T) {
	cases{
		"it precedes its VM: it is refused": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			r, _ := f.requestConsole()
			t.Eventually(latest(r)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "VMNotReady", `VM "web" does not exist`))
		},

		"the VM runs: whoever asked can read what it printed, and it is read once": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			f.readyVM("web")
			r, key := f.requestConsole()
			t.Eventually(latest(r)).Should(testkit.BeReady())
			text, err := key.Open(r.UID, get(t, r).Status.Console)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(text).To(ContainSubstring("Linux version"))
			t.Expect(strings.Count(text, "\n")).To(BeNumerically("<=", 100))
			f.waitForPolls(2)
			t.Expect(f.CountCalls("GET", "/servers/{id}/console")).To(Equal(1))
			t.Eventually(eventReasons(r)).Should(ConsistOf("InSync"))
			_, err = tryEdit(t, r, func(r *pcapi.VMConsoleRequest) { r.Spec.VMName = "other" })
			t.Expect(err).To(MatchError(ContainSubstring("spec cannot be changed")))
			deleteObject(t, r)
			t.Eventually(isGone(r)).Should(BeTrue())
		},

		"its time is over: it is deleted": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			f.readyVM("web")
			r, _ := f.requestConsole()
			t.Eventually(latest(r)).Should(testkit.BeReady())
			answered := get(t, r)
			answered.Status.ReadTime = new(metav1.NewTime(time.Now().Add(-time.Hour)))
			t.Expect(env.Client.Status().Update(t.Context(), answered)).To(Succeed())
			annotate(t, r, pcapi.ReconcileRequestedAtAnnotation, "now")
			t.Eventually(isGone(r)).Should(BeTrue())
		},

		"the cloud has no consoles: it is Unsupported": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Console: false}})
			f.readyVM("web")
			r, _ := f.requestConsole()
			t.Eventually(latest(r)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "does not show the consoles"))
		},

		"the key is none: it is Rejected": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			f.readyVM("web")
			r := f.consoleRequest("web", "")
			t.Expect(env.Client.Create(t.Context(), r)).To(Succeed())
			t.Eventually(latest(r)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Rejected", "spec.publicKey is not a point of the curve P-256"))
		},
	}.run(t)
}
