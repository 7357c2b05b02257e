package vm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

var (
	errNotFound = &cloud.Error{Kind: cloud.NotFound, Op: `get server "s1"`, Code: "notFound"}
	errUnproven = &cloud.Error{Kind: cloud.NotFoundUnproven, Op: `get server "s1"`}
)

// namesNotExclusive are the capabilities of a cloud where a name proves nothing.
var namesNotExclusive = without(cloud.Idempotency, cloud.Labels, cloud.ExclusiveNames)

// hideReads makes GET and LIST answer as if the server did not exist.
func (h *harness) hideReads(answer *cloud.Error) {
	h.cloud.Hide("s1")
	h.cloud.FailAlways(cloudfake.GetServer, answer, false)
}

func (h *harness) showReads() {
	h.cloud.Show()
	h.cloud.Heal(cloudfake.GetServer)
}

func TestServerIsNotLostBeforeSettleTime(t *testing.T) {
	for _, caps := range []cloud.Capabilities{everything, uniqueNamesOnly, withoutProofs} {
		for _, answer := range []*cloud.Error{errNotFound, errUnproven} {
			for _, listedBefore := range []bool{false, true} {
				for _, restarted := range []bool{false, true} {
					h := newHarness(t, caps, vmWith())
					h.mustReconcile()
					created := h.now
					if listedBefore {
						h.later(time.Second)
						h.mustReconcile()
					}
					h.hideReads(answer)
					if restarted {
						h.start()
						h.connect()
					}
					for h.now.Before(created.Add(settleTime - 10*time.Second)) {
						h.later(10 * time.Second)
						h.mustReconcile()
						if reason, _ := h.condition(pcapi.CreatedCondition); reason != "True Created" || h.vm().Status.State != pcapi.VMStateRunning {
							t.Fatalf("%s, listed before %t, restarted %t: Created=%s, state %s %v after the create", answer.Kind, listedBefore, restarted,
								reason, h.vm().Status.State, h.now.Sub(created))
						}
					}
					h.showReads()
					h.later(time.Second)
					h.mustReconcile()
					h.wantCondition(pcapi.ReadyCondition, "True Running")
					h.wantServers("s1")
				}
			}
		}
	}
}

func TestServerIsLostOnlyIfGetAndNewListingLackIt(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith())
	h.mustReconcile()
	h.cloud.Hide("s1")
	h.later(settleTime)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.CreatedCondition, "False Lost")

	h.showReads()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

// A cloud may report the end of a deletion, which it does once, before its reads show it.
func TestEndOfADeletionThatWasReportedTooEarlyIsFound(t *testing.T) {
	for name, listed := range map[string]bool{"a read shows the server after the report": false, "a listing shows it after the report": true} {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the VM is deleted: %t", name, removed), func(t *testing.T) {
				h := harnessWithServer(t, everything, onRecord(), serverWith())
				h.mustReconcile()
				h.later(settleTime + time.Minute)
				h.inv.Configure(inventory.Settings{PollInterval: 10 * time.Minute, SettleTime: settleTime, UtilizationStep: 1})
				report := func(change cloud.Change) {
					t.Helper()
					if err := h.inv.Apply(h.cloud, change); err != nil {
						t.Fatalf("Apply: %v", err)
					}
					h.advance(time.Second)
					if snap := h.inv.Reported(); snap != nil {
						h.inv.Publish(snap)
					}
				}
				report(cloud.Change{AsOf: h.now, Complete: true, Servers: h.cloud.Servers()})
				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.State = cloud.StateDeleting })
				report(cloud.Change{AsOf: h.now, Servers: h.cloud.Servers()})
				h.mustReconcile()
				report(cloud.Change{AsOf: h.now, Gone: []string{"s1"}})
				if listed {
					h.later(time.Second)
				}
				if removed {
					h.remove()
				}
				h.mustReconcile()
				equal(t, "state", pcapi.VMStateDeleting, h.vm().Status.State)
				h.cloud.RemoveServers("s1")

				h.advance(external.Safety)
				h.mustReconcile()
				h.advance(time.Second)
				equal(t, "time until the next listing", time.Duration(0), h.inv.NextPoll())
				h.poll()
				h.mustReconcile()
				if removed {
					h.wantGone()
				} else {
					equal(t, "state", pcapi.VMStateLost, h.vm().Status.State)
				}
			})
		}
	}
}

