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
	"sigs.k8s.io/controller-runtime/pkg/event"

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

func TestSnapshotIsCreatedAndDeletedWithFourWrites(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	if again := h.reconcile().RequeueAfter; again != recheck {
		t.Errorf("requeued after %v, want %v", again, recheck)
	}
	h.wantSnapshots("snap1")
	h.wantCondition("Ready", "True InSync")
	h.wantCondition("Created", "True Created")
	h.now = h.now.Add(recheck)
	h.reconcile()
	h.delete(snapshot())
	h.reconcile()
	h.wantSnapshots()
	h.wantGone()
	if diff := cmp.Diff([]string{"status", "object", "status", "object"}, h.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	calls := h.cloud.TakeCalls(cloudfake.ListServers)
	if n := h.cloud.Sent(cloudfake.CreateSnapshot, cloudfake.DeleteSnapshot); n != 2 {
		t.Errorf("%d changes were sent, want a create and a delete: %v", n, calls)
	}
}

func TestLostAnswerToCreateMakesNoSecondSnapshot(t *testing.T) {
	t.Parallel()
	for name, caps := range map[string]cloud.Capabilities{"with keys": withKeys, "without": plain} {
		for restarted, restart := range map[string]bool{"same manager": false, "another manager": true} {
			t.Run(name+", "+restarted, func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, caps, vm(), snapshot())
				h.cloud.Fail(cloudfake.CreateSnapshot, errReset, true)
				h.reconcile()
				h.wantCondition("Created", "False OutcomeUnknown")
				if restart {
					h.start()
				}
				h.reconcileFor(2 * settleTime)
				h.wantCondition("Ready", "True InSync")
				h.wantSnapshots("snap1")
			})
		}
	}
}

func TestDeletionAfterLostAnswerLeavesNoSnapshot(t *testing.T) {
	t.Parallel()
	h := newHarness(t, plain, vm(), snapshot())
	h.cloud.Fail(cloudfake.CreateSnapshot, errReset, true)
	h.reconcile()
	h.delete(snapshot())
	h.start()
	h.reconcileFor(2 * settleTime)
	h.wantSnapshots()
	h.wantGone()
}

// A create that takes longer than the settle time: only the end of the work of the cloud
// shows whether it made the snapshot.
func TestDeletionWaitsWhileTheCloudTakesTheSnapshot(t *testing.T) {
	t.Parallel()
	busy := &cloud.Error{Kind: cloud.Busy, Op: "call", Detail: "the cloud takes a snapshot", Uncertain: true}
	for name, caps := range map[string]cloud.Capabilities{"with keys": withKeys, "without": plain} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, caps, vm(), snapshot())
			h.cloud.Fail(cloudfake.CreateSnapshot, busy, false)
			h.reconcile()
			h.cloud.FailAlways(cloudfake.ListSnapshots, busy, false)
			h.delete(snapshot())
			h.reconcileFor(10 * settleTime)
			h.wantCondition("Ready", "False Progressing", "takes a snapshot")
			h.cloud.Heal()
			h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "late", Name: newKind(h.client, controller.Options{Cluster: "cluster"}).Record(snapshot()).Name})
			h.reconcileFor(2 * settleTime)
			h.wantSnapshots()
			h.wantGone()
		})
	}
}

func TestLostAnswerToDeletion(t *testing.T) {
	t.Parallel()
	h := newHarness(t, plain, vm(), snapshot())
	h.reconcile()
	h.delete(snapshot())
	h.cloud.Fail(cloudfake.DeleteSnapshot, errReset, true)
	h.reconcileFor(2 * settleTime)
	h.wantSnapshots()
	h.wantGone()
}

