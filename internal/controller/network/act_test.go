package network

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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	setup "github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// tolerated is how many failed looks in a row the status does not report.
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

// world is a cluster and a cloud, and a Network controller between them.
type world struct {
	t      *testing.T
	now    time.Time
	cloud  *cloudfake.Cloud
	client client.Client
	inv    *inventory.Inventory
	kind   *kind
	runs   *reconciler.Reconciler[*v1alpha1.Network, *observation]
	// writes are what was sent to the API server: object or status.
	writes []string
}

// newWorld returns a world with a Cloud that was listed, long after the start.
func newWorld(t *testing.T, caps cloud.Capabilities, networks []cloud.Network, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, now: dawn}
	w.cloud = cloudfake.New(cloudfake.Options{Capabilities: caps, Clock: func() time.Time { return w.now }})
	w.cloud.AddNetworks(networks...)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	sent := func(to string) { w.writes = append(w.writes, to) }
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.Network{}).
		WithObjects(append(objects, &v1alpha1.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}})...).
		WithIndex(&v1alpha1.VM{}, "network", func(o client.Object) []string { return []string{nameOf(o.(*v1alpha1.VM))} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				sent("object")
				return c.Patch(ctx, o, p, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				sent(sub)
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	directory := inventory.New(func() time.Time { return w.now })
	w.inv = directory.Cloud("default")
	w.kind = newKind(w.client, setup.Options{Directory: directory, Cluster: "cluster", Clock: func() time.Time { return w.now }})
	w.runs = w.kind.Reconciler(w)
	w.inv.Configure(inventory.Settings{PollInterval: pollInterval, SettleTime: settleTime})
	w.inv.Connect(w.cloud, caps)
	w.advance(time.Hour)
	snap, err := inventory.List(t.Context(), w.cloud, func() time.Time { return w.now })
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	w.inv.Publish(snap)
	w.advance(time.Second)
	return w
}

func (w *world) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

func (w *world) advance(d time.Duration) { w.now = w.now.Add(d) }

func (w *world) pass() ctrl.Result {
	w.t.Helper()
	result, err := w.runs.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "net"}})
	if err != nil {
		w.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// fail makes the next calls of a verb fail. A create of unknown outcome takes effect.
func (w *world) fail(verb cloudfake.Verb, errs ...error) {
	w.cloud.Heal(verb)
	for _, err := range errs {
		w.cloud.Fail(verb, err, verb == cloudfake.CreateNetwork && cloud.Uncertain(err))
	}
}

// took returns what the calls since it was last called did: list, get, create and so on.
func (w *world) took() []string {
	var verbs []string
	for _, call := range w.cloud.TakeCalls(cloudfake.ListServers) {
		verb, _, _ := strings.Cut(call, " ")
		verbs = append(verbs, verb)
	}
	return verbs
}

func (w *world) wantCalls(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.took()); diff != "" {
		w.t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func (w *world) wantSays(kind, want string, parts ...string) {
	w.t.Helper()
	var net v1alpha1.Network
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
		w.t.Fatalf("Get: %v", err)
	}
	c := meta.FindStatusCondition(net.Status.Conditions, kind)
	if c == nil {
		c = &metav1.Condition{}
	}
	if got := string(c.Status) + " " + c.Reason; got != want {
		w.t.Errorf("%s=%s (%s), want %s", kind, got, c.Message, want)
	}
	for _, part := range parts {
		if !strings.Contains(c.Message, part) {
			w.t.Errorf("%s says %q, want %q in it", kind, c.Message, part)
		}
	}
}

// onRecord is the Network net with its network on record, claimed.
func onRecord(change ...func(*v1alpha1.Network)) *v1alpha1.Network {
	return netWith(append([]func(*v1alpha1.Network){recorded, func(net *v1alpha1.Network) {
		net.Finalizers, net.Annotations = []string{v1alpha1.NetworkFinalizer}, map[string]string{v1alpha1.ClaimedCloudAnnotation: "default"}
	}}, change...)...)
}

func TestALifeTakesThreeWritesAndFourCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything, nil, netWith())
	if again := w.pass().RequeueAfter; again != pollInterval {
		t.Errorf("again after %v, want the poll interval", again)
	}
	w.wantCalls("create")
	w.wantSays("Ready", "True InSync")
	w.advance(pollInterval)
	w.pass()
	w.wantCalls("list")
	if err := w.client.Delete(t.Context(), netWith()); err != nil {
		t.Fatal(err)
	}
	w.pass()
	w.wantCalls("delete", "get")
	if diff := cmp.Diff([]string{"object", "status", "object"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.wantGone()
}

func TestANetworkThatWasWellSaysNothingOfAFewFailedLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything, []cloud.Network{networkWith()}, onRecord())
	w.pass()
	w.wantSays("Ready", "True InSync")
	w.writes = nil
	w.fail(cloudfake.ListNetworks, slices.Repeat([]error{errAway}, tolerated+1)...)
	var waited time.Duration
	for range tolerated {
		w.advance(pollInterval)
		again := w.pass().RequeueAfter
		if again <= waited {
			t.Errorf("again after %v, want more than %v", again, waited)
		}
		waited = again
	}
	if len(w.writes) > 0 {
		t.Errorf("writes %v, want none", w.writes)
	}
	w.advance(pollInterval)
	w.pass()
	w.wantSays("Ready", "False CloudUnavailable", "connection refused")
	w.wantSays("Created", "True Created")

	w.advance(pollInterval)
	w.pass()
	w.wantSays("Ready", "True InSync")

	w.fail(cloudfake.ListNetworks, errAway)
	w.advance(pollInterval)
	w.pass()
	w.wantSays("Ready", "True InSync")
}

func TestANetworkThatTheListingLacksIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything, nil, onRecord())
	w.inv.Brake(true)
	w.pass()
	w.wantCalls("list")
	w.wantSays("Ready", " ")
	w.inv.Brake(false)
	w.advance(pollInterval)
	w.pass()
	w.wantCalls("list", "get")
	w.wantSays("Created", "False Lost")
}

func TestALostAnswerIsFollowedByALookAndNotByASecondCreate(t *testing.T) {
	t.Parallel()
	taken := &cloud.Error{Kind: cloud.Taken, Op: "create network", Detail: "taken"}
	reused := &cloud.Error{Kind: cloud.KeyReused, Op: "create network", Detail: "reused"}
	for name, answer := range map[string]error{"lost": errReset, "the name is taken": taken, "the key is used": reused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything, nil, netWith())
			w.fail(cloudfake.CreateNetwork, answer)
			w.pass()
			w.wantCalls("create")
			w.wantSays("Created", "False OutcomeUnknown", "looked for before another create")
			w.cloud.SetNetworks(networkWith())
			w.advance(time.Second)
			w.pass()
			w.wantCalls("list")
			w.wantSays("Created", "True Adopted")
		})
	}
}

func TestAClearRefusalLeavesNoClaim(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind cloud.Kind
		want string
	}{
		"refused": {cloud.Rejected, "False Rejected"}, "prohibited": {cloud.Prohibited, "False Rejected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything, nil, netWith())
			w.fail(cloudfake.CreateNetwork, &cloud.Error{Kind: test.kind, Op: "create network", Detail: "no"})
			w.pass()
			w.wantSays("Created", test.want)
			var net v1alpha1.Network
			if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
				t.Fatal(err)
			}
			if len(net.Finalizers) > 0 || len(net.Annotations) > 0 {
				t.Errorf("finalizers %v, annotations %v are left", net.Finalizers, net.Annotations)
			}
		})
	}
}

func (w *world) wantGone() {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &v1alpha1.Network{})
	if !apierrors.IsNotFound(err) {
		w.t.Errorf("the object is still there: %v", err)
	}
}

