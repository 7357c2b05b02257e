package volume_test

import (
	"context"
	"errors"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/test/volume"
)

const settleTime = time.Minute

var (
	start     = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	errKilled = errors.New("the manager was killed")
)

// moment is when a manager is killed: before or after its nth effect, counted from 1.
type moment struct {
	effect int
	after  bool
}

// world is an API server and a cloud that outlive managers, and the manager of now.
type world struct {
	t      *testing.T
	now    time.Time
	cloud  *volume.Cloud
	client client.Client

	reconciler reconcile.Reconciler
	kill       moment
	effects    int
	killed     bool
}

func newWorld(t *testing.T, kill moment) *world {
	t.Helper()
	w := &world{t: t, now: start, kill: kill}
	w.cloud = &volume.Cloud{Effect: func(change func() error) error {
		err := w.effect(change)
		if errors.Is(err, errKilled) {
			return &cloud.Error{Kind: cloud.Unavailable, Op: "call", Uncertain: true, Err: err}
		}
		return err
	}}
	scheme := runtime.NewScheme()
	volume.AddToScheme(scheme)
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	object := &volume.Volume{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "uid", Generation: 1},
		Spec:       volume.Spec{CloudRef: &pcapi.CloudReference{Name: "default"}, SizeGiB: 1},
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&volume.Volume{}).
		WithObjects(object, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return w.effect(func() error { return c.Patch(ctx, o, p, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				return w.effect(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		}).Build()
	w.startManager()
	return w
}

// effect makes a change, unless the manager is killed before it or was already.
func (w *world) effect(change func() error) error {
	if w.killed {
		return errKilled
	}
	w.effects++
	if w.effects != w.kill.effect {
		return change()
	}
	w.killed = true
	if w.kill.after {
		_ = change()
	}
	return errKilled
}

// startManager starts a manager that knows nothing of the one before.
func (w *world) startManager() {
	clock := func() time.Time { return w.now }
	directory := inventory.New(clock, "cluster")
	inv := directory.Cloud("default")
	inv.Configure(inventory.Settings{PollInterval: time.Minute, SettleTime: settleTime})
	inv.Connect(w.cloud, cloud.NewCapabilities())
	snapshot, err := inventory.List(w.t.Context(), w.cloud, clock)
	if err != nil {
		w.t.Fatal(err)
	}
	inv.Publish(snapshot)
	w.killed = false
	w.reconciler = volume.NewKind(w.cloud, external.Options{Client: w.client, Directory: directory, Clock: clock}).Reconciler(w)
}

func (w *world) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// run reconciles until the object is at rest or gone. A manager that is killed is
// followed by another.
func (w *world) run() {
	w.t.Helper()
	var last error
	for range 50 {
		result, err := w.reconciler.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "data"}})
		last = err
		if w.killed {
			w.now = w.now.Add(time.Second)
			w.startManager()
			continue
		}
		object, there := w.object()
		ready := there && meta.IsStatusConditionTrue(object.Status.Conditions, pcapi.ReadyCondition) && object.Status.ObservedGeneration == object.Generation
		if !there || (ready && object.DeletionTimestamp.IsZero()) {
			return
		}
		w.now = w.now.Add(max(result.RequeueAfter, time.Second))
	}
	object, _ := w.object()
	w.t.Fatalf("the Volume is not at rest: %+v, last error: %v", object.Status, last)
}

func (w *world) object() (*volume.Volume, bool) {
	w.t.Helper()
	object := &volume.Volume{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "data"}, object)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return object, err == nil
}

// live creates, grows and deletes the Volume, and checks the cloud after each.
func (w *world) live() {
	w.t.Helper()
	w.run()
	object, _ := w.object()
	want := volume.Disk{ID: object.Status.VolumeID, Name: "volume-uid", SizeGiB: 1}
	w.wantDisks("created", want)

	object.Spec.SizeGiB, object.Generation = 2, object.Generation+1
	if err := w.client.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	w.run()
	want.SizeGiB = 2
	w.wantDisks("grown", want)

	if err := w.client.Delete(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	w.run()
	w.wantDisks("deleted")
	if _, there := w.object(); there {
		w.t.Error("the object is still there")
	}
}

func (w *world) wantDisks(when string, want ...volume.Disk) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.cloud.Disks()); diff != "" {
		w.t.Errorf("disks once %s (-want +got):\n%s", when, diff)
	}
}

var _ reconciler.Object = &volume.Volume{}

func TestVolumeIsCreatedGrownAndDeleted(t *testing.T) {
	w := newWorld(t, moment{})
	w.live()
	if w.effects != 7 {
		t.Errorf("a life has %d effects, want 7: claim, create, status, grow, status, delete, release", w.effects)
	}
}

func TestVolumeSurvivesAKillAtEachEffect(t *testing.T) {
	undisturbed := newWorld(t, moment{})
	undisturbed.live()
	for effect := 1; effect <= undisturbed.effects; effect++ {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("%s effect %d", map[bool]string{false: "before", true: "after"}[after], effect)
			t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
				w := newWorld(t, moment{effect: effect, after: after})
				w.live()
				if w.effects < effect {
					t.Errorf("the manager was not killed: %d effects", w.effects)
				}
			})
		}
	}
}
