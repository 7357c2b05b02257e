package vm

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/probe"
)

func TestWhichAddressIsDialled(t *testing.T) {
	for name, test := range map[string]struct {
		addresses []string
		want      []string
		ready     string
	}{
		"the first IPv4 address":        {[]string{"fd00::5", "10.0.0.5", "10.0.0.6"}, []string{"10.0.0.5:22"}, "True PortOpen"},
		"without one, the first IPv6":   {[]string{"fd00::5", "fd00::6"}, []string{"[fd00::5]:22"}, "True PortOpen"},
		"no other than the primary one": {[]string{"11.0.0.5", "10.0.0.6"}, nil, "Unknown ProbeNotAllowed"},
		"no loopback or link-local one": {[]string{"127.0.0.1", "169.254.169.254", "::1", "fe80::1"}, nil, "False NoAddress"},
	} {
		t.Run(name, func(t *testing.T) {
			withGuest(t, addressed(test.addresses...), func(h *harness) {
				h.pass(socketPeriod * 11 / 10)
				h.mustReconcile()
				h.wantDialled(test.want...)
				h.wantCondition(pcapi.GuestReadyCondition, test.ready)
			})
		})
	}
}

func TestAddressThatChangesKeepsGuestReadyUntilItsFirstResult(t *testing.T) {
	withOpenPort(t, func(h *harness) {
		h.cloud.ModifyServer("s1", addressed("10.0.0.6"))
		h.poll()
		h.guest.answer(syscall.ECONNREFUSED)
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		h.pass(3 * socketPeriod)
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "False ConnectionRefused")
		h.wantDialled("10.0.0.6:22")
	})
}

func TestMessageOfProbeThatIsNotAllowedNamesNoNetwork(t *testing.T) {
	withGuest(t, addressed("11.0.0.5"), func(h *harness) {
		c := meta.FindStatusCondition(h.vm().Status.Conditions, pcapi.GuestReadyCondition)
		want := metav1.Condition{
			Type: pcapi.GuestReadyCondition, Status: metav1.ConditionUnknown, Reason: pcapi.ProbeNotAllowedReason, LastTransitionTime: c.LastTransitionTime,
			Message: "the operator may not connect to the address of the VM: ask its administrator to allow that, or remove spec.readinessProbe.tcpSocket",
		}
		c.ObservedGeneration = 0
		equal(t, "condition", want, *c)
	})
}

// exclude excludes these addresses as those of a Node, and no others.
func (h *harness) exclude(addresses ...string) {
	var all []netip.Prefix
	for _, a := range addresses {
		all = append(all, probe.Single(netip.MustParseAddr(a)))
	}
	h.guest.excluded.Set(probe.Owner{Kind: "Node", Name: "n1"}, all...)
	h.pass(0)
}

// restartKnowingNoNode starts another process, which knows no address of a Node yet. The Cloud was listed.
func (h *harness) restartKnowingNoNode() {
	h.guest.excluded = probe.NewExclusion()
	h.start()
	h.runProbes()
	h.connect()
	h.enqueued = nil
}

const notAllowed = "the operator may not connect to the address of the VM: ask its administrator"

// withExclusion runs a test of a VM whose guest is ready, in a process that knows all Nodes.
func withExclusion(t *testing.T, test func(h *harness)) {
	t.Helper()
	withOpenPort(t, func(h *harness) {
		h.restartKnowingNoNode()
		h.guest.excluded.MarkComplete()
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		h.pass(socketPeriod * 11 / 10)
		h.wantDialled("10.0.0.5:22")
		h.wantEnqueued()
		test(h)
	})
}

func TestAddressOfNodeIsNotDialled(t *testing.T) {
	withExclusion(t, func(h *harness) {
		h.exclude("10.0.0.5")
		h.wantEnqueued("ns/a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "Unknown ProbeNotAllowed", notAllowed)
		h.wantCondition(pcapi.ReadyCondition, "True Running")
		h.writes = nil
		h.pass(10 * socketPeriod)
		h.mustReconcile()
		h.wantDialled()
		equal(t, "writes", []string(nil), h.writes)

		h.enqueued = nil
		h.exclude("10.0.0.6")
		h.wantEnqueued("ns/a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "False ProbePending")
		h.pass(0)
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		h.wantDialled("10.0.0.5:22")
	})
}

func TestMessageOfExcludedAddressIsThatOfOneOutsideOfTheNetworks(t *testing.T) {
	condition := func(h *harness) metav1.Condition {
		h.mustReconcile()
		c := meta.FindStatusCondition(h.vm().Status.Conditions, pcapi.GuestReadyCondition)
		return metav1.Condition{Status: c.Status, Reason: c.Reason, Message: c.Message}
	}
	withExclusion(t, func(h *harness) {
		h.exclude("10.0.0.5")
		excluded := condition(h)
		h.cloud.ModifyServer("s1", addressed("11.0.0.5"))
		h.poll()
		equal(t, "condition", condition(h), excluded)
	})
}

func TestRestartKeepsRefusalUntilNodesAreKnown(t *testing.T) {
	restarted := func(t *testing.T, test func(h *harness)) {
		withExclusion(t, func(h *harness) {
			h.exclude("10.0.0.5")
			h.mustReconcile()
			h.restartKnowingNoNode()
			h.writes = nil
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "Unknown ProbeNotAllowed")
			h.pass(time.Hour)
			h.wantDialled()
			equal(t, "writes", []string(nil), h.writes)
			test(h)
		})
	}
	t.Run("a Node still has the address: nothing is written", func(t *testing.T) {
		restarted(t, func(h *harness) {
			h.exclude("10.0.0.5")
			h.guest.excluded.MarkComplete()
			h.pass(10 * socketPeriod)
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "Unknown ProbeNotAllowed")
			h.wantDialled()
			equal(t, "writes", []string(nil), h.writes)
		})
	})
	t.Run("no Node has it any more: it is probed", func(t *testing.T) {
		restarted(t, func(h *harness) {
			h.guest.excluded.MarkComplete()
			h.pass(0)
			h.wantEnqueued("ns/a")
			h.mustReconcile()
			h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
			h.wantDialled("10.0.0.5:22")
		})
	})
}

func TestAddressThatIsExcludedInAnOutageIsReportedAfterIt(t *testing.T) {
	withExclusion(t, func(h *harness) {
		h.inv.MarkUnavailable("connection refused")
		h.mustReconcile()
		h.enqueued = nil
		h.exclude("10.0.0.5")
		h.wantEnqueued("ns/a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "True PortOpen")
		h.connect()
		h.wantEnqueued("a")
		h.mustReconcile()
		h.wantCondition(pcapi.GuestReadyCondition, "Unknown ProbeNotAllowed")
		h.wantDialled()
	})
}
