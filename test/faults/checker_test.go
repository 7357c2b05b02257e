package faults

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// What has to be found wrong is brought about here, by a cloud that lies or by
// hand: a check that cannot fail is worthless.
var _ = Describe("The check of the invariants", func() {
	It("finds two servers of one VM, made on a cloud that promises idempotency and does not keep it", func(ctx SpecContext) {
		forgetful := profile{
			name: "forgetful", exact: true, mock: without(mockcloud.Labels, mockcloud.UniqueNames),
			bend: func(r *http.Request) { r.Header.Del("Idempotency-Key") },
		}
		const post = 2
		s := scenario{name: "create", act: []step{create(vm)}}
		Expect(s.run(ctx, shared, forgetful, 0, before).err).To(Succeed(), "nothing is wrong without a kill")
		Expect(s.run(ctx, shared, forgetful, post, before).err).To(Succeed(), "nor if the create never arrived")
		Expect(s.run(ctx, shared, forgetful, post, after).err).To(MatchError(And(
			ContainSubstring("2 servers of vm were alive at once"),
			ContainSubstring("vm has 2 servers at rest, not 1"),
		)))
	})

	It("finds an object that goes before its server, because the cloud says that it is gone", func(ctx SpecContext) {
		w := alive(ctx)
		for _, lie := range []mockcloud.Fault{
			{Match: mockcloud.Match{Method: http.MethodDelete, Path: "/servers/{id}"}, Status: http.StatusNoContent},
			{Match: mockcloud.Match{Method: http.MethodGet, Path: "/servers/{id}"}, Status: http.StatusNotFound,
				Body: `{"code":"notFound","title":"no such server","status":404}`, ContentType: "application/problem+json"},
		} {
			_, err := w.mock.AddFault(lie)
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(w.take(ctx, remove(vm, gone))).To(Succeed())
		Expect(w.settled(ctx)).To(MatchError(And(
			MatchRegexp("object vm is gone, and its server .* is ACTIVE"),
			ContainSubstring("vm has 1 servers at rest, not 0"),
		)))
	})

	It("finds an object that goes before its server, because somebody stripped the finalizer", func(ctx SpecContext) {
		w := alive(ctx)
		Expect(w.managers[0].kill()).To(Succeed())
		strip := []byte(`{"metadata":{"finalizers":null}}`)
		Expect(w.lab.client.Patch(ctx, w.object(vm), client.RawPatch(types.MergePatchType, strip))).To(Succeed())
		Expect(w.take(ctx, remove(vm, gone))).To(Succeed())
		Expect(w.violations()).To(ContainElement(MatchError(MatchRegexp("object vm is gone, and its server .* is ACTIVE"))))
	})

	It("finds a second server with the VM's labels at rest; and the operator removes it", func(ctx SpecContext) {
		w := alive(ctx)
		Expect(w.managers[0].kill()).To(Succeed())
		first, _ := w.mock.Server(w.recorder.vm(vm).Status.VMID)
		second, err := w.mock.PutServer(mockcloud.Server{Name: vm, Labels: first.Labels})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.violations()).To(ConsistOf(MatchError("vm has 2 servers at rest, not 1")))
		_, err = w.start()
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() bool { _, there := w.mock.Server(second.ID); return there }).Should(BeFalse(), "the younger is removed")
		Expect(w.settled(ctx)).To(Succeed())
	})

	It("finds that a stranger's server was deleted, and that another was changed", func(ctx SpecContext) {
		w := alive(ctx)
		for id, s := range w.strangers {
			if s.Name == taken {
				Expect(w.mock.DeleteServer(id)).To(Succeed())
			} else {
				Expect(w.mock.RenameServer(id, "renamed")).To(Succeed())
			}
		}
		Expect(w.violations()).To(ConsistOf(
			MatchError("the stranger's server stranger is gone"),
			MatchError(ContainSubstring("the stranger's server forsaken was changed")),
		))
	})

	It("finds a Network that goes before its network, and a second network of its name; and the operator removes it", func(ctx SpecContext) {
		w := openWorld(ctx, setting{profile: labelled})
		_, err := w.start()
		Expect(err).NotTo(HaveOccurred())
		Expect(w.take(ctx, createNetwork)).To(Succeed())
		Expect(w.violations()).To(BeEmpty())
		Expect(w.managers[0].kill()).To(Succeed())
		Expect(w.strayNetwork()).To(Succeed())
		Expect(w.violations()).To(ConsistOf(MatchError(ContainSubstring("networks at rest"))))
		_, err = w.start()
		Expect(err).NotTo(HaveOccurred())
		Expect(w.settled(ctx)).To(Succeed())

		Expect(w.managers[1].kill()).To(Succeed())
		strip := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		Expect(w.lab.client.Patch(ctx, w.networkObject(), strip)).To(Succeed())
		Expect(w.take(ctx, removeNetwork)).To(Succeed())
		Expect(w.violations()).To(ContainElement(MatchError(MatchRegexp("object net is gone, and its network .* is there"))))
	})

	It("finds an operator that does not come to rest", func(ctx SpecContext) {
		w := alive(ctx)
		id := w.recorder.vm(vm).Status.VMID
		go wait.UntilWithContext(ctx, func(context.Context) {
			// Each listing tells of another use.
			_ = w.mock.SetUtilisation(id, 10+80*(w.gate.listingsSoFar()%2))
		}, 10*time.Millisecond)
		w.patience = 2 * pollInterval
		Expect(w.settled(ctx)).To(MatchError(ContainSubstring("no rest: ")))
	})
})

// alive is a world with one VM that is well.
func alive(ctx context.Context) *world {
	GinkgoHelper()
	w := openWorld(ctx, setting{profile: extended})
	_, err := w.start()
	Expect(err).NotTo(HaveOccurred())
	Expect(w.take(ctx, create(vm))).To(Succeed())
	Expect(w.violations()).To(BeEmpty())
	return w
}

func TestRecorderFindsAChangeOfWhatMustNotChange(t *testing.T) {
	seen := func(kind watch.EventType, uid, id string) watch.Event {
		return watch.Event{Type: kind, Object: &v1alpha1.VM{
			ObjectMeta: metav1.ObjectMeta{Name: vm, UID: types.UID(uid)}, Status: v1alpha1.VMStatus{VMID: id},
		}}
	}
	tests := map[string]struct {
		events []watch.Event
		want   []string
	}{
		"an id that is set once and stays is well": {
			events: []watch.Event{seen(watch.Added, "u", ""), seen(watch.Modified, "u", "a"), seen(watch.Modified, "u", "a"), seen(watch.Deleted, "u", "a")},
		},
		"an id that becomes another is not, for it pointed to a server": {
			events: []watch.Event{seen(watch.Added, "u", "a"), seen(watch.Modified, "u", "b")},
			want:   []string{`status.vmId of vm was a and became "b"`},
		},
		"an id that is lost is not": {
			events: []watch.Event{seen(watch.Added, "u", "a"), seen(watch.Modified, "u", "")},
			want:   []string{`status.vmId of vm was a and became ""`},
		},
		"another object of the same name may have another id": {
			events: []watch.Event{seen(watch.Added, "u", "a"), seen(watch.Deleted, "u", "a"), seen(watch.Added, "v", "b")},
		},
		"a watch that breaks leaves a hole in the record": {
			events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Message: "too old"}}},
			want:   []string{"the watch of VMs broke: too old"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(func(*v1alpha1.VM) string { return "" })
			for _, event := range tt.events {
				r.see(event)
			}
			if diff := cmp.Diff(tt.want, r.violations()); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