func TestUnprovenNotFoundNeedsListingBegunAfterDelete(t *testing.T) {
	for _, verb := range []cloudfake.Verb{cloudfake.DeleteServer, cloudfake.GetServer} {
		t.Run(string(verb), func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(), serverWith())
			h.mustReconcile()
			h.later(settleTime + time.Minute)
			h.remove()
			h.cloud.FailAlways(verb, errUnproven, false)
			if verb == cloudfake.DeleteServer {
				h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
			}
			h.mustReconcile()
			if _, ok := h.find(); !ok {
				t.Fatal("the object was released after an answer that proves nothing")
			}
			h.advance(time.Second)
			h.mustReconcile()
			if _, ok := h.find(); !ok {
				t.Fatal("the object was released without a new listing")
			}
			if verb == cloudfake.DeleteServer { // a gateway answered, and the server exists
				h.later(time.Second)
				h.mustReconcile()
				if _, ok := h.find(); !ok {
					t.Fatal("the object was released although the listing has the server")
				}
				h.cloud.Heal(cloudfake.DeleteServer)
				h.later(time.Second)
				h.mustReconcile()
			}
			h.wantServers()
			h.later(time.Second)
			h.mustReconcile()
			h.wantGone()
		})
	}
}

func TestNameProvesNothingUnlessExclusive(t *testing.T) {
	h := harnessWithLostAnswer(t, namesNotExclusive, false)
	h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", State: cloud.StateActive}) // another cluster's
	h.later(settleTime)
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "x", "rename or delete")
	equal(t, "vmId", "", h.vm().Status.VMID)

	h.remove()
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantServers("x")
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", "Orphan")
}

func TestForgedClaimProvesNothing(t *testing.T) {
	forged := func(vm *pcapi.VM) {
		vm.Finalizers = []string{pcapi.VMFinalizer}
		vm.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: "web", pcapi.ClaimedCloudAnnotation: "default"}
	}
	for name, caps := range map[string]cloud.Capabilities{"exclusive names": uniqueNamesOnly, "names not exclusive": namesNotExclusive, "no proofs": withoutProofs, "keys alone": without(cloud.Labels)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(forged))
			h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", State: cloud.StateActive})
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			if id := h.vm().Status.VMID; id == "x" {
				t.Error("the VM took over the server of somebody else")
			}
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			if !h.cloud.HasServer("x") {
				t.Error("the server of somebody else was deleted")
			}
		})
	}
}

func TestListingBegunBeforeClaimProvesNothing(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.cloud.AddServers(cloud.Server{ID: "dead", Name: "web", State: cloud.StateActive})
	h.poll()
	h.cloud.RemoveServers("dead")
	h.advance(time.Second)
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Taken, Op: "create server"}, false)
	h.alone = false
	h.mustReconcile()
	h.mustReconcile()
	equal(t, "vmId", "", h.vm().Status.VMID)
	h.later(settleTime)
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantServers("s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestRefusalKeepsClaimThatAnotherManagerMayHaveActedOn(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.alone = false
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Quota, Op: "create server", Detail: "full"}, false)
	h.mustReconcile()
	h.wantClaim("web")
	// The other manager creates the server, and stops before it records the id.
	h.cloud.AddServers(cloud.Server{ID: "s9", Name: "web", State: cloud.StateActive, CPU: 2, CreatedAt: h.now})
	h.remove()
	h.later(time.Second)
	h.mustReconcile()
	h.later(time.Second)
	h.mustReconcile()
	h.wantServers()
	h.wantGone()
}

