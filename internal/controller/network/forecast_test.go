package network

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// shown has the status show the network as the spec of netWith says.
func shown(net *pcapi.Network) {
	recorded(net)
	net.Status.CIDR, net.Status.Gateway = "10.0.0.0/24", "10.0.0.1"
}

func gateway(address string) func(*pcapi.Network) {
	return func(net *pcapi.Network) { net.Spec.Gateway = address }
}

// attachedVM is a VM with a server on the network of netWith.
func attachedVM() *pcapi.VM {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Finalizers: []string{pcapi.VMFinalizer}}}
	vm.Spec.NetworkRef, vm.Status.VMID = &pcapi.NetworkReference{Name: "net"}, "s1"
	return vm
}

func TestForecast(t *testing.T) {
	anyImports := func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyAny }
	without := func(c *pcapi.Cloud) { c.Status.Capabilities = []string{string(cloud.NetworkAttach)} }
	knowsDNS := func(c *pcapi.Cloud) {
		c.Status.Capabilities = []string{string(cloud.Idempotency), string(cloud.NetworkDNS), string(cloud.Networks)}
	}
	knowsDualStack := func(c *pcapi.Cloud) {
		c.Status.Capabilities = []string{string(cloud.DualStack), string(cloud.Idempotency), string(cloud.Networks)}
	}
	knowsRouters := func(c *pcapi.Cloud) {
		c.Status.Capabilities = []string{string(cloud.Idempotency), string(cloud.Networks), string(cloud.Routers)}
	}
	// routed has the status show a router that was connected for ext-net, which had the id e1 then.
	routed := func(external, id string) func(*pcapi.Network) {
		return func(net *pcapi.Network) {
			requested(net)
			net.Status.Router.ExternalNetwork, net.Status.Router.ExternalNetworkID = external, id
		}
	}
	connect := decision{[]string{"{Update net n1 [router to ext-net] }"}, "in sync"}
	braked := func(c *pcapi.Cloud) { c.Status.BrakedSnapshot = "snapshot" }
	for name, tc := range map[string]struct {
		net    *pcapi.Network
		cloud  func(*pcapi.Cloud)
		others []client.Object
		want   decision
	}{
		"created":                     {netWith(), nil, nil, decision{[]string{"{Create net  [cidr 10.0.0.0/24 gateway 10.0.0.1] }"}, "in sync"}},
		"created without a gateway":   {netWith(gateway("")), nil, nil, decision{[]string{"{Create net  [cidr 10.0.0.0/24] }"}, "in sync"}},
		"the cloud cannot":            {netWith(), without, nil, decision{nil, "stalled: Unsupported, again in 10m0s"}},
		"the brake is on":             {netWith(), braked, nil, decision{nil, "blocked: Braked by Cloud/default"}},
		"nothing":                     {netWith(shown), nil, nil, decision{nil, "in sync"}},
		"another gateway":             {netWith(shown, gateway("10.0.0.9")), nil, nil, decision{[]string{"{Update net n1 [gateway 10.0.0.1 to 10.0.0.9] }"}, "in sync"}},
		"DNS servers":                 {netWith(asksFor("10.0.0.53")), knowsDNS, nil, decision{[]string{"{Create net  [cidr 10.0.0.0/24 gateway 10.0.0.1 dnsNameservers 10.0.0.53] }"}, "in sync"}},
		"other DNS servers":           {netWith(shown, asksFor("10.0.0.53")), knowsDNS, nil, decision{[]string{"{Update net n1 [dnsNameservers none to 10.0.0.53] }"}, "in sync"}},
		"an IPv6 range":               {netWith(withIPv6Range), knowsDualStack, nil, decision{[]string{"{Create net  [cidr 10.0.0.0/24 ipv6CIDR fd00:10::/64 gateway 10.0.0.1] }"}, "in sync"}},
		"an IPv6 range is added":      {netWith(shown, withIPv6Range), knowsDualStack, nil, decision{[]string{"{Update net n1 [ipv6CIDR none to fd00:10::/64] }"}, "in sync"}},
		"created with a router":       {netWith(routedTo("ext-net")), knowsRouters, nil, decision{[]string{"{Create net  [cidr 10.0.0.0/24 gateway 10.0.0.1 router to ext-net] }"}, "in sync"}},
		"a router is added":           {netWith(shown, routedTo("ext-net")), knowsRouters, nil, connect},
		"a router is attached":        {netWith(shown, routedTo("ext-net"), requested), knowsRouters, nil, decision{nil, "in sync"}},
		"a router to a renamed one":   {netWith(shown, routedTo("ext-net"), routed("wan", "e1")), knowsRouters, nil, decision{nil, "in sync"}},
		"a router to another network": {netWith(shown, routedTo("ext-net"), routed("wan", "e2")), knowsRouters, nil, connect},
		"a router to a namesake":      {netWith(shown, routedTo("ext-net"), routed("ext-net", "e2")), knowsRouters, nil, connect},
		"a router is detached":        {netWith(shown, routedTo("ext-net"), routed("", "")), knowsRouters, nil, connect},
		"a router, by name alone":     {netWith(shown, routedTo("ext-net"), func(net *pcapi.Network) { net.Status.Router = &pcapi.NetworkRouterStatus{ExternalNetwork: "ext-net"} }), knowsRouters, nil, decision{nil, "in sync"}},
		"another range":               {netWith(shown, func(net *pcapi.Network) { net.Spec.CIDR = "10.9.0.0/24" }), nil, nil, decision{nil, "stalled: Drift, again in 1m0s"}},
		"deleted":                     {netWith(shown, deleted), nil, nil, decision{[]string{"{Delete " + ownName + " n1 [] }"}, "in sync"}},
		"deleted, with a VM on it":    {netWith(shown, deleted), nil, []client.Object{attachedVM()}, decision{nil, "blocked: Blocked by VM/web"}},
		"imported":                    {netWith(importing), anyImports, nil, decision{nil, "in sync"}},
		"imported, and not allowed":   {netWith(importing), nil, nil, decision{nil, "stalled: Rejected, again in 10m0s"}},
		"imported, deleted":           {netWith(shown, importing, deleted), anyImports, nil, decision{nil, "in sync"}},
		"imported, with other values": {netWith(shown, importing, gateway("10.0.0.9")), anyImports, nil, decision{nil, "in sync"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			for _, capability := range everything {
				c.Status.Capabilities = append(c.Status.Capabilities, string(capability))
			}
			c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: pcapi.ConnectedReason}}
			if tc.cloud != nil {
				tc.cloud(c)
			}
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			objects := slices.Concat(tc.others, []client.Object{c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}})
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			was := tc.net.DeepCopy()
			forecast, err := NewForecaster(reader, "cluster", func() time.Time { return startTime }).Forecast(t.Context(), tc.net)
			if err != nil {
				t.Fatal(err)
			}
			got := decision{Outcome: describe(forecast.Outcome)}
			for i := range forecast.Changes {
				c := forecast.Changes[i]
				got.Steps = append(got.Steps, fmt.Sprintf("{%s %s %s %v %s}", c.Action, c.Name, c.ID, c.Details, c.IfStopNeeded))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("forecast (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(was, tc.net); diff != "" {
				t.Errorf("the forecast changed its input:\n%s", diff)
			}
		})
	}
}
