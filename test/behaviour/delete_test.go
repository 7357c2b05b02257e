package behaviour_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// deletedByKubectl returns a case of the cloud's effects when kubectl delete
// returns, and of the VM's events.
func deletedByKubectl(options mockcloud.Options, effects []mockcloud.Op, events []string) func(*T) {
	return func(t *T) {
		f := newFixture(t, options)
		vm := f.readyVM("web")

		kubectl(t, "", "delete", "vm", "web", "--namespace", f.namespace)

		t.Expect(f.effects()).To(Equal(effects))
		t.Expect(f.serversNamed("web")).To(BeEmpty())
		t.Expect(isGone(vm)(t.Context())).To(BeTrue())
		t.Eventually(eventReasons(vm)).Should(beEventsOfDeletion(events))
	}
}

// beEventsOfDeletion matches the events of an object whose last one reports the end of its deletion. A slow machine also
// reports a deletion that takes long.
func beEventsOfDeletion(events []string) types.GomegaMatcher {
	return Or(Equal(events), Equal(slices.Insert(slices.Clone(events), len(events)-1, "Requested")))
}

// deletedAcross returns a case of a deletion that begins in an outage. outage
// returns a function that ends it.
func deletedAcross(outage func(*fixture) (end func())) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		end := outage(f)

		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Deleting", metav1.ConditionTrue, "WaitingForCloud"),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"),
		))
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		t.Expect(f.serversNamed("web")).To(HaveLen(1))

		end()
		touch(t, f.object)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
	}
}

// deletedAgainst returns a case of a deletion that the cloud does not confirm,
// because so many DELETE calls meet a fault.
func deletedAgainst(times int, fault mockcloud.Fault) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		fault.Match = mockcloud.Match{Method: "DELETE", Count: times}
		f.addFault(fault)

		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
	}
}

// deletedSoon returns a case of a VM on a core cloud that is deleted as soon as it is Ready or, if the cloud accepts the
// deletion with 202, listed. It does not end because the settle time has passed.
func deletedSoon(quirks mockcloud.Quirks, accepts bool) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core, Quirks: quirks}, func(c *pcapi.Cloud) {
			c.Spec.SettleTime.Duration = time.Hour
			if !accepts {
				c.Spec.PollInterval.Duration = time.Hour // no listing is due but the one that the deletion waits for
			}
		})
		vm := f.readyVM("web")
		if accepts {
			f.waitForPolls(3) // the third begins once the operator has the second
			f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "DELETE"}, Status: 202, EmptyBody: true, Answer: mockcloud.After})
		}
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
		t.Expect(f.CountCalls("DELETE", "/servers/{id}")).To(Equal(1))
	}
}

// refusedDeletion deletes an object whose deletion the cloud refuses for a while.
func refusedDeletion(path string, fault mockcloud.Fault, create func(*fixture) client.Object) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		obj := create(f)
		fault.Match = mockcloud.Match{Method: "DELETE", Path: path}
		refused := f.addFault(fault)
		deleteObject(t, obj)
		t.Eventually(func() string {
			c := meta.FindStatusCondition(get(t, obj).(interface{ GetConditions() []metav1.Condition }).GetConditions(), "Deleting")
			if c == nil {
				return ""
			}
			return c.Message
		}).Should(MatchRegexp("; tried again after [1-9].*s, then at growing intervals of at most 2m0s, or at once when the annotation .*reconcile-requested-at changes"))
		t.Expect(f.RemoveFault(refused)).To(Succeed())
		t.Eventually(isGone(obj)).Should(BeTrue())
	}
}

func TestRefusedDeletionIsTriedAgainSoonAndSaysSo(t *testing.T) {
	all := cases{}
	for kind, of := range map[string]struct {
		path   string
		create func(*fixture) client.Object
	}{
		"VM":      {"/servers/*", func(f *fixture) client.Object { return f.readyVM("web") }},
		"Network": {"/networks/*", func(f *fixture) client.Object { return f.readyNetwork("net") }},
		"VMSnapshot": {"/servers/*/snapshots/*", func(f *fixture) client.Object {
			f.readyVM("web")
			snap := f.createSnapshot()
			f.t.Eventually(latest(snap)).Should(testkit.BeReady())
			return snap
		}},
	} {
		for name, fault := range map[string]mockcloud.Fault{
			"the right is lacking":        {Status: 403, ContentType: "application/problem+json", Body: `{"code":"forbidden","detail":"no right to delete"}`},
			"403 without a code":          {Status: 403},
			"it is locked":                {Status: 423, ContentType: "application/problem+json", Body: `{"detail":"the server is locked"}`},
			"a conflict":                  {Status: 409},
			"a refusal that sounds final": {Status: 400, ContentType: "application/problem+json", Body: `{"code":"invalid","detail":"not now"}`},
		} {
			all[kind+", "+name] = refusedDeletion(of.path, fault, of.create)
		}
	}
	all.run(t)
}

