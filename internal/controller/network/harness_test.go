package network

import (
	"context"
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
	"github.com/privatecloud/operator/internal/tenancy"
)

// tolerated is the number of failed looks in a row that the status does not report.
const tolerated = 5

const (
	pollInterval = 30 * time.Second
	settleTime   = 2 * time.Minute
)

var (
	errReset    = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection reset", Uncertain: true}
	errAway     = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection refused"}
	errAttached = &cloud.Error{Kind: cloud.Conflict, Op: "delete network", Detail: "1 servers are attached"}
)

// harness is a cluster, a cloud and a Network controller.
type harness struct {
	t          *testing.T
	now        time.Time
	cloud      *cloudfake.Cloud
	client     client.Client
	inv        *inventory.Inventory
	kind       *kind
	reconciler *reconciler.Reconciler[*pcapi.Network, *observation]
	// statusErr is the answer to all writes of the status; nil if they succeed.
	statusErr error
	// writes are the targets of the patches sent to the API server: object or status.
	writes []string
	// waitsForWrites is whether the last list of VMs waited for what the client itself wrote.
	waitsForWrites bool
}

// newHarness returns a harness whose process started an hour ago and whose Cloud was just listed.
func newHarness(t *testing.T, caps cloud.Capabilities, networks []cloud.Network, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{t: t, now: startTime}
	h.cloud = cloudfake.New(cloudfake.Options{Capabilities: caps, Clock: func() time.Time { return h.now }})
	h.cloud.AddNetworks(networks...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	sent := func(to string) { h.writes = append(h.writes, to) }
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&pcapi.Network{}).
		WithObjects(append(objects, &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}})...).
		WithIndex(&pcapi.VM{}, "network", func(o client.Object) []string { return controller.NetworksOf(o.(*pcapi.VM)) }).
		WithIndex(&pcapi.Network{}, tenancy.CloudIndex, cloudKeys).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				sent("object")
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				sent(sub)
				if h.statusErr != nil {
					return h.statusErr
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*pcapi.VMList); ok {
					h.waitsForWrites = !(&client.ListOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
	h.start(caps)
	return h
}

// start starts a process, which knows nothing of the one before, and lists the cloud.
func (h *harness) start(caps cloud.Capabilities) {
	h.t.Helper()
	directory := inventory.New(func() time.Time { return h.now }, "cluster")
	h.inv = directory.Cloud("default")
	h.kind = newKind(h.client, controller.Options{Directory: directory, Cluster: "cluster", Clock: func() time.Time { return h.now }, Alone: func() bool { return true }})
	h.reconciler = h.kind.Reconciler(h)
	h.inv.Configure(inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime})
	h.inv.Connect(h.cloud, caps)
	h.advance(time.Hour)
	snap, err := inventory.List(h.t.Context(), h.cloud, func() time.Time { return h.now })
	if err != nil {
		h.t.Fatalf("List: %v", err)
	}
	h.inv.Publish(snap)
	h.advance(time.Second)
}

func (h *harness) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func (h *harness) advance(d time.Duration) { h.now = h.now.Add(d) }

func (h *harness) reconcile() ctrl.Result {
	h.t.Helper()
	return h.reconcileNetwork("net")
}

func (h *harness) reconcileNetwork(name string) ctrl.Result {
	h.t.Helper()
	result, err := h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}})
	if err != nil {
		h.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// fail makes the next calls of a verb fail. A create of unknown outcome takes effect.
func (h *harness) fail(verb cloudfake.Verb, errs ...error) {
	h.cloud.Heal(verb)
	for _, err := range errs {
		h.cloud.Fail(verb, err, verb == cloudfake.CreateNetwork && cloud.Uncertain(err))
	}
}

// takeVerbs returns the verbs of the calls since it was last called: list, get, create and so on.
func (h *harness) takeVerbs() []string {
	var verbs []string
	for _, call := range h.cloud.TakeCalls(cloudfake.ListServers) {
		verb, _, _ := strings.Cut(call, " ")
		verbs = append(verbs, verb)
	}
	return verbs
}

func (h *harness) wantCalls(want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.takeVerbs()); diff != "" {
		h.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func (h *harness) wantCondition(kind, want string, parts ...string) {
	h.t.Helper()
	var net pcapi.Network
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
		h.t.Fatalf("Get: %v", err)
	}
	c := meta.FindStatusCondition(net.Status.Conditions, kind)
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

// onRecord returns the Network net with its network recorded and claimed, with changes.
func onRecord(change ...func(*pcapi.Network)) *pcapi.Network {
	return netWith(append([]func(*pcapi.Network){recorded, func(net *pcapi.Network) {
		net.Finalizers, net.Annotations = []string{pcapi.NetworkFinalizer}, map[string]string{pcapi.ClaimedCloudAnnotation: "default"}
	}}, change...)...)
}

func (h *harness) wantGone() {
	h.t.Helper()
	err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &pcapi.Network{})
	if !apierrors.IsNotFound(err) {
		h.t.Errorf("the object still exists: %v", err)
	}
}

// setClockToStart sets the clock to just after the start of this process.
func (h *harness) setClockToStart() { h.now = startTime.Add(time.Second) }
