package vmsnapshot

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	settleTime = 2 * time.Minute
	// fraction is what a status, which has whole seconds, lacks of startTime.
	fraction = 600 * time.Millisecond
)

var (
	startTime = time.Date(2026, 3, 1, 6, 0, 0, int(fraction), time.UTC)
	withKeys  = cloud.NewCapabilities(cloud.Snapshots, cloud.Idempotency)
	plain     = cloud.NewCapabilities(cloud.Snapshots)
	errReset  = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection reset", Uncertain: true}
	key       = client.ObjectKey{Namespace: "ns", Name: "snap"}
)

// harness is a cluster, a cloud with the server s1 of VM vm, and a VMSnapshot controller.
type harness struct {
	t          *testing.T
	now        time.Time
	cloud      *cloudfake.Cloud
	caps       cloud.Capabilities
	client     client.Client
	inv        *inventory.Inventory
	reconciler *reconciler.Reconciler[*pcapi.VMSnapshot, *observation]
	// statusErr is the answer to all writes of the status; nil if they succeed.
	statusErr error
	// writes are the targets of the writes sent to the API server.
	writes  []string
	effects effects
}

func newHarness(t *testing.T, caps cloud.Capabilities, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{t: t, now: startTime, caps: caps}
	h.cloud = cloudfake.New(cloudfake.Options{Capabilities: caps, Clock: func() time.Time { return h.now }})
	h.cloud.AddServers(cloud.Server{ID: "s1", Name: "vm", State: cloud.StateActive})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&pcapi.VMSnapshot{}, &pcapi.VM{}).
		WithObjects(withDefaults(objects)...).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				h.writes = append(h.writes, "object")
				return h.effects.do(func() error { return c.Patch(ctx, o, p, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				h.writes = append(h.writes, sub)
				if h.statusErr != nil {
					return h.statusErr
				}
				return h.effects.do(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		}).Build()
	h.start()
	return h
}

// withDefaults adds the namespace and, if there is none, a Cloud.
func withDefaults(objects []client.Object) []client.Object {
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	if slices.ContainsFunc(objects, func(o client.Object) bool { _, found := o.(*pcapi.Cloud); return found }) {
		return objects
	}
	return append(objects, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
}

// start starts a manager that knows nothing of the one before.
func (h *harness) start() {
	h.t.Helper()
	clock := func() time.Time { return h.now }
	directory := inventory.New(clock, "cluster")
	h.inv = directory.Cloud("default")
	k := newKind(h.client, controller.Options{Directory: directory, Cluster: "cluster", Clock: clock, Alone: func() bool { return true }})
	h.reconciler = k.Reconciler(h)
	h.inv.Configure(inventory.Settings{PollInterval: 30 * time.Second, SettleTime: settleTime})
	h.inv.Connect(killing{h.cloud, &h.effects}, h.caps)
	h.now = h.now.Add(time.Minute)
	h.poll()
}

// poll lists the servers.
func (h *harness) poll() {
	h.t.Helper()
	snap, err := inventory.List(h.t.Context(), h.cloud, func() time.Time { return h.now })
	if err != nil {
		h.t.Fatalf("List: %v", err)
	}
	h.inv.Publish(snap)
}

func (h *harness) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func (h *harness) reconcile() ctrl.Result {
	h.t.Helper()
	result, err := h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		h.t.Fatalf("Reconcile: %v", err)
	}
	h.now = h.now.Add(time.Second)
	return result
}

// reconcileFor reconciles as often as the results ask for it, for a time.
func (h *harness) reconcileFor(d time.Duration) {
	h.t.Helper()
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(h.reconcile().RequeueAfter)
		if apierrors.IsNotFound(h.client.Get(h.t.Context(), key, &pcapi.VMSnapshot{})) {
			return
		}
	}
}

func (h *harness) delete(o client.Object) {
	h.t.Helper()
	if err := h.client.Delete(h.t.Context(), o); err != nil {
		h.t.Fatalf("Delete: %v", err)
	}
}

func (h *harness) wantCondition(kind, want string, parts ...string) {
	h.t.Helper()
	var snap pcapi.VMSnapshot
	if err := h.client.Get(h.t.Context(), key, &snap); err != nil {
		h.t.Fatalf("Get: %v", err)
	}
	c := meta.FindStatusCondition(snap.Status.Conditions, kind)
	if c == nil {
		c = &metav1.Condition{}
	}
	if got := string(c.Status) + " " + c.Reason; got != want {
		h.t.Errorf("%s=%s (%s), want %s", kind, got, c.Message, want)
	}
	for _, part := range parts {
		if !strings.Contains(c.Message, part) {
			h.t.Errorf("%s has message %q, want %q in it", kind, c.Message, part)
		}
	}
}

func (h *harness) wantGone() {
	h.t.Helper()
	if err := h.client.Get(h.t.Context(), key, &pcapi.VMSnapshot{}); !apierrors.IsNotFound(err) {
		h.t.Errorf("the object still exists: %v", err)
	}
}

// wantSnapshots checks the ids of the snapshots of server s1.
func (h *harness) wantSnapshots(want ...string) {
	h.t.Helper()
	var got []string
	for _, s := range h.cloud.Snapshots("s1") {
		got = append(got, s.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.t.Errorf("snapshots (-want +got):\n%s", diff)
	}
}

func vm(change ...func(*pcapi.VM)) *pcapi.VM {
	o := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm", UID: "vm-uid"}}
	o.Status.VMID, o.Status.Cloud, o.Status.NameInCloud = "s1", "default", "vm"
	for _, f := range change {
		f(o)
	}
	return o
}

func snapshot(change ...func(*pcapi.VMSnapshot)) *pcapi.VMSnapshot {
	o := &pcapi.VMSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "snap", UID: "uid", Generation: 1},
		Spec:       pcapi.VMSnapshotSpec{VMName: "vm"},
	}
	for _, f := range change {
		f(o)
	}
	return o
}
