package clusternet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/privatecloud/operator/internal/probe"
)

func wantAllowed(t *testing.T, e *probe.Exclusion, want map[string]bool) {
	t.Helper()
	networks, err := probe.ParseNetworks("0.0.0.0/0,::/0")
	if err != nil {
		t.Fatal(err)
	}
	for address, allowed := range want {
		if got := networks.Except(e).Allows(netip.MustParseAddr(address)); got != allowed {
			t.Errorf("%s is allowed: %t, want %t", address, got, allowed)
		}
	}
}

func node(name string, podCIDRs []string, addresses ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: podCIDRs}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Address: a})
	}
	return n
}

func TestNodesAreExcludedWhileTheyExist(t *testing.T) {
	e := probe.NewExclusion()
	h := nodeHandler{e}
	n1 := node("n1", []string{"10.244.1.0/24", "fd00:244:1::/64", "no network"}, "n1", "10.0.0.5", "2a00::5", "fe80::1%eth0", "n1.example.com", "::ffff:10.0.0.8")
	h.OnAdd(n1, true)
	h.OnAdd(node("n2", nil, "10.0.0.6"), false)
	h.OnAdd("no Node", false)
	wantAllowed(t, e, map[string]bool{
		"10.0.0.4": true, "10.0.0.5": false, "10.0.0.6": false, "10.0.0.8": false, "2a00::5": false,
		"10.244.1.77": false, "10.244.2.77": true, "fd00:244:1::77": false, "fd00:244:2::77": true,
	})
	h.OnUpdate(n1, node("n1", []string{"10.244.2.0/24"}, "10.0.0.7"))
	wantAllowed(t, e, map[string]bool{"10.0.0.5": true, "10.0.0.7": false, "10.244.1.77": true, "10.244.2.77": false})
	h.OnDelete(n1)
	h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "n2", Obj: node("n2", nil)})
	h.OnDelete("no Node")
	wantAllowed(t, e, map[string]bool{"10.0.0.6": true, "10.0.0.7": true, "10.244.2.77": true})
}

func network(text string) *net.IPNet {
	address, network, err := net.ParseCIDR(text)
	if err != nil {
		panic(err)
	}
	network.IP = address
	return network
}

// onHost returns a platform on a host with interfaces, in a Pod if local is not empty, and what it
// reads from.
func onHost(t *testing.T, local string, objects ...client.Object) *platform {
	t.Helper()
	p := &platform{
		api:         fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build(),
		nodesSynced: func() bool { return true }, to: probe.NewExclusion(),
		servers: []string{"10.96.0.1", "api.example.com"},
		lookup: func(_ context.Context, network, host string) ([]netip.Addr, error) {
			if network != "ip" || host != "api.example.com" {
				t.Errorf("look-up of %s %s", network, host)
			}
			return []netip.Addr{netip.MustParseAddr("10.0.9.1"), netip.MustParseAddr("2a00:9::1")}, nil
		},
		interfaces: func() ([]net.Addr, error) {
			return []net.Addr{network("127.0.0.1/8"), network("10.244.1.5/24"), network("fd00:1::5/64"), network("10.20.0.5/16")}, nil
		},
	}
	if local != "" {
		p.local = func(context.Context) (net.Addr, error) { return &net.UDPAddr{IP: net.ParseIP(local), Port: 4711}, nil }
	}
	return p
}

func kubernetes(addresses ...string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: addresses[:1]}, {Addresses: addresses[1:]}},
	}
}

func serviceCIDR(name string, cidrs ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: cidrs}}
}