func TestNewManagerCountsSettleTimeFromFirstObservationOfClaim(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith(withClaim))
	h.later(time.Hour)
	h.mustReconcile()
	h.wantCalls()
	h.later(settleTime / 2)
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
	h.later(settleTime)
	h.mustReconcile()
	h.wantCalls("create web")
}

// capital gives the VM a name that a cloud which normalizes names changes.
func capital(vm *pcapi.VM) { vm.Spec.VMName = "Web" }

func TestLostAnswerOnACloudThatNormalizesNames(t *testing.T) {
	lose := func(t *testing.T, committed bool, objects ...client.Object) *harness {
		h := newHarness(t, uniqueNamesOnly, append(objects, vmWith(capital))...)
		h.cloud.Normalize(true)
		h.cloud.Fail(cloudfake.CreateServer, errReset, committed)
		h.mustReconcile()
		h.wantCalls("check Web", "create Web")
		return h
	}
	t.Run("the server is found after the settle time", func(t *testing.T) {
		h := lose(t, true)
		h.later(time.Second)
		h.mustReconcile()
		h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
		h.wantCalls()
		h.later(settleTime)
		h.mustReconcile()
		h.wantCalls("check Web")
		equal(t, "vmId", "s1", h.vm().Status.VMID)
		equal(t, "name in the cloud", "web", h.vm().Status.NameInCloud)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "True Running")
		h.remove()
		h.mustReconcile()
		h.wantServers()
		h.wantGone()
	})
	t.Run("deleted before it is found: the server is deleted", func(t *testing.T) {
		h := lose(t, true)
		h.remove()
		for range 2 {
			h.later(settleTime)
			h.mustReconcile()
		}
		h.wantServers()
		h.wantGone()
	})
	t.Run("the cloud does not normalize the name: the other server is not used", func(t *testing.T) {
		h := lose(t, false)
		h.cloud.Normalize(false)
		h.cloud.AddServers(serverWith(unlabelled, withID("x")))
		h.later(settleTime)
		h.mustReconcile()
		equal(t, "vmId", "", h.vm().Status.VMID)
		h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "VM x")
		h.remove()
		h.later(settleTime)
		h.mustReconcile()
		h.wantServers("x")
	})
	t.Run("another VM has the name of the server: the server is that VM's", func(t *testing.T) {
		h := lose(t, false, other("b", createdAfter(time.Hour), withClaim))
		h.cloud.AddServers(serverWith(unlabelled, withID("x")))
		h.later(settleTime)
		h.mustReconcile()
		equal(t, "vmId", "", h.vm().Status.VMID)
		h.wantCondition(pcapi.NameCheckedCondition, "False Taken", "another VM object")
	})
}

func TestAnswerWithAnotherNameIsUsedAlthoughReadsLag(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"names": uniqueNamesOnly, "no proofs": withoutProofs} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.cloud.AddServers(serverWith(unlabelled, withID("x"), withName("tenant-web")))
			h.cloud.Hide("x") // the answer comes, and reads lag behind it
			h.cloud.Fail(cloudfake.GetServer, &cloud.Error{Kind: cloud.NotFound, Op: "get server x"}, false)
			h.cloud.AnswerCreateWith("x")
			h.mustReconcile()
			h.wantCalls("check web", "create web", "get x")
			h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
			h.later(time.Second)
			h.mustReconcile()
			equal(t, "vmId while reads lag", "", h.vm().Status.VMID)
			h.cloud.Show("x")
			h.later(time.Second)
			h.mustReconcile()
			equal(t, "vmId", "x", h.vm().Status.VMID)
			equal(t, "name in the cloud", "tenant-web", h.vm().Status.NameInCloud)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			h.remove()
			h.mustReconcile()
			h.wantServers()
			h.wantGone()
		})
	}
}

