package vmconsolerequest

import (
	"context"
	"strings"
	"testing"
	"time"

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
	"github.com/privatecloud/operator/internal/console"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

var (
	startTime = time.Now() // conditions have times of the real clock
	capable   = cloud.NewCapabilities(cloud.Console, cloud.Labels)
	key       = client.ObjectKey{Namespace: "ns", Name: "console-1"}

	ctrlRequest = ctrl.Request{NamespacedName: key}
)

// printed is what the console of the server printed.
const printed = "login: "

// consoles is a cloud whose consoles a function reads.
type consoles struct {
	*cloudfake.Cloud

	read  func(id string, lines int) (string, error)
	calls []string
}

func (c *consoles) ReadConsole(_ context.Context, id string, lines int) (string, error) {
	c.calls = append(c.calls, id)
	return c.read(id, lines)
}

// harness is a cluster, a cloud with the server s1 of VM vm, and a VMConsoleRequest controller.
type harness struct {
	t          *testing.T
	now        time.Time
	cloud      *consoles
	client     client.Client
	inv        *inventory.Inventory
	private    console.Key
	reconciler *reconciler.Reconciler[*pcapi.VMConsoleRequest, *observation]
	// statusErr is the answer to the next write of the status; nil if it succeeds. writes is how many succeeded.
	statusErr error
	writes    int
}

func newHarness(t *testing.T, caps cloud.Capabilities, objects ...client.Object) *harness {
	t.Helper()
	private, err := console.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, now: startTime, private: private}
	h.cloud = &consoles{
		Cloud: cloudfake.New(cloudfake.Options{Capabilities: caps, Clock: func() time.Time { return h.now }}),
		read:  func(string, int) (string, error) { return printed, nil },
	}
	h.cloud.AddServers(cloud.Server{ID: "s1", Name: "vm", State: cloud.StateActive, Labels: labelsOf("vm-uid")})
	for _, o := range objects {
		if r, ok := o.(*pcapi.VMConsoleRequest); ok && r.Spec.PublicKey == "" {
			r.Spec.PublicKey = private.Public()
		}
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if addErr := add(scheme); addErr != nil {
			t.Fatalf("AddToScheme: %v", addErr)
		}
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&pcapi.VMConsoleRequest{}, &pcapi.VM{}).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if failure := h.statusErr; failure != nil {
					h.statusErr = nil
					return failure
				}
				h.writes++
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	clock := func() time.Time { return h.now }
	directory := inventory.New(clock, "cluster")
	h.inv = directory.Cloud("default")
	opts := controller.Options{Directory: directory, Cluster: "cluster", Clock: clock}
	h.reconciler = newKind(h.client, opts).reconciler(h, opts)
	h.inv.Configure(inventory.Settings{PollInterval: 30 * time.Second, SettleTime: time.Minute})
	h.inv.Connect(h.cloud, caps)
	h.now = h.now.Add(time.Minute)
	h.poll()
	return h
}

func labelsOf(uid string) map[string]string {
	return map[string]string{inventory.UIDLabel: uid, inventory.ClusterLabel: "cluster"}
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
	result, err := h.reconciler.Reconcile(h.t.Context(), ctrlRequest)
	if err != nil {
		h.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// request returns the request, nil if it is gone.
func (h *harness) request() *pcapi.VMConsoleRequest {
	h.t.Helper()
	var r pcapi.VMConsoleRequest
	switch err := h.client.Get(h.t.Context(), key, &r); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		h.t.Fatalf("Get: %v", err)
	}
	return &r
}

// wantReady checks the Ready condition.
func (h *harness) wantReady(want string, parts ...string) {
	h.t.Helper()
	c := meta.FindStatusCondition(h.request().Status.Conditions, pcapi.ReadyCondition)
	if c == nil {
		c = &metav1.Condition{}
	}
	if got := string(c.Status) + " " + c.Reason; got != want {
		h.t.Errorf("Ready=%s (%s), want %s", got, c.Message, want)
	}
	for _, part := range parts {
		if !strings.Contains(c.Message, part) {
			h.t.Errorf("Ready has message %q, want %q in it", c.Message, part)
		}
	}
}

// wantText checks the text that the one who asked can read.
func (h *harness) wantText() {
	h.t.Helper()
	got, err := h.private.Open("uid", h.request().Status.Console)
	if err != nil || got != printed {
		h.t.Errorf("got %q, %v; want %q", got, err, printed)
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

func request(change ...func(*pcapi.VMConsoleRequest)) *pcapi.VMConsoleRequest {
	o := &pcapi.VMConsoleRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "console-1", UID: "uid", Generation: 1},
		Spec:       pcapi.VMConsoleRequestSpec{VMName: "vm", Lines: 100},
	}
	for _, f := range change {
		f(o)
	}
	return o
}

func home(change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	o := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	for _, f := range change {
		f(o)
	}
	return o
}