func TestPlatformIsExcluded(t *testing.T) {
	other := kubernetes("10.0.8.9", "10.0.8.8")
	other.Namespace = "tenant"
	objects := []client.Object{
		kubernetes("10.0.0.10", "10.0.0.11", "10.0.0.12"), other,
		serviceCIDR("kubernetes", "10.96.0.0/16", "fd00:96::/112", "no network"), serviceCIDR("more", "10.97.0.0/24"),
	}
	for name, test := range map[string]struct {
		local string
		node  *corev1.Node
		want  map[string]bool
	}{
		"the API server and Services": {"", nil, map[string]bool{
			"10.0.0.10": false, "10.0.0.11": false, "10.0.0.12": false, "10.0.0.13": true, "10.0.8.8": true,
			"10.0.9.1": false, "2a00:9::1": false, "10.96.0.1": false, "10.96.77.1": false, "10.97.0.7": false, "10.97.1.7": true, "fd00:96::7": false,
		}},
		"outside of a Pod: only the addresses of the host": {"", nil, map[string]bool{
			"10.244.1.5": false, "10.244.1.6": true, "fd00:1::5": false, "fd00:1::6": true, "10.20.0.5": false, "10.20.0.6": true,
		}},
		"in a Pod: the network of Pods, but not that of another interface": {"10.244.1.5", nil, map[string]bool{
			"10.244.1.5": false, "10.244.1.6": false, "10.244.2.6": true, "fd00:1::5": false, "fd00:1::6": true, "10.20.0.5": false, "10.20.0.6": true,
		}},
		"in a Pod with IPv6": {"fd00:1::5", nil, map[string]bool{"10.244.1.6": true, "fd00:1::6": false, "fd00:1:0:1::6": true}},
		"on the network of the host: VMs may be there": {"10.20.0.5", node("n1", nil, "10.20.0.5"), map[string]bool{
			"10.20.0.5": false, "10.20.0.6": true, "10.244.1.6": true,
		}},
		"in a network with other Nodes: VMs may be there": {"10.20.0.5", node("n1", nil, "10.20.7.7"), map[string]bool{
			"10.20.0.5": false, "10.20.0.6": true, "10.20.7.7": false,
		}},
		"a Node whose Pods are in the network of the Pod": {"10.244.1.5", node("n1", []string{"10.244.1.0/25"}, "10.0.0.5"), map[string]bool{
			"10.244.1.6": false, "10.244.1.200": false,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := onHost(t, test.local, objects...)
			if test.node != nil {
				nodeHandler{p.to}.OnAdd(test.node, true)
			}
			if err := p.read(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantAllowed(t, p.to, test.want)
		})
	}
}

func TestPlatformThatPublishesNothing(t *testing.T) {
	p := onHost(t, "")
	if err := p.read(t.Context()); err != nil {
		t.Errorf("without EndpointSlice and ServiceCIDRs: %v", err)
	}
	p.api = interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "networking.k8s.io", Kind: "ServiceCIDR"}}
	}})
	if err := p.read(t.Context()); err != nil {
		t.Errorf("before Kubernetes 1.33: %v", err)
	}
	wantAllowed(t, p.to, map[string]bool{"10.96.0.1": false, "10.96.0.2": true})
}

func TestWhatCannotBeReadStaysExcluded(t *testing.T) {
	failure := errors.New("no answer")
	p := onHost(t, "10.244.1.5", kubernetes("10.0.0.10", "10.0.0.11"), serviceCIDR("kubernetes", "10.96.0.0/16"))
	if err := p.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.lookup = func(context.Context, string, string) ([]netip.Addr, error) { return nil, failure }
	if err := p.read(t.Context()); err != nil {
		t.Errorf("a name that cannot be resolved: %v, want no error, since a proxy may resolve it", err)
	}
	working := p.api
	p.api = interceptor.NewClient(working.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return failure
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return failure },
	})
	if err := p.read(t.Context()); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	p.api = working
	p.local = func(context.Context) (net.Addr, error) { return nil, failure }
	if err := p.read(t.Context()); err != nil {
		t.Errorf("without a route to the API server: %v, want no error, since a proxy may have one", err)
	}
	wantAllowed(t, p.to, map[string]bool{"10.244.1.6": false})
	p.interfaces = func() ([]net.Addr, error) { return nil, failure }
	if err := p.read(t.Context()); !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
	wantAllowed(t, p.to, map[string]bool{"10.0.0.10": false, "10.96.7.7": false, "10.0.9.1": false, "10.244.1.5": false, "10.244.1.6": false})
}