func TestServerOfAnotherNameIsNotDeletedWithoutLabels(t *testing.T) {
	h := harnessWithServer(t, uniqueNamesOnly, onRecord(func(vm *pcapi.VM) { vm.Status.NameInCloud = "web" }, deleted), serverWith(unlabelled, withName("db")))
	h.mustReconcile()
	h.wantServers("s1")
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", `"db"`, "Orphan")
	h.edit(orphaning)
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s1")
}

func TestAnswerWithServerThatExistedBeforeIsNotUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		caps cloud.Capabilities
		with []func(*cloud.Server)
	}{
		"without labels":             {caps: withoutProofs, with: []func(*cloud.Server){unlabelled}},
		"labels of another object":   {caps: everything, with: []func(*cloud.Server){func(s *cloud.Server) { s.Labels = map[string]string{"samplecontroller.k8s.io/uid": "other"} }}},
		"names that prove ownership": {caps: uniqueNamesOnly, with: []func(*cloud.Server){unlabelled}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.caps, vmWith())
			h.cloud.AddServers(serverWith(append(tc.with, withID("x"), withName("WEB"))...))
			h.poll()
			h.advance(time.Second)
			h.cloud.AnswerCreateWith("x")
			h.mustReconcile()
			equal(t, "vmId", "", h.vm().Status.VMID)
			h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "VM x")
		})
	}
}

func TestOrphanedVMWithOpenCreateReleasesItsServer(t *testing.T) {
	h := harnessWithLostAnswer(t, withoutKeys, true)
	h.cloud.Hide("s1")
	h.edit(orphaning)
	h.remove()
	h.later(time.Second)
	h.mustReconcile()
	h.vm() // it waits for the server
	h.cloud.Show("s1")
	h.later(time.Second)
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s1")
	equal(t, "labels", map[string]string{}, h.cloud.Server("s1").Labels)
}

func TestAcceptedChangeThatIsNotAppliedIsNotReady(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith(withCores(1)))
	h.cloud.Ignore(cloudfake.UpdateServer)
	for range 3 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "does not show it")
	h.cloud.Heal(cloudfake.UpdateServer)
	h.later(5 * time.Minute)
	h.mustReconcile()
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestDriftThatComesBackLaterIsNotAChangeThatWasNotApplied(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith(withCores(1)))
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	h.later(time.Hour)
	h.mustReconcile()
	h.cloud.ModifyServer("s1", withCores(1))
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	h.wantCalls("update s1", "update s1")
}

func TestOutcomeUnknownStaysWhileCloudIsUnavailable(t *testing.T) {
	h := harnessWithLostAnswer(t, withoutKeys, false)
	h.inv.MarkUnavailable("the cloud does not answer")
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable")
	h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "may have been created")
}

func TestImportPolicy(t *testing.T) {
	own := func(labels map[string]string) func(*cloud.Server) { return func(s *cloud.Server) { s.Labels = labels } }
	foreignLabels := map[string]string{
		"samplecontroller.k8s.io/uid": "uid-b", "samplecontroller.k8s.io/cluster": "cluster",
		"samplecontroller.k8s.io/namespace": "ns", "samplecontroller.k8s.io/name": "b",
	}
	tests := []struct {
		name   string
		spec   pcapi.CloudSpec
		labels map[string]string
		other  bool
		want   string
	}{
		{name: "None: refused", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone}, want: "False Rejected"},
		{name: "no policy: refused", want: "False Rejected"},
		{name: "Listed for this namespace: imported", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, Importable: []pcapi.ImportableVM{{VMID: "s1", Namespace: "ns"}}}, want: "True Running"},
		{name: "Listed for another namespace: refused", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, Importable: []pcapi.ImportableVM{{VMID: "s1", Namespace: "db"}}}, want: "False Rejected"},
		{name: "Any: imported", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, want: "True Running"},
		{name: "Any, server of an object that exists: refused", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, labels: foreignLabels, other: true, want: "False Rejected"},
		{name: "Any, server of an object that is gone: imported", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, labels: foreignLabels, want: "True Running"},
		{name: "None, server with the labels of this object: imported", labels: ownLabels, want: "True Running"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			objects := []*pcapi.VM{vmWith(importing)}
			if tc.other {
				objects = append(objects, other("b"))
			}
			h := newHarness(t, everything, objects[0])
			for _, o := range objects[1:] {
				if err := h.client.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			h.editCloud(func(c *pcapi.Cloud) { c.Spec = tc.spec })
			h.cloud.AddServers(serverWith(own(tc.labels)))
			h.later(time.Second)
			h.mustReconcile()
			h.later(time.Second)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, tc.want)
			if tc.want == "False Rejected" {
				equal(t, "vmId", "", h.vm().Status.VMID)
				h.remove()
				h.mustReconcile()
				h.wantServers("s1")
			}
		})
	}
}