// backupFinalizer is the finalizer of another controller.
const backupFinalizer = "example.com/backup"

// backups are the annotations of that controller.
var backups = map[string]string{"example.com/backup": "daily", "example.com/backup-to": "here"}

// keepByAnother adds the finalizer and the annotations of another controller to an object.
func keepByAnother[O client.Object](t *T, object O) {
	t.Helper()
	edit(t, object, func(o O) {
		o.SetFinalizers(append(o.GetFinalizers(), backupFinalizer))
		annotations := maps.Clone(o.GetAnnotations())
		maps.Copy(annotations, backups)
		o.SetAnnotations(annotations)
	})
}

// beKeptByAnother matches an object that the operator has released, for a reason, and that the finalizer of another controller keeps.
func beKeptByAnother(reason string, message ...string) types.GomegaMatcher {
	return SatisfyAll(
		testkit.HaveCondition("Ready", metav1.ConditionFalse, reason, append(message, "; finalizers of other controllers keep this object")...),
		testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested"),
		Not(testkit.HaveCondition("Reconciling", "", "")), Not(testkit.HaveCondition("Stalled", "", "")),
		HaveField("Finalizers", Equal([]string{backupFinalizer})), HaveField("Annotations", Equal(backups)),
	)
}

// keptByAnother returns a case of an object that the finalizer of another controller keeps when the operator has done with it.
func keptByAnother[O client.Object](create func(*fixture) O, is types.GomegaMatcher, effects []mockcloud.Op, events ...string) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		object := create(f)
		keepByAnother(t, object)
		deleteObject(t, object)
		t.Eventually(latest(object)).Should(is)

		sent := f.CountCalls("DELETE", "") + f.CountCalls("PATCH", "")
		asked := edit(t, object, func(o O) { o.SetAnnotations(map[string]string{pcapi.ReconcileRequestedAtAnnotation: "now"}) })
		f.waitForPolls(3)
		t.Expect(get(t, object)).To(HaveField("ObjectMeta.ResourceVersion", asked.GetResourceVersion()), "nothing is written to it any more")
		t.Expect(f.CountCalls("DELETE", "")+f.CountCalls("PATCH", "")).To(Equal(sent), "nothing is sent again")
		t.Eventually(eventReasons(object)).Should(beEventsOfDeletion(events))

		edit(t, object, func(o O) { o.SetFinalizers(nil) })
		t.Expect(isGone(object)(t.Context())).To(BeTrue())
		t.Expect(f.effects()).To(Equal(effects))
	}
}

// keptMember returns a case of a member of a group that the finalizer of another controller keeps when its server is gone.
func keptMember(end func(*fixture, *pcapi.VM)) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 2)
		kept := &vms[0]
		keepByAnother(t, kept)
		end(f, kept)
		isKept := SatisfyAll(beKeptByAnother("Deleted"), HaveField("Status.State", pcapi.VMStateDeleting))
		t.Eventually(latest(kept)).Should(isKept)
		t.Eventually(membersOf(g)).Should(SatisfyAll(HaveLen(2), Not(ContainElement(HaveField("Name", kept.Name)))))
		size := func(n int32) {
			t.Helper()
			t.Eventually(latest(g)).Should(SatisfyAll(
				testkit.HaveCondition("Ready", metav1.ConditionTrue, "Reconciled"),
				HaveField("Status.ObservedGeneration", g.Generation), HaveField("Status.Phase", pcapi.VmGroupRunning),
				HaveField("Status.Replicas", n), HaveField("Status.ReadyReplicas", n), HaveField("Status.UpdatedReplicas", n),
			))
		}
		// The status may still be that of the group with the member that ends.
		t.Eventually(f.effects).Should(HaveExactElements(mockcloud.OpCreate, mockcloud.OpCreate, mockcloud.OpDelete, mockcloud.OpCreate))
		size(2)

		g = edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Replicas = new(int32(3)) })
		size(3)
		g = edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "debian-14" })
		size(3)
		t.Expect(f.Servers()).To(SatisfyAll(HaveLen(3), HaveEach(HaveField("Template", "debian-14"))))
		t.Expect(get(t, kept)).To(isKept)

		deleteObject(t, g)
		t.Eventually(isGone(g)).Should(BeTrue(), "the group does not wait for the other controller")
		t.Eventually(f.Servers).Should(BeEmpty())
		t.Expect(get(t, kept)).To(isKept)
	}
}