func TestNoSnapshotOfVMThatIsNotReady(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects []client.Object
		says    string
	}{
		"there is no VM":               {says: `VM "vm" does not exist`},
		"the VM has no server":         {[]client.Object{vm(func(o *pcapi.VM) { o.Status = pcapi.VMStatus{} })}, "has no server yet"},
		"the VM is being deleted":      {[]client.Object{vm(func(o *pcapi.VM) { o.Finalizers, o.DeletionTimestamp = []string{"f"}, &metav1.Time{Time: startTime} })}, "is being deleted"},
		"the VM has another server":    {[]client.Object{vm(func(o *pcapi.VM) { o.Status.VMID = "s2" })}, "has another now"},
		"the VM is only observed":      {[]client.Object{vm(func(o *pcapi.VM) { o.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly })}, "ObserveOnly"},
		"another VM of the same cloud": {[]client.Object{vm(func(o *pcapi.VM) { o.Name = "other" })}, "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snap := snapshot()
			if name == "the VM has another server" {
				snap.Status.VMID, snap.Status.Cloud = "s1", "default"
			}
			h := newHarness(t, withKeys, append(test.objects, snap)...)
			h.reconcile()
			h.wantCondition("Ready", "False VMNotReady", test.says)
			h.wantSnapshots()
			h.delete(snapshot())
			h.wantGone() // there is no claim
		})
	}
}

func TestNoSnapshotOfServerOfAnotherOwner(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cloud.NewCapabilities(cloud.Snapshots, cloud.Idempotency, cloud.Labels), vm(), snapshot())
	for _, owner := range []string{"uid-of-another", ""} {
		h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = map[string]string{inventory.UIDLabel: owner} })
		h.start()
		if again := h.reconcile().RequeueAfter; again == 0 {
			t.Error("the labels are not looked at again, which no event reports")
		}
		h.wantCondition("Ready", "False VMNotReady", "without its owner labels or name")
		h.wantSnapshots()
	}
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = map[string]string{inventory.UIDLabel: "vm-uid"} })
	h.start()
	h.reconcile()
	h.wantSnapshots("snap1")
}

func TestNoSnapshotOfServerOfAnotherNameWithoutLabels(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Name = "another" })
	h.start()
	h.reconcile()
	h.wantCondition("Ready", "False VMNotReady", "without its owner labels or name")
	h.wantSnapshots()
}

func TestNoSnapshotOfServerThatTheCloudDoesNotShow(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(func(o *pcapi.VM) { o.Status.VMID = "s7" }), snapshot())
	if again := h.reconcile().RequeueAfter; again == 0 {
		t.Error("it is not looked for again")
	}
	h.wantCondition("Ready", "False VMNotReady", "does not show the server")
}

func TestSnapshotOfServerThatIsGoneSinceTheLastListingWaits(t *testing.T) {
	t.Parallel()
	for _, kind := range []cloud.Kind{cloud.NotFound, cloud.NotFoundUnproven} {
		h := newHarness(t, withKeys, vm(), snapshot())
		h.cloud.Fail(cloudfake.CreateSnapshot, &cloud.Error{Kind: kind, Op: "create snapshot"}, false)
		if again := h.reconcile().RequeueAfter; again < time.Minute || again > 2*time.Minute {
			t.Errorf("%s: requeued after %v, want a minute or a little more", kind, again)
		}
		h.wantCondition("Ready", "False VMNotReady", `does not show the server of VM "vm"`)
		h.reconcile()
		h.wantSnapshots("snap1")
		h.wantCondition("Ready", "True InSync")
	}
}

func TestSnapshotOfLostVMStallsUntilTheServerIsBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(func(o *pcapi.VM) { o.Status.VMID, o.Status.State = "s7", pcapi.VMStateLost }), snapshot())
	h.reconcile()
	h.wantCondition("Stalled", "True VMNotReady", `VM "vm" has lost its server`)
	h.cloud.AddServers(cloud.Server{ID: "s7", Name: "vm", State: cloud.StateActive})
	h.start()
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
}

func TestProtectedSnapshotOutlivesItsMaxAge(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) {
		s.Spec.MaxAge = &metav1.Duration{Duration: 5 * time.Minute}
		s.Annotations = map[string]string{pcapi.DeletionProtectionAnnotation: "true"}
	}))
	for range 3 {
		if again := h.reconcile().RequeueAfter; again != recheck {
			t.Errorf("requeued after %v, want %v", again, recheck)
		}
		h.now = h.now.Add(recheck)
	}
	h.wantCondition("Ready", "True InSync")
	h.wantSnapshots("snap1")
}

func TestSnapshotThatGoesWithItsServerIsLost(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	h.cloud.RemoveServers("s1")
	h.now = h.now.Add(2 * settleTime)
	h.reconcile()
	h.wantCondition("Ready", "False Lost", "snapshots go with their VM")
	h.delete(snapshot())
	h.reconcileFor(settleTime)
	h.wantGone()
}