func TestDeniedNamespaceCannotTakeName(t *testing.T) {
	squatter := other("b", createdAfter(-time.Hour), func(vm *pcapi.VM) { vm.Namespace = "denied" }, withClaim, func(vm *pcapi.VM) { vm.Status = pcapi.VMStatus{} })
	h := newHarness(t, uniqueNamesOnly, vmWith(), squatter,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "denied"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"allowed": "yes"}}})
	h.editCloud(func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"allowed": "yes"}}
	})
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestTenantMessagesHoldNoPlatformDetails(t *testing.T) {
	const secret = "cloud.internal.example.com:8443 uses Secret platform-credentials"
	details := map[cloud.Kind]string{}
	for _, kind := range []cloud.Kind{
		cloud.Unavailable, cloud.Unauthorized, cloud.Untrusted, cloud.Unreadable, cloud.Throttled, cloud.Taken, cloud.NotFound, cloud.NotFoundUnproven,
		cloud.Quota, cloud.KeyReused,
	} {
		details[kind] = secret
	}
	for _, kind := range []cloud.Kind{ // these quote the reason
		cloud.Rejected, cloud.Prohibited, cloud.Conflict, cloud.Busy, cloud.Failed, cloud.NeedsStop,
	} {
		details[kind] = "see https://cloud.internal.example.com:8443/errors"
	}
	for kind, detail := range details {
		for _, verb := range []cloudfake.Verb{cloudfake.CheckName, cloudfake.CreateServer} {
			t.Run(string(kind)+" "+string(verb), func(t *testing.T) {
				h := newHarness(t, everything, vmWith())
				h.cloud.FailAlways(verb, &cloud.Error{Kind: kind, Op: "call", Detail: detail}, false)
				for range 2 { // the second may remember the refusal
					h.mustReconcile()
					h.later(time.Second)
				}
				for _, c := range h.vm().Status.Conditions {
					if strings.Contains(c.Message, "example.com") || strings.Contains(c.Message, "platform-credentials") {
						t.Errorf("%s has the message %q", c.Type, c.Message)
					}
				}
			})
		}
	}
}

// A GET has shown that a new server is being deleted. Then a gateway answers the next one with 404, while listings lag
// behind the create.
func TestListingThatLagsBehindIsNoProofOfADeletion(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.cloud.SetSlow(true)
	h.mustReconcile()
	h.cloud.Finish()
	h.later(time.Second)
	h.mustReconcile()
	h.remove()
	h.mustReconcile()
	h.wantServers("s1")
	h.hideReads(errUnproven)
	for range 3 {
		h.later(2 * time.Second)
		h.mustReconcile()
	}
	if _, ok := h.find(); !ok {
		t.Fatal("the VM is released, and its server exists")
	}
	h.cloud.Finish()
	h.later(settleTime)
	h.mustReconcile()
	h.wantGone()
}
