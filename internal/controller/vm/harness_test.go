package vm

import (
	"context"
	"errors"
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
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	setup "github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The Cloud of every world.
const (
	pollInterval = 30 * time.Second
	settleTime   = 2 * time.Minute

	// quiet and patience are what internal/external waits before the status reports
	// a deletion under way and a cloud that was not listed yet.
	quiet    = 30 * time.Second
	patience = 5 * time.Second
)

var (
	errReset     = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection reset", Uncertain: true}
	errRefused   = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection refused"}
	errThrottled = &cloud.Error{Kind: cloud.Throttled, Op: "call", Detail: "too many requests", RetryAfter: 7 * time.Second}
)

// world is a cluster and a cloud, and a VM controller between them.
type world struct {
	t         testing.TB
	now       time.Time
	cloud     *cloudfake.Cloud
	client    client.Client
	directory *inventory.Directory
	inv       *inventory.Inventory
	kind      *kind
	runs      *reconciler.Reconciler[*v1alpha1.VM, *observation]

	// woken are the names of the VMs that the inventory woke.
	woken []string
	// writes are what was sent to the API server: object or status.
	writes []string
	events []string
	// refuse answers the next writes to object or status.
	refuse map[string][]error
}

// newWorld returns a world with a Cloud that was listed, long after the start.
func newWorld(t testing.TB, caps cloud.Capabilities, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, now: dawn, refuse: map[string][]error{}}
	w.cloud = cloudfake.New(cloudfake.Options{Capabilities: caps, Clock: w.Now})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	objects = append(objects, &v1alpha1.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.VM{})
	if err := addIndexes(t.Context(), indexer(func(o client.Object, field string, keys client.IndexerFunc) { builder.WithIndex(o, field, keys) })); err != nil {
		t.Fatalf("addIndexes: %v", err)
	}
	w.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.sent("object", func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.sent(sub, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}).Build()
	w.start()
	w.connect()
	w.advance(time.Hour)
	w.poll()
	w.advance(time.Second)
	w.woken = nil
	t.Cleanup(func() {
		if err := w.cloud.Misuse(); err != nil {
			t.Errorf("a call that the cloud cannot serve: %v", err)
		}
	})
	return w
}

type indexer func(o client.Object, field string, keys client.IndexerFunc)

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i(o, field, keys)
	return nil
}

func (w *world) sent(to string, forward func() error) error {
	w.writes = append(w.writes, to)
	if queue := w.refuse[to]; len(queue) > 0 {
		w.refuse[to] = queue[1:]
		if queue[0] != nil {
			return queue[0]
		}
	}
	return forward()
}

func (w *world) Now() time.Time { return w.now }

func (w *world) Eventf(_, _ runtime.Object, level, reason, _, _ string, _ ...any) {
	w.events = append(w.events, level+" "+reason)
}

// start begins a new process: of what came before, only the API server and the
// cloud know.
func (w *world) start() {
	w.directory = inventory.New(w.Now)
	w.directory.Subscribe(func(news inventory.Event) {
		for _, ref := range news.Refs {
			w.woken = append(w.woken, ref.Name)
		}
	})
	w.inv = w.directory.Cloud("default")
	w.kind = newKind(w.client, setup.Options{Directory: w.directory, Cluster: "cluster", Clock: w.Now})
	w.runs = w.kind.Reconciler(w)
}

// connect has the cloud reached, as the Cloud's controller does, and listed.
func (w *world) connect() {
	w.inv.Configure(inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime, UtilizationStep: 1})
	w.inv.Connect(w.cloud, w.cloud.Can())
	w.poll()
}

func (w *world) poll() {
	w.t.Helper()
	w.inv.Polling()
	snap, err := inventory.List(w.t.Context(), w.cloud, w.Now)
	if err != nil {
		w.t.Fatalf("List: %v", err)
	}
	w.inv.Publish(snap)
}

func (w *world) advance(d time.Duration) { w.now = w.now.Add(d) }

// later lets time pass and lists the cloud.
func (w *world) later(d time.Duration) {
	w.advance(d)
	w.poll()
}

