package faults

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// The violations are caused here, by a cloud with false answers or by hand, to show
// that the checks find them.
func TestInvariants(t *testing.T) {
	for name, check := range invariantCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(newT(t))
		})
	}
}

// createWithoutKeys runs a create on a cloud that promises idempotency and
// ignores the keys. Unless at is nil, the manager is killed at the effect by which
// the server is created.
func createWithoutKeys(t *testkit.T, at *phase) error {
	forgetful := profile{
		name: "forgetful", exact: true, mock: without(mockcloud.Labels, mockcloud.UniqueNames),
		rewrite: func(r *http.Request) { r.Header.Del("Idempotency-Key") },
	}
	s := scenario{name: "create", act: []step{create(vm)}}
	first := s.run(t.Context(), sharedEnvironment(t.T), forgetful, 0, before)
	if at == nil || first.err != nil {
		return first.err
	}
	post := slices.IndexFunc(first.effects, func(e effect) bool { return e.side == cloudSide && e.method == http.MethodPost })
	t.Expect(post).To(BeNumerically(">=", 0), "a server was created: %v", first.effects)
	return s.run(t.Context(), sharedEnvironment(t.T), forgetful, 1+post, *at).err
}

var invariantCases = map[string]func(*testkit.T){
	"the cloud ignores idempotency keys and no manager is killed: no violation": func(t *testkit.T) {
		t.Expect(createWithoutKeys(t, nil)).To(Succeed())
	},

	"the cloud ignores idempotency keys and the manager is killed before the create: no violation": func(t *testkit.T) {
		t.Expect(createWithoutKeys(t, new(before))).To(Succeed())
	},

	"the cloud ignores idempotency keys and the manager is killed after the create: two servers are found": func(t *testkit.T) {
		t.Expect(createWithoutKeys(t, new(after))).To(MatchError(And(
			ContainSubstring("2 servers of vm were alive at once"),
			ContainSubstring("vm has 2 servers at rest, not 1"),
		)))
	},

	"the cloud says falsely that the server is gone: the object that goes before it is found": func(t *testkit.T) {
		w := worldWithVM(t)
		for _, fault := range []mockcloud.Fault{
			{Match: mockcloud.Match{Method: http.MethodDelete, Path: "/servers/{id}"}, Status: http.StatusNoContent},
			{Match: mockcloud.Match{Method: http.MethodGet, Path: "/servers/{id}"}, Status: http.StatusNotFound,
				Body: `{"code":"notFound","title":"no such server","status":404}`, ContentType: "application/problem+json"},
		} {
			_, err := w.mock.AddFault(fault)
			t.Expect(err).NotTo(HaveOccurred())
		}
		t.Expect(w.perform(t.Context(), remove(vm, gone))).To(Succeed())
		t.Expect(w.verifyAtRest(t.Context())).To(MatchError(And(
			MatchRegexp("object vm is gone, and its server .* is ACTIVE"),
			ContainSubstring("vm has 1 servers at rest, not 0"),
		)))
	},

	"the finalizer is removed: the object that goes before its server is found": func(t *testkit.T) {
		w := worldWithVM(t)
		t.Expect(w.managers[0].Kill()).To(Succeed())
		strip := []byte(`{"metadata":{"finalizers":null}}`)
		t.Expect(w.env.client.Patch(t.Context(), w.object(vm), client.RawPatch(types.MergePatchType, strip))).To(Succeed())
		t.Expect(w.perform(t.Context(), remove(vm, gone))).To(Succeed())
		t.Expect(w.violations()).To(ContainElement(MatchError(MatchRegexp("object vm is gone, and its server .* is ACTIVE"))))
	},

	"a second server has the VM's labels: it is found, and the operator deletes it": func(t *testkit.T) {
		w := worldWithVM(t)
		t.Expect(w.managers[0].Kill()).To(Succeed())
		first, _ := w.mock.Server(w.recorder.vm(vm).Status.VMID)
		second, err := w.mock.PutServer(mockcloud.Server{Name: vm, Labels: first.Labels})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(w.violations()).To(ConsistOf(MatchError("vm has 2 servers at rest, not 1")))
		_, err = w.start()
		t.Expect(err).NotTo(HaveOccurred())
		t.Eventually(func() bool { _, there := w.mock.Server(second.ID); return there }).Should(BeFalse(), "the younger is deleted")
		t.Expect(w.verifyAtRest(t.Context())).To(Succeed())
	},

	"foreign servers are deleted and changed: both are found": func(t *testkit.T) {
		w := worldWithVM(t)
		for id, s := range w.foreign {
			if s.Name == taken {
				t.Expect(w.mock.DeleteServer(id)).To(Succeed())
			} else {
				t.Expect(w.mock.RenameServer(id, "renamed")).To(Succeed())
			}
		}
		t.Expect(w.violations()).To(ConsistOf(
			MatchError("foreign server foreign is gone"),
			MatchError(ContainSubstring("foreign server other was changed")),
		))
	},

	"the cloud accepts a change and does not apply it: the VM is not Ready": func(t *testkit.T) {
		ignoring := extended
		ignoring.mock.Quirks.IgnorePatch = mockcloud.PatchEcho
		w := openWorld(t, setting{profile: ignoring})
		_, err := w.start()
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(w.perform(t.Context(), create(vm))).To(Succeed())
		t.Expect(edit(vm, `{"spec":{"cpu":2}}`)(t.Context(), w)).To(Succeed())
		t.Expect(w.listings(t.Context(), 4)).To(Succeed())
		t.Consistently(w.reached, 2*pollInterval).ShouldNot(Succeed())
	},

	"the CPU use changes at every listing: the operator that does not come to rest is found": func(t *testkit.T) {
		w := worldWithVM(t)
		id := w.recorder.vm(vm).Status.VMID
		go wait.UntilWithContext(t.Context(), func(context.Context) {
			// Each listing reports another use.
			_ = w.mock.SetUtilisation(id, 10+80*(w.gate.listingCount()%2))
		}, 10*time.Millisecond)
		w.restTimeout = 2 * pollInterval
		t.Expect(w.verifyAtRest(t.Context())).To(MatchError(ContainSubstring("no rest: ")))
	},

	"a second network has the name of the Network's own: it is found, and the operator deletes it": func(t *testkit.T) {
		w := openWorld(t, setting{profile: labelled})
		_, err := w.start()
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(w.perform(t.Context(), createNetwork)).To(Succeed())
		t.Expect(w.violations()).To(BeEmpty())
		t.Expect(w.managers[0].Kill()).To(Succeed())
		t.Expect(w.putSecondNetwork()).To(Succeed())
		t.Expect(w.violations()).To(ConsistOf(MatchError(ContainSubstring("networks at rest"))))
		_, err = w.start()
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(w.verifyAtRest(t.Context())).To(Succeed())
	},

	"the finalizer of a Network is removed: the object that goes before its network is found": func(t *testkit.T) {
		w := openWorld(t, setting{profile: labelled})
		_, err := w.start()
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(w.perform(t.Context(), createNetwork)).To(Succeed())
		t.Expect(w.violations()).To(BeEmpty())
		t.Expect(w.managers[0].Kill()).To(Succeed())
		strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		t.Expect(w.env.client.Patch(t.Context(), w.networkObject(), strip)).To(Succeed())
		t.Expect(w.perform(t.Context(), removeNetwork)).To(Succeed())
		t.Expect(w.violations()).To(ContainElement(MatchError(MatchRegexp("object net is gone, and its network .* is there"))))
	},
}