// begin turns the clock back to just after the start of this process.
func (w *world) begin() { w.now = dawn.Add(time.Second) }

func TestAClaimStaysWhereRoomOrATurnIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind cloud.Kind
		want string
	}{
		"no room": {cloud.Quota, "False QuotaExceeded"}, "no turn": {cloud.Throttled, "False Pending"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, bare, nil, netWith())
			w.begin()
			w.fail(cloudfake.CreateNetwork, slices.Repeat([]error{&cloud.Error{Kind: test.kind, Op: "create network", Detail: "no"}}, 3)...)
			for range 3 {
				w.pass()
				w.advance(external.RecheckSoon / 3)
			}
			w.wantSays("Created", test.want)
			w.wantCalls("create", "list", "create", "create")
			if diff := cmp.Diff([]string{"object", "status"}, w.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if err := w.client.Delete(t.Context(), netWith()); err != nil {
				t.Fatal(err)
			}
			w.pass()
			w.wantCalls("list")
			w.wantGone()
		})
	}
}

func TestADeletionWhileAnEarlierCreateIsOpenWaitsAndEnds(t *testing.T) {
	t.Parallel()
	unrecorded := func(net *v1alpha1.Network) { net.Status = v1alpha1.NetworkStatus{} }
	for name, test := range map[string]struct {
		net    *v1alpha1.Network
		before func(*world)
	}{
		"one of an earlier process": {onRecord(unrecorded), func(*world) {}},
		"one whose answer was lost before another had no room": {netWith(), func(w *world) {
			w.fail(cloudfake.CreateNetwork, errReset, &cloud.Error{Kind: cloud.Quota, Op: "create network"})
			w.pass()
			w.cloud.SetNetworks()
			w.advance(time.Second)
			w.pass()
			w.wantCalls("create", "list", "create")
			w.wantSays("Created", "False QuotaExceeded")
		}},
		"one that was sent after another had no room": {netWith(), func(w *world) {
			w.fail(cloudfake.CreateNetwork, &cloud.Error{Kind: cloud.Quota, Op: "create network"}, errReset)
			w.pass()
			w.advance(time.Second)
			w.pass()
			w.cloud.SetNetworks()
			w.wantCalls("create", "list", "create")
			w.wantSays("Created", "False OutcomeUnknown")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything, nil, test.net)
			w.begin()
			test.before(w)
			if err := w.client.Delete(t.Context(), netWith()); err != nil {
				t.Fatal(err)
			}
			again := w.pass().RequeueAfter
			w.wantSays("Deleting", "True Requested", "settleTime")
			w.advance(again)
			w.pass()
			w.wantGone()
		})
	}
}

func TestWhatIsPutRightInTheCloudIsSeenAtTheNextRecheck(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		net   *v1alpha1.Network
		wrong cloud.Network
		want  []string
	}{
		"a range":                     {onRecord(), networkWith(ranging("10.0.0.0/16")), []string{"list"}},
		"a name":                      {onRecord(), networkWith(called("another")), []string{"list"}},
		"a name, at its deletion too": {onRecord(deleted), networkWith(called("other")), []string{"list", "delete", "get"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything, []cloud.Network{test.wrong}, test.net)
			w.inv.Configure(inventory.Settings{PollInterval: time.Hour, SettleTime: settleTime})
			if again := w.pass().RequeueAfter; again > external.RecheckSoon*11/10 {
				t.Errorf("again after %v, want %v or so", again, external.RecheckSoon)
			}
			w.wantCalls("list")
			w.cloud.SetNetworks(networkWith())
			w.pass()
			w.wantCalls()
			w.advance(external.RecheckSoon)
			w.pass()
			w.wantCalls(test.want...)
		})
	}
}

func TestNothingIsRememberedOfANetworkThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything, nil)
	k := w.kind
	k.Backoff.When("uid")
	k.Looks.When("uid")
	k.Tracker.Unknown("uid", w.now)
	k.Tracker.Refused("uid")
	k.Tracker.DeletedSince("uid", w.now)
	forgetDeleted(k).Delete(t.Context(), event.DeleteEvent{Object: netWith()}, nil)
	if k.Backoff.NumRequeues("uid")+k.Looks.NumRequeues("uid")+k.Tracker.Len() > 0 {
		t.Errorf("%+v, %d and %d tries are left", k.Tracker, k.Backoff.NumRequeues("uid"), k.Looks.NumRequeues("uid"))
	}
}

func TestWhatTheCloudDoesNotLetGo(t *testing.T) {
	t.Parallel()
	t.Run("a duplicate that is in use", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, bare, []cloud.Network{networkWith(), networkWith(id("n2"))}, onRecord())
		w.fail(cloudfake.DeleteNetwork, errAttached)
		w.pass()
		w.wantCalls("list", "delete")
		w.wantSays("Stalled", "True Ambiguous", "network n2 is in use", "1 servers are attached")
		w.advance(external.RecheckSoon)
		w.pass()
		if diff := cmp.Diff([]cloud.Network{networkWith()}, w.cloud.Networks()); diff != "" {
			t.Errorf("networks (-want +got):\n%s", diff)
		}
	})
	t.Run("a network that servers of others are on", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
		w.fail(cloudfake.DeleteNetwork, errAttached)
		if again := w.pass().RequeueAfter; again < external.RecheckSoon {
			t.Errorf("again after %v, want it slowly", again)
		}
		w.wantSays("Deleting", "True Blocked", "1 servers are attached", "detach in the cloud")
	})
	t.Run("a gateway that it keeps", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, everything, []cloud.Network{networkWith(through("10.0.0.9"))}, onRecord())
		w.cloud.Ignore(cloudfake.UpdateNetwork)
		w.pass()
		w.wantCalls("list", "update")
		w.wantSays("Stalled", "True Drift", "was asked for gateway 10.0.0.1 and set 10.0.0.9")
	})
	t.Run("a network that is there after its deletion", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
		w.fail(cloudfake.DeleteNetwork, &cloud.Error{Kind: cloud.NotFound, Op: "delete network", Detail: "no such network"})
		w.pass()
		w.wantCalls("list", "delete", "get")
		w.wantSays("Deleting", "True Requested", "deleting network n1")
	})
	t.Run("a network that it takes its time to delete is asked for less and less often", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, everything, []cloud.Network{networkWith()}, onRecord(deleted))
		w.cloud.Ignore(cloudfake.DeleteNetwork)
		var waited time.Duration
		for range 7 {
			again := w.pass().RequeueAfter
			w.wantSays("Deleting", "True Requested", "deleting network n1")
			if again < waited*3/2 {
				t.Errorf("again after %v, want more than %v", again, waited)
			}
			waited = again
			w.advance(again)
		}
		w.cloud.Heal(cloudfake.DeleteNetwork)
		w.pass()
		if n := w.kind.Backoff.NumRequeues("uid"); n != 0 || len(w.cloud.Networks()) > 0 {
			t.Errorf("%d tries are remembered, networks %v are left", n, w.cloud.Networks())
		}
	})
}

func TestHowFailuresOfCallsAreTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want string
	}{
		{&cloud.Error{Kind: cloud.Throttled, RetryAfter: 7 * time.Second}, "waiting: Pending, again in 7s"},
		{errAway, "waiting: CloudUnavailable, again in 1s"},
		{&cloud.Error{Kind: cloud.Unreadable}, "waiting: CloudUnavailable, again in 1s"},
		{&cloud.Error{Kind: cloud.Unsupported}, "stalled: Unsupported, again in 10m0s"},
		{&cloud.Error{Kind: cloud.Rejected}, "stalled: Rejected, again in 10m0s"},
		{errors.New("boom"), "error: boom"},
	} {
		w := newWorld(t, everything, nil)
		k := w.kind
		if got := said(k.Failed(netWith(), &external.Observation[cloud.Network]{Inventory: w.inv}, test.err)); got != test.want {
			t.Errorf("%v: %s, want %s", test.err, got, test.want)
		}
	}
}