func (w *world) pass() (ctrl.Result, error) {
	return w.runs.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
}

func (w *world) mustPass() ctrl.Result {
	w.t.Helper()
	result, err := w.pass()
	if err != nil {
		w.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// find returns the VM as it is stored, and whether it is.
func (w *world) find() (*v1alpha1.VM, bool) {
	w.t.Helper()
	vm := &v1alpha1.VM{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, vm)
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	if err != nil {
		w.t.Fatalf("Get: %v", err)
	}
	return vm, true
}

func (w *world) vm() *v1alpha1.VM {
	w.t.Helper()
	vm, ok := w.find()
	if !ok {
		w.t.Fatal("the VM is gone")
	}
	return vm
}

// edit changes the VM as a user does.
func (w *world) edit(change func(*v1alpha1.VM)) {
	w.t.Helper()
	vm := w.vm()
	change(vm)
	vm.Generation++
	if err := w.client.Update(w.t.Context(), vm); err != nil {
		w.t.Fatalf("Update: %v", err)
	}
}

func (w *world) remove() {
	w.t.Helper()
	if err := w.client.Delete(w.t.Context(), w.vm()); err != nil {
		w.t.Fatalf("Delete: %v", err)
	}
}

// says returns a condition of the VM as "Status Reason", and its message.
func (w *world) says(kind string) (string, string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.vm().Status.Conditions, kind)
	if c == nil {
		return "", ""
	}
	return string(c.Status) + " " + c.Reason, c.Message
}

func (w *world) wantSays(kind, want string, parts ...string) {
	w.t.Helper()
	got, message := w.says(kind)
	if got != want {
		w.t.Errorf("%s=%s (%s), want %s", kind, got, message, want)
	}
	for _, part := range parts {
		if !strings.Contains(message, part) {
			w.t.Errorf("%s says %q, want %q in it", kind, message, part)
		}
	}
}

func (w *world) wantCalls(want ...string) {
	w.t.Helper()
	equal(w.t, "calls", want, w.cloud.TakeCalls(cloudfake.ListServers))
}

func (w *world) wantServers(want ...string) {
	w.t.Helper()
	equal(w.t, "servers in the cloud", want, w.cloud.ServerIDs())
}

// wantAgain allows for the tenth that spreads load.
func (w *world) wantAgain(want time.Duration, got ctrl.Result) {
	w.t.Helper()
	if got.RequeueAfter < want || got.RequeueAfter > want+want/10 {
		w.t.Errorf("again after %v, want %v to %v", got.RequeueAfter, want, want+want/10)
	}
}

func (w *world) wantWoken(want ...string) {
	w.t.Helper()
	equal(w.t, "woken", want, w.woken)
	w.woken = nil
}

func (w *world) wantGone() {
	w.t.Helper()
	if vm, ok := w.find(); ok {
		w.t.Errorf("the VM is still there, with finalizers %v", vm.Finalizers)
	}
}

func (w *world) wantClaim(want string) {
	w.t.Helper()
	vm := w.vm()
	got := ""
	if slices.Contains(vm.Finalizers, v1alpha1.VMFinalizer) {
		got = vm.Annotations[v1alpha1.ClaimedNameAnnotation]
	}
	equal(w.t, "claimed name", want, got)
	if _, left := vm.Annotations[v1alpha1.ClaimedNameAnnotation]; left && got == "" {
		w.t.Error("an annotation of a claim is left behind")
	}
}

func ctrlKey(name string) client.ObjectKey { return client.ObjectKey{Name: name} }

var errAPIAway = errors.New("the API server is away")

// onRecord returns the VM with server s1 recorded and claimed.
func onRecord(change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	vm := vmWith(recorded, func(vm *v1alpha1.VM) {
		vm.Finalizers = []string{v1alpha1.VMFinalizer}
		vm.Annotations = map[string]string{v1alpha1.ClaimedNameAnnotation: "web"}
	})
	for _, f := range change {
		f(vm)
	}
	return vm
}

// other returns another VM object.
func other(name string, change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	vm := vmWith(change...)
	vm.Name, vm.UID = name, types.UID("uid-"+name)
	return vm
}

func equal(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
