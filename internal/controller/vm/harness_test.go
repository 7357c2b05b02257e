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

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The settings of the Cloud of every harness.
const (
	pollInterval = 30 * time.Second
	settleTime   = 2 * time.Minute

	// quiet and patience are how long it takes until the status reports
	// a deletion in progress and a cloud that was not listed yet.
	quiet    = 5 * time.Second
	patience = 5 * time.Second
)

var (
	errReset     = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection reset", Uncertain: true}
	errRefused   = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection refused"}
	errThrottled = &cloud.Error{Kind: cloud.Throttled, Op: "call", Detail: "too many requests", RetryAfter: 7 * time.Second}
)

// harness is a cluster, a cloud and a VM controller.
type harness struct {
	t   testing.TB
	now time.Time
	// alone is whether no other manager reconciles VMs.
	alone     bool
	cloud     *cloudfake.Cloud
	client    client.Client
	directory *inventory.Directory
	inv       *inventory.Inventory
	kind      *kind
	// guest answers to the connections of readiness probes.
	guest      *guest
	reconciler *reconciler.Reconciler[*pcapi.VM, *observation]

	// enqueued are the names of the VMs that the inventory enqueued.
	enqueued []string
	// writes are the targets of the patches sent to the API server: object or status.
	writes []string
	events []string
	// refuse are the errors of the next writes to object or status.
	refuse map[string][]error
	// lost is the target of a write whose answer is lost next.
	lost string
	// nextRestartTime is that of the spec, of which the client keeps whole seconds only. An
	// API server keeps what the user wrote.
	nextRestartTime *metav1.Time
}

// newHarness returns a harness whose process started an hour ago and whose Cloud was just listed.
func newHarness(t testing.TB, caps cloud.Capabilities, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{t: t, now: startTime, alone: true, refuse: map[string][]error{}, guest: &guest{}}
	h.cloud = cloudfake.New(cloudfake.Options{Capabilities: caps, Clock: h.Now})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	for _, o := range objects {
		if vm, ok := o.(*pcapi.VM); ok {
			h.nextRestartTime = vm.Spec.NextRestartTime
		}
	}
	objects = append(objects, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&pcapi.VM{})
	if err := addIndexes(t.Context(), indexer(func(o client.Object, field string, keys client.IndexerFunc) { builder.WithIndex(o, field, keys) })); err != nil {
		t.Fatalf("addIndexes: %v", err)
	}
	h.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, o, opts...)
			if vm, ok := o.(*pcapi.VM); ok && err == nil {
				vm.Spec.NextRestartTime = h.nextRestartTime.DeepCopy()
			}
			return err
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return h.sent("object", func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return h.sent(sub, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	}).Build()
	h.start()
	h.connect()
	h.advance(time.Hour)
	h.poll()
	h.advance(time.Second)
	h.enqueued = nil
	t.Cleanup(func() {
		if err := h.cloud.Misuse(); err != nil {
			t.Errorf("a call that the cloud does not support: %v", err)
		}
		if _, repeated := h.cloud.FirstCreates(); len(repeated) > 0 {
			t.Errorf("creates of %q came as the first with a key that another create had used", repeated)
		}
	})
	return h
}

type indexer func(o client.Object, field string, keys client.IndexerFunc)

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i(o, field, keys)
	return nil
}

func (h *harness) sent(to string, forward func() error) error {
	h.writes = append(h.writes, to)
	if queue := h.refuse[to]; len(queue) > 0 {
		h.refuse[to] = queue[1:]
		if queue[0] != nil {
			return queue[0]
		}
	}
	err := forward()
	if h.lost == to {
		h.lost, err = "", errAPIAway
	}
	return err
}

// loseAnswer loses the answer to the next write to object or status.
func (h *harness) loseAnswer(to string) { h.lost = to }

func (h *harness) Now() time.Time { return h.now }

func (h *harness) Eventf(_, _ runtime.Object, level, reason, _, _ string, _ ...any) {
	h.events = append(h.events, level+" "+reason)
}

// start starts a new process, whose memory is empty.
func (h *harness) start() {
	h.directory = inventory.New(h.Now, "cluster")
	h.directory.Subscribe(func(event inventory.Event) {
		// The queue has each object once.
		owners := slices.DeleteFunc(event.Owners, func(owner inventory.Ref) bool { return slices.Contains(event.Refs, owner) })
		for _, ref := range slices.Concat(event.Refs, owners) {
			h.enqueued = append(h.enqueued, ref.Name)
		}
	})
	h.inv = h.directory.Cloud("default")
	h.kind = newKind(h.client, controller.Options{Probes: h.prober(), Live: h.client, Directory: h.directory, Cluster: "cluster", Clock: h.Now, Alone: func() bool { return h.alone }}, h)
	h.reconciler = h.kind.Reconciler(h)
}

// connect connects the Cloud, as its controller does, and lists it.
func (h *harness) connect() {
	h.inv.Configure(inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime, UtilizationStep: 1})
	h.inv.Connect(h.cloud, h.cloud.Can())
	h.poll()
}

func (h *harness) poll() {
	h.t.Helper()
	h.inv.Polling()
	snap, err := inventory.List(h.t.Context(), h.cloud, h.Now)
	if err != nil {
		h.t.Fatalf("List: %v", err)
	}
	h.inv.Publish(snap)
}