func TestObjectThatAnotherFinalizerKeeps(t *testing.T) {
	isDeleting := HaveField("Status.State", pcapi.VMStateDeleting)
	cases{
		"VM whose server is gone: it is Deleting, and neither Running nor Ready": keptByAnother(func(f *fixture) *pcapi.VM { return f.readyVM("web") },
			SatisfyAll(beKeptByAnother("Deleted", " is gone from Cloud "), isDeleting, HaveField("Status.CPUUtilization", BeNil()), HaveField("Status.Host", BeEmpty())),
			[]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}, "Created", "Deleted"),
		"VM that was Lost: it is Deleting": keptByAnother(func(f *fixture) *pcapi.VM {
			vm := f.readyVM("web")
			loseServer(f, vm)
			f.t.Eventually(latest(vm)).Should(HaveField("Status.State", pcapi.VMStateLost))
			return vm
		}, SatisfyAll(beKeptByAnother("Deleted", " is gone from Cloud "), isDeleting), []mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}, "Created", "Lost", "Deleted"),
		"VM whose server stays: it is Deleting, and its status says that the server stays": keptByAnother(func(f *fixture) *pcapi.VM {
			return f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
		}, SatisfyAll(beKeptByAnother("Orphaned", " stays on Cloud "), isDeleting), []mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate}, "Created", "Orphaned"),
		"Network: it is not Ready": keptByAnother(func(f *fixture) *pcapi.Network { return f.readyNetwork("net") },
			beKeptByAnother("Deleted", " is gone from Cloud "), []mockcloud.Op{mockcloud.OpCreateNetwork, mockcloud.OpDeleteNetwork}, "Created", "Deleted"),
		"VMSnapshot: it is not Ready": keptByAnother(func(f *fixture) *pcapi.VMSnapshot {
			f.readyVM("web")
			snap := f.createSnapshot()
			f.t.Eventually(latest(snap)).Should(testkit.BeReady())
			return get(f.t, snap)
		}, beKeptByAnother("Deleted", " is gone from Cloud "), []mockcloud.Op{mockcloud.OpCreate, mockcloud.OpCreateSnapshot, mockcloud.OpDeleteSnapshot}, "Created", "Deleted"),

		"member that a user deletes: the group creates another at once, and neither waits for it nor counts it": keptMember(func(f *fixture, vm *pcapi.VM) { deleteObject(f.t, vm) }),
		"member that is Lost: the group creates another at once, and neither waits for it nor counts it":        keptMember(loseServer),
	}.run(t)
}

// loseServer deletes the server of a VM in the cloud.
func loseServer(f *fixture, vm *pcapi.VM) {
	f.t.Helper()
	f.t.Expect(f.DeleteServer(vm.Status.VMID)).To(Succeed())
}

func TestDeleteVM(t *testing.T) { deleteCases.run(t) }