func TestADeletionWithoutARecordLooksAtWhatIsThereSinceItWasKnown(t *testing.T) {
	t.Parallel()
	claimed := func(net *v1alpha1.Network) { net.Status = v1alpha1.NetworkStatus{} }
	w := newWorld(t, everything, nil, onRecord(claimed, deleted))
	if _, err := w.inv.Networks(t.Context(), w.now); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Second)
	w.cloud.SetNetworks(networkWith()) // by another manager
	w.took()
	w.pass()
	w.wantCalls("list", "delete", "get")
	if len(w.cloud.Networks()) > 0 {
		t.Errorf("networks %v are left", w.cloud.Networks())
	}
}

func TestOnlyChangesThatFailHaveTheServersListedSoon(t *testing.T) {
	t.Parallel()
	conflict := &cloud.Error{Kind: cloud.Conflict, Op: "update network", Detail: "busy"}
	edge := networkWith(through("10.0.0.9"))
	for name, test := range map[string]struct {
		net      *v1alpha1.Network
		networks []cloud.Network
		verb     cloudfake.Verb
		err      error
		want     bool
	}{
		"a listing":                    {onRecord(), []cloud.Network{networkWith()}, cloudfake.ListNetworks, errAway, false},
		"a look at one":                {onRecord(), nil, cloudfake.GetNetwork, errAway, false},
		"a look after a delete":        {onRecord(deleted), []cloud.Network{networkWith()}, cloudfake.GetNetwork, errAway, false},
		"an update of what is busy":    {onRecord(), []cloud.Network{edge}, cloudfake.UpdateNetwork, conflict, false},
		"an update that went nowhere":  {onRecord(), []cloud.Network{edge}, cloudfake.UpdateNetwork, errAway, true},
		"a delete that went nowhere":   {onRecord(deleted), []cloud.Network{networkWith()}, cloudfake.DeleteNetwork, errAway, true},
		"a create that went nowhere":   {netWith(), nil, cloudfake.CreateNetwork, errAway, true},
		"a create of unknown outcome":  {netWith(), nil, cloudfake.CreateNetwork, errReset, true},
		"a create that had no turn":    {netWith(), nil, cloudfake.CreateNetwork, &cloud.Error{Kind: cloud.Throttled}, false},
		"a delete of what is attached": {onRecord(deleted), []cloud.Network{networkWith()}, cloudfake.DeleteNetwork, errAttached, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything, test.networks, test.net)
			w.inv.Polling()
			w.fail(test.verb, test.err)
			w.pass()
			if soon := w.inv.NextPoll() <= time.Second; soon != test.want {
				t.Errorf("servers are listed after %v", w.inv.NextPoll())
			}
		})
	}
}

func TestFailedNetworkListingIsNotRepeatedByOtherNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, everything, []cloud.Network{networkWith()}, onRecord())
	for _, test := range []struct {
		err    error
		silent time.Duration
	}{
		{errAway, 3 * time.Second}, {&cloud.Error{Kind: cloud.Throttled, RetryAfter: time.Minute}, time.Minute},
	} {
		w.fail(cloudfake.ListNetworks, test.err)
		w.advance(time.Hour)
		w.pass()
		w.wantCalls("list")
		w.advance(test.silent - time.Millisecond)
		w.pass()
		w.wantCalls()
		w.advance(time.Millisecond)
		w.pass()
		w.wantCalls("list")
	}
	w.advance(time.Hour)
	w.pass()
	w.wantCalls("list")

	ended, end := context.WithCancel(t.Context())
	end()
	w.advance(pollInterval)
	if _, err := w.inv.Networks(ended, w.now); !errors.Is(err, context.Canceled) {
		t.Errorf("Networks failed with %v, want the end of its context", err)
	}
	w.pass()
	w.wantCalls("list")
}
