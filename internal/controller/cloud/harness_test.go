package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

const (
	pollInterval = 30 * time.Second
	settleTime   = 2 * time.Minute
)

var (
	errRefused   = &cloud.Error{Kind: cloud.Unavailable, Op: "list servers", Detail: "connection refused"}
	errLogin     = &cloud.Error{Kind: cloud.Unauthorized, Op: "list servers", Detail: "wrong token"}
	errUntrusted = &cloud.Error{Kind: cloud.Untrusted, Op: "list servers", Detail: "unknown authority"}
	errGarbage   = &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: "not JSON"}
	errAPIAway   = errors.New("the API server is away")
)

// newCloud returns a cloud with servers.
func newCloud(caps cloud.Capabilities, servers ...cloud.Server) *cloudfake.Cloud {
	c := cloudfake.New(cloudfake.Options{Capabilities: caps})
	c.AddServers(servers...)
	return c
}

// wantClosed waits until a client is closed, which happens in the background.
func wantClosed(t *testing.T, c *cloudfake.Cloud) {
	t.Helper()
	select {
	case <-c.Closed():
	case <-time.After(time.Minute):
		t.Error("the client was not closed within a minute")
	}
}

func server(id string, change ...func(*cloud.Server)) cloud.Server {
	s := cloud.Server{ID: id, Name: "vm-" + id, State: cloud.StateActive, CreatedAt: dawn}
	for _, f := range change {
		f(&s)
	}
	return s
}

// ownedBy labels a server as the VM's of this name in namespace ns, made by a cluster.
func ownedBy(name, cluster string) func(*cloud.Server) {
	return func(s *cloud.Server) {
		s.Labels = map[string]string{
			inventory.UIDLabel: "uid-" + name, inventory.ClusterLabel: cluster,
			inventory.NamespaceLabel: "ns", inventory.NameLabel: name,
		}
	}
}

// vm returns a VM of the Cloud home, an hour old, that records a server of its own name.
func vm(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(dawn.Add(-time.Hour))},
		Spec:       pcapi.VMSpec{VMName: name, CloudRef: &pcapi.CloudReference{Name: "home"}},
		Status:     pcapi.VMStatus{VMID: name, State: pcapi.VMStateRunning},
	}
	for _, f := range change {
		f(vm)
	}
	return vm
}

// home returns the Cloud home, changed.
func home(change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: "home", UID: "uid-home", Generation: 1},
		Spec: pcapi.CloudSpec{
			Type: pcapi.CloudTypeREST, Endpoint: "https://cloud.test/api", OrphanPolicy: pcapi.OrphanPolicyReport,
			PollInterval: metav1.Duration{Duration: pollInterval}, SettleTime: &metav1.Duration{Duration: settleTime}, UtilizationStep: 1,
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func claimed(c *pcapi.Cloud) { c.Finalizers = []string{pcapi.CloudFinalizer} }
func deleted(c *pcapi.Cloud) {
	now := metav1.NewTime(dawn)
	c.DeletionTimestamp = &now
}

// removingOrphans removes orphans at the first listing that shows them.
func removingOrphans(c *pcapi.Cloud) {
	c.Spec.OrphanPolicy, c.Spec.SettleTime = pcapi.OrphanPolicyDelete, &metav1.Duration{}
}
func withSecret(c *pcapi.Cloud) {
	c.Spec.CredentialsSecretRef = &pcapi.SecretReference{Name: "login"}
}
func brakedAt(snapshot string) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) { c.Status.BrakedSnapshot = snapshot }
}
func acknowledging(snapshot string) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) {
		c.Annotations = map[string]string{pcapi.AcknowledgeAnnotation: snapshot}
	}
}