func (h *harness) advance(d time.Duration) { h.now = h.now.Add(d) }

// later advances the time and lists the cloud.
func (h *harness) later(d time.Duration) {
	h.advance(d)
	h.poll()
}

func (h *harness) reconcile() (ctrl.Result, error) {
	return h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
}

func (h *harness) mustReconcile() ctrl.Result {
	h.t.Helper()
	result, err := h.reconcile()
	if err != nil {
		h.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// find returns the stored VM and reports whether it exists.
func (h *harness) find() (*pcapi.VM, bool) {
	h.t.Helper()
	vm := &pcapi.VM{}
	err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, vm)
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	if err != nil {
		h.t.Fatalf("Get: %v", err)
	}
	return vm, true
}

func (h *harness) vm() *pcapi.VM {
	h.t.Helper()
	vm, ok := h.find()
	if !ok {
		h.t.Fatal("the VM is gone")
	}
	return vm
}

// edit changes the VM as a user does.
func (h *harness) edit(change func(*pcapi.VM)) {
	h.t.Helper()
	vm := h.vm()
	change(vm)
	h.nextRestartTime = vm.Spec.NextRestartTime.DeepCopy()
	vm.Generation++
	if err := h.client.Update(h.t.Context(), vm); err != nil {
		h.t.Fatalf("Update: %v", err)
	}
}

func (h *harness) remove() {
	h.t.Helper()
	if err := h.client.Delete(h.t.Context(), h.vm()); err != nil {
		h.t.Fatalf("Delete: %v", err)
	}
}

// condition returns a condition of the VM as "Status Reason", and its message.
func (h *harness) condition(kind string) (string, string) {
	h.t.Helper()
	c := meta.FindStatusCondition(h.vm().Status.Conditions, kind)
	if c == nil {
		return "", ""
	}
	return string(c.Status) + " " + c.Reason, c.Message
}

func (h *harness) wantCondition(kind, want string, parts ...string) {
	h.t.Helper()
	got, message := h.condition(kind)
	if got != want {
		h.t.Errorf("%s=%s (%s), want %s", kind, got, message, want)
	}
	for _, part := range parts {
		if !strings.Contains(message, part) {
			h.t.Errorf("%s has message %q, want %q in it", kind, message, part)
		}
	}
}

func (h *harness) wantCalls(want ...string) {
	h.t.Helper()
	equal(h.t, "calls", want, h.cloud.TakeCalls(cloudfake.ListServers))
}

func (h *harness) wantServers(want ...string) {
	h.t.Helper()
	equal(h.t, "servers in the cloud", want, h.cloud.ServerIDs())
}

// wantRequeue allows for the jitter of a tenth.
func (h *harness) wantRequeue(want time.Duration, got ctrl.Result) {
	h.t.Helper()
	if got.RequeueAfter < want || got.RequeueAfter > want+want/10 {
		h.t.Errorf("requeued after %v, want %v to %v", got.RequeueAfter, want, want+want/10)
	}
}

func (h *harness) wantEnqueued(want ...string) {
	h.t.Helper()
	equal(h.t, "enqueued VMs", want, h.enqueued)
	h.enqueued = nil
}

func (h *harness) wantGone() {
	h.t.Helper()
	if vm, ok := h.find(); ok {
		h.t.Errorf("the VM still exists, with finalizers %v", vm.Finalizers)
	}
}

func (h *harness) wantClaim(want string) {
	h.t.Helper()
	vm := h.vm()
	got := ""
	if slices.Contains(vm.Finalizers, pcapi.VMFinalizer) {
		got = vm.Annotations[pcapi.ClaimedNameAnnotation]
	}
	equal(h.t, "claimed name", want, got)
	if _, left := vm.Annotations[pcapi.ClaimedNameAnnotation]; left && got == "" {
		h.t.Error("an annotation of a claim is left")
	}
}

var cloudKey = client.ObjectKey{Name: "default"}

// denyCloud takes the Cloud from the namespace of the VM, which exists then.
func (h *harness) denyCloud() {
	h.t.Helper()
	if err := h.client.Create(h.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}); err != nil {
		h.t.Fatalf("Create: %v", err)
	}
	h.editCloud(func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"allowed": "yes"}}
	})
}

// editCloud changes the Cloud, and returns it as it is then.
func (h *harness) editCloud(change func(*pcapi.Cloud)) *pcapi.Cloud {
	h.t.Helper()
	var c pcapi.Cloud
	if err := h.client.Get(h.t.Context(), cloudKey, &c); err != nil {
		h.t.Fatalf("Get: %v", err)
	}
	change(&c)
	if err := h.client.Update(h.t.Context(), &c); err != nil {
		h.t.Fatalf("Update: %v", err)
	}
	return &c
}

var errAPIAway = errors.New("the API server is unavailable")

// onRecord returns the VM with server s1 recorded and claimed, with changes.
func onRecord(change ...func(*pcapi.VM)) *pcapi.VM {
	vm := vmWith(recorded, func(vm *pcapi.VM) {
		vm.Finalizers = []string{pcapi.VMFinalizer}
		vm.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: "web"}
	})
	for _, f := range change {
		f(vm)
	}
	return vm
}

// other returns another VM, with changes.
func other(name string, change ...func(*pcapi.VM)) *pcapi.VM {
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