func TestReadsThatAreForbiddenDoNotPreventProbes(t *testing.T) {
	p := onHost(t, "10.244.1.5", kubernetes("10.0.0.10", "10.0.0.11"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}, "kubernetes", errors.New("no right"))
	p.api = interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return forbidden
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return forbidden
		},
	})
	if err := p.read(t.Context()); err != nil {
		t.Errorf("error %v, want none: probes that worked before an upgrade go on", err)
	}
	wantAllowed(t, p.to, map[string]bool{"10.0.0.10": true, "10.96.0.1": false, "10.244.1.6": false})
}

func TestLookUpThatHangsDelaysNoOtherRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := onHost(t, "10.244.1.5", kubernetes("10.0.0.10", "10.0.0.11"))
		p.lookup = func(ctx context.Context, _, _ string) ([]netip.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }
		p.local = func(ctx context.Context) (net.Addr, error) { <-ctx.Done(); return nil, ctx.Err() }
		if err := p.read(t.Context()); err != nil {
			t.Errorf("error %v, want none", err)
		}
		wantAllowed(t, p.to, map[string]bool{"10.0.0.10": false, "10.244.1.5": false, "10.244.1.6": true})
	})
}

// TestExclusionIsCompleteOnceAllWasRead starts before the Nodes are known, while the API server does
// not answer.
func TestExclusionIsCompleteOnceAllWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := onHost(t, "", kubernetes("10.0.0.10", "10.0.0.11"))
		var synced, fails atomic.Bool
		var reads atomic.Int32
		fails.Store(true)
		p.nodesSynced = synced.Load
		p.api = interceptor.NewClient(p.api.(client.WithWatch), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
				reads.Add(1)
				if fails.Load() {
					return errors.New("no answer")
				}
				return c.Get(ctx, key, into, options...)
			},
		})
		networks, err := probe.ParseNetworks("10.0.0.0/8")
		if err != nil {
			t.Fatal(err)
		}
		networks = networks.Except(p.to)
		wants := func(when string, complete bool, least, most int32) {
			t.Helper()
			if n := reads.Swap(0); networks.Complete() != complete || n < least || n > most {
				t.Errorf("%s: complete: %t after %d reads, want %t after %d to %d", when, networks.Complete(), n, complete, least, most)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.Start(ctx) }()
		<-time.After(time.Hour)
		wants("Nodes are not known", false, 0, 0)
		synced.Store(true)
		<-time.After(10 * time.Minute)
		wants("the API server does not answer", false, 12, 18)
		fails.Store(false)
		<-time.After(2 * time.Minute)
		wants("the API server answers", true, 1, 2)
		wantAllowed(t, p.to, map[string]bool{"10.0.0.10": false})
		fails.Store(true)
		<-time.After(10 * time.Minute)
		wants("it does not answer again", true, 9, 11)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Start: %v", err)
		}
		wantAllowed(t, p.to, map[string]bool{"10.0.0.10": false})
	})
}

func TestStartEndsWhileNodesAreNotKnown(t *testing.T) {
	p := onHost(t, "")
	p.nodesSynced = func() bool { return false }
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := p.Start(ctx); err != nil || p.NeedLeaderElection() {
		t.Errorf("Start: %v, want none; needs the lease: %t", err, p.NeedLeaderElection())
	}
}

func TestLocalAddress(t *testing.T) {
	got, err := localAddress(t.Context(), "127.0.0.1")
	if err != nil || got.(*net.UDPAddr).IP.String() != "127.0.0.1" {
		t.Errorf("got %v, %v, want 127.0.0.1", got, err)
	}
}