// world is a cluster with the Cloud home, and the controller of Clouds.
type world struct {
	t      testing.TB
	now    time.Time
	cloud  *cloudfake.Cloud
	client client.Client
	kind   *kind
	runs   *reconciler.Reconciler[*pcapi.Cloud, *observation]
	// queue reconciles as the manager does.
	queue     reconcile.Reconciler
	directory *inventory.Directory
	inv       *inventory.Inventory
	// reads are the errors of reads by the id of the server.
	reads map[string]error
	// ignored are the fields that the cloud's client ignores in each listing.
	ignored []string
	// defect is what the cloud's client reports as missing.
	defect error
	// outlive is whether snapshots and disks outlive their server. cleared are the servers whose snapshots were deleted, with their
	// owners, and emptied those whose disks were.
	outlive          bool
	cleared, emptied []string
	// locked are the servers that cannot be deleted, with the reason.
	locked map[string]error
	// scope is that of the next process.
	scope tenancy.Scope

	// mu guards now and enqueued where a watch runs.
	mu       sync.Mutex
	enqueued []inventory.Event
	events   []string
	writes   []string
	// refuse answers the next writes to object or status, and unreadable all live reads.
	refuse     map[string]error
	unreadable error
}

func newWorld(t testing.TB, c *pcapi.Cloud, f *cloudfake.Cloud, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, now: dawn, cloud: f, refuse: map[string]error{}, reads: map[string]error{}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, c)...).WithStatusSubresource(&pcapi.Cloud{}).
		WithIndex(&pcapi.VM{}, tenancy.CloudIndex, func(o client.Object) []string { return []string{o.(*pcapi.VM).Spec.CloudRef.Name} }).
		WithIndex(&pcapi.VMSnapshot{}, tenancy.CloudIndex, func(o client.Object) []string { return []string{o.(*pcapi.VMSnapshot).Status.Cloud} }).
		WithIndex(&pcapi.Network{}, tenancy.CloudIndex, func(o client.Object) []string { return []string{o.(*pcapi.Network).Spec.CloudRef.Name} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return w.sent("object", func() error { return c.Patch(ctx, o, p, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				return w.sent(sub, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		}).Build()
	w.start()
	t.Cleanup(func() {
		if w.cloud != nil && w.cloud.Closes() > 1 {
			t.Errorf("the client was closed %d times, want once at most", w.cloud.Closes())
		}
	})
	return w
}

func (w *world) sent(to string, forward func() error) error {
	w.writes = append(w.writes, to)
	if err := w.refuse[to]; err != nil {
		delete(w.refuse, to)
		return err
	}
	return forward()
}

// start begins a new process.
func (w *world) start() {
	directory := inventory.New(w.Now, "here")
	directory.Subscribe(func(e inventory.Event) {
		slices.Sort(e.Servers)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.enqueued = append(w.enqueued, e)
	})
	dial := clouds.DialFunc(func(_ *pcapi.Cloud, secret *corev1.Secret) (cloud.Client, error) {
		if secret != nil && secret.Data["token"] == nil {
			return nil, errors.New("there is no token")
		}
		if w.outlive {
			return outliving{reporting{w.cloud, w}}, nil
		}
		return reporting{w.cloud, w}, nil
	})
	clients := clouds.New(clouds.Options{
		Secrets: live{w}, Namespace: "operator", Clock: w.Now, Dialers: map[pcapi.CloudType]clouds.Dialer{pcapi.CloudTypeREST: dial},
	})
	w.runs = New(w.client, live{w}, w, controller.Options{
		Directory: directory, Clients: clients, Cluster: "here", Clock: w.Now, Scope: w.scope,
	})
	w.kind = w.runs.Kind.(*kind)
	w.kind.gauge = newGauges(prometheus.NewRegistry())
	w.kind.watches = newWatches(nil, w.kind.gauge)
	w.t.Cleanup(w.kind.watches.shutDown)
	w.queue, w.directory = w.kind.forgetting(w.runs), directory
	w.inv = directory.Cloud("home")
}

// outliving is a client of a cloud whose snapshots and disks outlive their server.
type outliving struct{ reporting }

func (o outliving) DeleteSnapshots(_ context.Context, serverID, owner string) error {
	if o.HasServer(serverID) {
		return &cloud.Error{Kind: cloud.Rejected, Op: "delete snapshots", Detail: "the server exists"}
	}
	o.w.cleared = append(o.w.cleared, serverID+" of "+owner)
	return nil
}

func (o outliving) DeleteDisks(_ context.Context, serverID string) error {
	o.w.emptied = append(o.w.emptied, serverID)
	return &cloud.Error{Kind: cloud.Busy, Op: "delete disks", Detail: "they are attached"}
}

// reporting is a client of the world's cloud that reports ignored fields and defects.
type reporting struct {
	*cloudfake.Cloud
	w *world
}

func (r reporting) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	if err := r.w.locked[id]; err != nil {
		return cloud.Result{}, err
	}
	return r.Cloud.DeleteServer(ctx, id)
}

func (r reporting) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	server, err := r.Cloud.GetServer(ctx, id)
	if refused, ok := r.w.reads[id]; ok {
		return cloud.Server{}, refused
	}
	return server, err
}

func (r reporting) Ignored() []string { return r.w.ignored }
func (r reporting) Defect() error     { return r.w.defect }

// live reads past the cache.
type live struct{ w *world }

func (l live) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if l.w.unreadable != nil {
		return l.w.unreadable
	}
	return l.w.client.Get(ctx, key, o, opts...)
}