func TestSnapshotIsDeletedWhenMaxAgeIsOver(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) { s.Spec.MaxAge = &metav1.Duration{Duration: 5 * time.Minute} }))
	if again := h.reconcile().RequeueAfter; again != 5*time.Minute-fraction {
		t.Errorf("requeued after %v, want maxAge after createdTime", again)
	}
	h.reconcile()
	h.wantSnapshots("snap1")
	h.reconcileFor(10 * time.Minute)
	h.wantSnapshots()
	h.wantGone()
}

func TestWrongClockOfTheCloudDoesNotChangeMaxAge(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"slow by days": -72 * time.Hour, "fast by days": 72 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) {
				s.CreationTimestamp, s.Spec.MaxAge = metav1.NewTime(startTime), &metav1.Duration{Duration: time.Hour}
			}))
			h.reconcile()
			made := h.cloud.Snapshots("s1")[0]
			made.CreatedAt = made.CreatedAt.Add(off)
			h.cloud.SetSnapshots("s1", made)
			h.reconcileFor(45 * time.Minute)
			h.wantSnapshots("snap1")
			h.reconcileFor(45 * time.Minute)
			h.wantSnapshots()
			h.wantGone()
		})
	}
}

func TestOrphanedSnapshotStays(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot(func(s *pcapi.VMSnapshot) { s.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }))
	h.reconcile()
	h.delete(snapshot())
	h.reconcile()
	h.wantGone()
	h.wantSnapshots("snap1")
}

func TestSnapshotOfAnotherNameIsNotDeleted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	renamed := h.cloud.Snapshots("s1")[0]
	renamed.Name = "somebody-else"
	h.cloud.SetSnapshots("s1", renamed)
	h.now = h.now.Add(recheck)
	h.reconcile()
	h.wantCondition("Ready", "False Drift", "rename it in the cloud")
	h.delete(snapshot())
	h.reconcile()
	h.wantCondition("Ready", "False Blocked", "not deleted")
	h.wantSnapshots("snap1")
}

func TestSnapshotOnCloudWithoutIsUnsupported(t *testing.T) {
	t.Parallel()
	h := newHarness(t, cloud.NewCapabilities(cloud.Idempotency), vm(), snapshot())
	h.reconcile()
	h.wantCondition("Ready", "False Unsupported", `Cloud "default" has no snapshots: delete this VMSnapshot`)
	if err := h.cloud.Misuse(); err != nil {
		t.Error(err)
	}
}

// A VMSnapshot has no cloudRef.
func TestAdviceIsAboutTheVMSnapshot(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pcapi.VM, *pcapi.Cloud){
		"the Cloud does not exist": func(o *pcapi.VM, _ *pcapi.Cloud) { o.Status.Cloud = "gone" },
		"the namespace may not use it": func(_ *pcapi.VM, c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}
		},
		"the Cloud is being deleted": func(_ *pcapi.VM, c *pcapi.Cloud) {
			c.Finalizers, c.DeletionTimestamp = []string{"f"}, &metav1.Time{Time: startTime}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			machine, c := vm(), &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			change(machine, c)
			h := newHarness(t, withKeys, machine, snapshot(), c)
			h.reconcile()
			h.wantCondition("Ready", "False CloudUnavailable", "delete this VMSnapshot")
		})
	}
}

func TestMissingAndDeniedCloudLookTheSame(t *testing.T) {
	t.Parallel()
	see := func(clouds ...client.Object) pcapi.VMSnapshotStatus {
		machine := vm()
		machine.Status.Cloud = "hidden"
		h := newHarness(t, withKeys, append(clouds, machine, snapshot())...)
		h.reconcile()
		var snap pcapi.VMSnapshot
		if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(snapshot()), &snap); err != nil {
			t.Fatalf("Get: %v", err)
		}
		return snap.Status
	}
	denied := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, Spec: pcapi.CloudSpec{
		AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}},
	}}
	if diff := cmp.Diff(see(), see(denied)); diff != "" {
		t.Errorf("what reveals whether the Cloud exists (-missing +denied):\n%s", diff)
	}
}