var deleteCases = cases{
	"kubectl delete returns: the server is gone": deletedByKubectl(mockcloud.Options{},
		[]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}, []string{"Created", "Deleted"}),
	"kubectl delete returns on a core cloud: the server is gone": deletedByKubectl(mockcloud.Options{Profile: mockcloud.Core},
		[]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}, []string{"Created", "Deleted"}),
	"kubectl delete returns where a deletion takes time: the server is gone": deletedByKubectl(mockcloud.Options{
		Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * testkit.PollInterval)},
	}, []mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete, mockcloud.OpGone}, []string{"Created", "Deleted"}),

	"core cloud, 404 without a code, deleted once it is Ready: it is gone with the next listing":           deletedSoon(mockcloud.Quirks{NoCodes: true}, false),
	"core cloud, 404 without a body, deleted once it is Ready: it is gone with the next listing":           deletedSoon(mockcloud.Quirks{Plain404: "empty"}, false),
	"core cloud, 202 without a state, deleted once it was listed: it is gone with the next listing":        deletedSoon(mockcloud.Quirks{}, true),
	"core cloud, 202 and 404 without a code, deleted once it was listed: it is gone with the next listing": deletedSoon(mockcloud.Quirks{NoCodes: true}, true),

	"the cloud refuses every call: the deletion waits and completes when the cloud is back": deletedAcross(func(f *fixture) func() {
		f.SetUnavailable(true)
		return func() { f.SetUnavailable(false) }
	}),
	"nothing listens at the cloud's address: the deletion waits and completes when the cloud is back": deletedAcross(func(f *fixture) func() {
		f.Disconnect()
		return func() { f.reconnect() }
	}),

	"the answer is lost: the server is deleted once":                     deletedAgainst(4, mockcloud.Fault{Reset: true, Answer: mockcloud.After}),
	"the request is lost: the server is deleted once":                    deletedAgainst(4, mockcloud.Fault{Reset: true}),
	"the cloud answers 500 after it deleted: the server is deleted once": deletedAgainst(4, mockcloud.Fault{Status: 500, Answer: mockcloud.After}),
	"the cloud answers 502: the server is deleted once":                  deletedAgainst(4, mockcloud.Fault{Status: 502}),
	"the server is busy for a while: the server is deleted once":         deletedAgainst(2, mockcloud.Fault{Status: 409, Body: `{"code":"invalidState"}`}),
	"a proxy answers 404 without a cloud behind it: the server is deleted once": deletedAgainst(2, mockcloud.Fault{
		Status: 404, ContentType: "text/html", Body: "<html>no backend</html>",
	}),

	"a create is in progress: its late server is deleted": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, settlingLate)
		held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers"}, Hold: true})
		vm := f.createVM("web")
		t.Expect(f.WaitHeld(t.Context(), held, 1)).To(Succeed())

		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested"))
		t.Expect(f.RemoveFault(held)).To(Succeed())

		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.effects()).To(HaveExactElements(mockcloud.OpCreate, mockcloud.OpDelete))
	},

	"the cloud takes longer than five seconds: columns, condition and an event say what the deletion waits for": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(longDeletion + 5*time.Second)}})
		vm := f.readyVM("web")
		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(SatisfyAll(
			testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested", "the cloud is deleting VM "+vm.Status.VMID),
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "Requested"), HaveField("Status.State", pcapi.VMStateDeleting),
		))
		columns := table(t, kubectl(t, "", "get", "vm", "web", "--namespace", f.namespace, "-o", "wide"))[1]
		t.Expect(columns[2]).To(Equal("Deleting"), "STATE")
		t.Expect(columns[len(columns)-1]).To(MatchRegexp(`^\d+s$`), "DELETING, the time since the deletion")

		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Eventually(eventReasons(vm)).Should(Equal([]string{"Created", "Requested", "Deleted"}))
		t.Expect(f.effects()).To(HaveExactElements(mockcloud.OpCreate, mockcloud.OpDelete, mockcloud.OpGone))
	},

	"an object of the same name is created: only its own server is left": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(testkit.PollInterval)}})
		old := f.readyVM("web")

		deleteObject(t, old)
		t.Eventually(isGone(old)).Should(BeTrue())
		fresh := f.readyVM("web")

		t.Expect(fresh.UID).NotTo(Equal(old.UID))
		t.Expect(fresh.Status.VMID).NotTo(Equal(old.Status.VMID))
		t.Expect(f.serversNamed("web")).To(Equal([]string{fresh.Status.VMID}))
	},

	"the server is gone already: the object is deleted at once": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		t.Expect(f.DeleteServer(vm.Status.VMID)).To(Succeed())

		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
	},

	"the Cloud never existed: the object is deleted at once": func(t *T) {
		vm := testkit.VM(newNamespace(t, nil), "web", func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "cloud-nowhere"} })
		t.Expect(env.Client.Create(t.Context(), vm)).To(Succeed())
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))

		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
	},

	"the finalizer was removed: it is put back and the server is deleted before the object": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		finalizers := vm.Finalizers
		t.Expect(finalizers).NotTo(BeEmpty())
		f.waitForPolls(2)

		edit(t, vm, func(vm *pcapi.VM) { vm.Finalizers = nil })
		t.Eventually(latest(vm)).Should(HaveField("Finalizers", Equal(finalizers)))

		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.serversNamed("web")).To(BeEmpty())
	},
}