func (l live) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed past the cache")
}

func (w *world) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) Eventf(_, _ runtime.Object, level, reason, action, _ string, _ ...any) {
	w.events = append(w.events, fmt.Sprintf("%s %s %s", level, reason, action))
}

// reconcile reconciles the Cloud until nothing is left to do at once. It is
// reached through the fake whatever its spec says.
func (w *world) reconcile() ctrl.Result {
	w.t.Helper()
	for range 3 {
		result, err := w.queue.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "home"}})
		if err != nil {
			w.t.Logf("Reconcile: %v", err)
		}
		if result.RequeueAfter != atOnce {
			return result
		}
	}
	w.t.Fatal("the Cloud is reconciled at once again and again")
	return ctrl.Result{}
}

// later reconciles after a poll interval with its jitter.
func (w *world) later() {
	w.t.Helper()
	w.advance(pollInterval * 11 / 10)
	w.reconcile()
}

func (w *world) find() (*pcapi.Cloud, bool) {
	w.t.Helper()
	c := &pcapi.Cloud{}
	err := w.client.Get(w.t.Context(), client.ObjectKey{Name: "home"}, c)
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	if err != nil {
		w.t.Fatalf("Get: %v", err)
	}
	return c, true
}

func (w *world) stored() *pcapi.Cloud {
	w.t.Helper()
	c, ok := w.find()
	if !ok {
		w.t.Fatal("the Cloud is gone")
	}
	return c
}

func (w *world) edit(change func(*pcapi.Cloud)) {
	w.t.Helper()
	c := w.stored()
	change(c)
	if err := w.client.Update(w.t.Context(), c); err != nil {
		w.t.Fatalf("Update: %v", err)
	}
}

func (w *world) wantCondition(kind, want string, parts ...string) {
	w.t.Helper()
	got, message := "", ""
	if c := meta.FindStatusCondition(w.stored().Status.Conditions, kind); c != nil {
		got, message = string(c.Status)+" "+c.Reason, c.Message
	}
	if got != want {
		w.t.Errorf("%s=%s (%s), want %s", kind, got, message, want)
	}
	for _, part := range parts {
		if !strings.Contains(message, part) {
			w.t.Errorf("%s has message %q, want %q in it", kind, message, part)
		}
	}
}

func equal(t *testing.T, what string, want, got any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

type unlistable struct{ client.Client }

func (unlistable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errAPIAway
}