func TestVMThatDoesNotExistIsReportedFirst(t *testing.T) {
	t.Parallel()
	none := cloud.NewCapabilities(cloud.Idempotency)
	for name, c := range map[string]*pcapi.Cloud{
		"the default Cloud does not exist":            {ObjectMeta: metav1.ObjectMeta{Name: "other"}},
		"the namespace may not use the default Cloud": {ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: pcapi.CloudSpec{AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}}}},
		"the default Cloud has no snapshots":          {ObjectMeta: metav1.ObjectMeta{Name: "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, none, snapshot(), c)
			h.reconcile()
			h.wantCondition("Ready", "False VMNotReady", `VM "vm" does not exist`)
			h.wantCondition("Stalled", " ")
		})
	}
}

func TestSnapshotOfVMThatIsOnlyObservedSinceIsDeleted(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.reconcile()
	observed := vm()
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(observed), observed); err != nil {
		t.Fatalf("Get: %v", err)
	}
	observed.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly
	if err := h.client.Update(t.Context(), observed); err != nil {
		t.Fatalf("Update: %v", err)
	}
	h.delete(snapshot())
	h.reconcile()
	h.wantSnapshots()
	h.wantGone()
}

func TestDeletionWaitsUntilTheVMIsReverted(t *testing.T) {
	requested := pcapi.VMRevertStatus{Phase: pcapi.VMRevertRequested, SnapshotName: snapshot().Name, SnapshotUID: snapshot().UID}
	for name, end := range map[string]func(*pcapi.VM){
		"it succeeds":                          func(vm *pcapi.VM) { vm.Status.Revert.Phase = pcapi.VMRevertSucceeded },
		"it fails, as when the server is gone": func(vm *pcapi.VM) { vm.Status.Revert.Phase = pcapi.VMRevertFailed },
		"another VMSnapshot is named":          func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = "another" },
		"the VM is only observed":              func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withKeys, snapshot(), vm())
			h.reconcileFor(time.Minute)
			change := func(change func(*pcapi.VM)) {
				t.Helper()
				var changed pcapi.VM
				if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(vm()), &changed); err != nil {
					t.Fatalf("Get: %v", err)
				}
				change(&changed)
				status := changed.Status
				if err := h.client.Update(t.Context(), &changed); err != nil {
					t.Fatalf("Update: %v", err)
				}
				changed.Status = status
				if err := h.client.Status().Update(t.Context(), &changed); err != nil {
					t.Fatalf("Update of the status: %v", err)
				}
			}
			change(func(vm *pcapi.VM) {
				vm.Spec.CurrentSnapshotName, vm.Status.Revert = snapshot().Name, requested.DeepCopy()
			})
			h.delete(snapshot())
			h.reconcileFor(time.Minute)
			h.wantSnapshots("snap1")
			h.wantCondition(pcapi.DeletingCondition, "True Requested", "is being reverted to this snapshot")
			change(end)
			h.reconcileFor(time.Minute)
			h.wantGone()
		})
	}
}

func TestVMEnqueuesItsVMSnapshotsWhenItsServerChanges(t *testing.T) {
	reverting := vm()
	reverting.Spec.CurrentSnapshotName = "s"
	reverting.Status.Revert = &pcapi.VMRevertStatus{Phase: pcapi.VMRevertRequested, SnapshotName: "s", SnapshotUID: "uid-s"}
	for name, end := range map[string]func(*pcapi.VM){
		"the server is lost":  func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateLost },
		"the VM has another":  func(vm *pcapi.VM) { vm.Status.VMID = "s9" },
		"it is only observed": func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly },
		"the VM is Ready": func(vm *pcapi.VM) {
			vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
		},
		"the revert ends":         func(vm *pcapi.VM) { vm.Status.Revert.Phase = pcapi.VMRevertFailed },
		"the revert is given up":  func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = "" },
		"the VM is deleted":       func(vm *pcapi.VM) { vm.DeletionTimestamp = new(metav1.Now()) },
		"another revert is begun": func(vm *pcapi.VM) { vm.Status.Revert.SnapshotUID = "uid-t" },
	} {
		after := reverting.DeepCopy()
		end(after)
		if !serverChanged.Update(event.UpdateEvent{ObjectOld: reverting, ObjectNew: after}) {
			t.Errorf("%s: no VMSnapshot is enqueued", name)
		}
	}
	if serverChanged.Update(event.UpdateEvent{ObjectOld: reverting, ObjectNew: reverting.DeepCopy()}) {
		t.Error("an event without a change enqueues VMSnapshots")
	}
}