func TestRecorderFindsChangesOfImmutableStatus(t *testing.T) {
	event := func(kind watch.EventType, uid, id string) watch.Event {
		return watch.Event{Type: kind, Object: &pcapi.VM{
			ObjectMeta: metav1.ObjectMeta{Name: vm, UID: types.UID(uid)}, Status: pcapi.VMStatus{VMID: id},
		}}
	}
	tests := map[string]struct {
		events []watch.Event
		want   []string
	}{
		"the id is set once and stays: no violation": {
			events: []watch.Event{event(watch.Added, "u", ""), event(watch.Modified, "u", "a"), event(watch.Modified, "u", "a"), event(watch.Deleted, "u", "a")},
		},
		"the id changes: a violation": {
			events: []watch.Event{event(watch.Added, "u", "a"), event(watch.Modified, "u", "b")},
			want:   []string{`status.vmId of vm was a and became "b"`},
		},
		"the id is removed: a violation": {
			events: []watch.Event{event(watch.Added, "u", "a"), event(watch.Modified, "u", "")},
			want:   []string{`status.vmId of vm was a and became ""`},
		},
		"another object of the same name has another id: no violation": {
			events: []watch.Event{event(watch.Added, "u", "a"), event(watch.Deleted, "u", "a"), event(watch.Added, "v", "b")},
		},
		"the watch breaks: a violation": {
			events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Message: "too old"}}},
			want:   []string{"the watch of VMs broke: too old"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(func(*pcapi.VM) string { return "" })
			for _, e := range tt.events {
				r.observe(e)
			}
			if diff := cmp.Diff(tt.want, r.violations()); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
