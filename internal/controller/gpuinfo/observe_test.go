package gpuinfo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// reader answers List with Nodes and Get with GPUInfos. It records which GPUInfos were read
// in a way that waits for the client's own writes, and calls onWait before it answers such a
// read.
type reader struct {
	client.Client
	items  []pcapi.GPUInfo
	nodes  []corev1.Node
	vms    []pcapi.VM
	lists  int
	waited []string
	onWait func()
	err    error
}

func (s *reader) Get(_ context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if !(&client.GetOptions{}).ApplyOptions(opts).DisableReadYourWritesConsistency {
		s.waited = append(s.waited, key.Name)
		if s.onWait != nil {
			s.onWait()
		}
	}
	if s.err != nil {
		return s.err
	}
	for i := range s.items {
		if client.ObjectKeyFromObject(&s.items[i]) == key {
			s.items[i].DeepCopyInto(o.(*pcapi.GPUInfo))
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "gpuinfos"}, key.Name)
}

func (s *reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *corev1.NodeList:
		s.lists++
		list.Items = s.nodes
	case *pcapi.VMList:
		list.Items = s.vms
	}
	return nil
}

func TestObserveNodesLooksUpServersOncePerListing(t *testing.T) {
	begun := noon
	inv := inventory.New(func() time.Time { return begun }, "cluster").Cloud("default")
	publish := func(state cloud.State, names ...string) {
		t.Helper()
		c := cloudfake.New(cloudfake.Options{})
		for _, name := range names {
			c.AddServers(cloud.Server{ID: "s" + name, Name: name, State: state})
		}
		snap, err := inventory.List(t.Context(), c, func() time.Time { return begun })
		if err != nil {
			t.Fatal(err)
		}
		inv.Publish(snap)
	}
	s := &reader{}
	k := &kind{client: s, named: map[string]named{}, collector: newCollector(enqueueDelay)}
	look := func(nodes ...string) map[string][]cloud.Server {
		t.Helper()
		s.nodes = nil
		for _, name := range nodes {
			s.nodes = append(s.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		k.enqueueAll(finderOf(t)).Create(t.Context(), event.CreateEvent{Object: &corev1.Node{}}, immediate{})
		obs := &observation{cloud: "default"}
		if err := k.observeNodes(t.Context(), obs, inv, inv.View().Snapshot.Revision(), pcapi.CloudTypeREST); err != nil {
			t.Fatal(err)
		}
		if len(obs.nodes) != len(nodes) {
			t.Errorf("got %d nodes, want %d", len(obs.nodes), len(nodes))
		}
		return obs.servers
	}

	publish(cloud.StateActive, "n1", "n2", "vm")
	first := &look("n1")["n1"][0]
	second := look("n1", "n2")
	if len(second["n1"]) != 1 || len(second["n2"]) != 1 || len(second["vm"]) != 0 {
		t.Fatalf("got %v, want the servers of both nodes", second)
	}
	if first != &second["n1"][0] {
		t.Error("n1 was looked up twice in one listing")
	}
	begun = noon.Add(time.Minute)
	publish(cloud.StateStopped, "n1")
	third := look("n1", "n2")
	if len(third["n1"]) != 1 || third["n1"][0].State != cloud.StateStopped || len(third["n2"]) != 0 {
		t.Errorf("got %v, want what the later listing says", third)
	}
	watched := cloudfake.New(cloudfake.Options{})
	inv.Connect(watched, nil)
	if err := inv.Apply(watched, cloud.Change{Servers: []cloud.Server{{ID: "sn2", Name: "n2", State: cloud.StateActive}}}); err != nil {
		t.Fatal(err)
	}
	if fourth := look("n1", "n2"); len(fourth["n2"]) != 1 {
		t.Errorf("got %v, want what the cloud reported since", fourth)
	}
}

func TestServerOfNodeIsThatOfItsProviderIDElseOfItsNameInAnyCase(t *testing.T) {
	const id, other = "6f0f2c1e-4f0e-5d0a-9a57-0c6f0a1f7b11", "0b5c1c9e-1111-4222-8333-444455556666"
	inv := inventory.New(func() time.Time { return noon }, "cluster").Cloud("default")
	c := cloudfake.New(cloudfake.Options{})
	c.AddServers(cloud.Server{ID: id, Name: "some-vm"}, cloud.Server{ID: other, Name: "GPU-7.example.com"},
		cloud.Server{ID: "s1", Name: "twice"}, cloud.Server{ID: "s2", Name: "Twice"})
	snap, err := inventory.List(t.Context(), c, func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	inv.Publish(snap)
	for name, test := range map[string]struct {
		node, providerID, uuid string
		api                    pcapi.CloudType
		want                   []string
	}{
		"vsphere":                 {node: "n", providerID: "vsphere://" + id, want: []string{id}},
		"vsphere in upper case":   {node: "n", providerID: "vsphere://" + strings.ToUpper(id), want: []string{id}},
		"openstack":               {node: "n", providerID: "openstack:///" + id, want: []string{id}},
		"openstack with a region": {node: "n", providerID: "openstack://region-1/" + id, want: []string{id}},
		"its name is that of another server: its id": {node: "gpu-7.example.com", providerID: "openstack:///" + id, want: []string{id}},
		"an id of another cloud: none":               {node: "gpu-7.example.com", providerID: "openstack:///" + strings.Repeat("0", 36)},
		"an id of another vCenter, REST: none":       {node: "gpu-7.example.com", providerID: "vsphere://" + strings.Repeat("0", 36)},
		"the BIOS UUID in a vCenter: its name":       {node: "gpu-7.example.com", providerID: "vsphere://" + strings.Repeat("0", 36), api: pcapi.CloudTypeVSphere, want: []string{other}},
		"another scheme: its name":                   {node: "gpu-7.example.com", providerID: "k3s://gpu-7", want: []string{other}},
		"no providerID: its name in any case":        {node: "gpu-7.example.com", want: []string{other}},
		"two servers with names that are alike":      {node: "twice", want: []string{"s1", "s2"}},
		"privatecloud":                               {node: "n", providerID: "privatecloud:///s2", want: []string{"s2"}},
		"no providerID: its system UUID":             {node: "twice", uuid: id, want: []string{id}},
		"another scheme: its system UUID":            {node: "twice", providerID: "k3s://twice", uuid: id, want: []string{id}},
		"an unknown system UUID: its name":           {node: "gpu-7.example.com", uuid: strings.Repeat("0", 36), want: []string{other}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			found, _ := serversOf(node{name: test.node, providerID: test.providerID, uuid: test.uuid}, inv, test.api)
			for _, s := range found {
				got = append(got, s.ID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
		})
	}
}

// A tenant names a VM like a Node, on a cloud with labels and on one without.
func TestServersOfVMsAreNotThoseOfNodesByName(t *testing.T) {
	own := map[string]string{inventory.UIDLabel: "uid", inventory.ClusterLabel: "cluster"}
	for name, test := range map[string]struct {
		server     cloud.Server
		vms        []pcapi.VM
		providerID string
		want       []string
	}{
		"a server of nobody":                       {server: cloud.Server{ID: "s2", Name: "N1"}, want: []string{"s1", "s2"}},
		"that of a VM, by its labels":              {server: cloud.Server{ID: "s2", Name: "N1", Labels: own}, want: []string{"s1"}},
		"that of a VM, by its status":              {server: cloud.Server{ID: "s2", Name: "N1"}, vms: []pcapi.VM{{Status: pcapi.VMStatus{VMID: "s2"}}}, want: []string{"s1"}},
		"that of a VM which the Node itself names": {server: cloud.Server{ID: "s2", Name: "N1", Labels: own}, providerID: "privatecloud:///s2", want: []string{"s2"}},
	} {
		t.Run(name, func(t *testing.T) {
			inv := inventory.New(func() time.Time { return noon }, "cluster").Cloud("default")
			c := cloudfake.New(cloudfake.Options{})
			c.AddServers(cloud.Server{ID: "s1", Name: "n1"}, test.server)
			snap, err := inventory.List(t.Context(), c, func() time.Time { return noon })
			if err != nil {
				t.Fatal(err)
			}
			inv.Publish(snap)
			node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{ProviderID: test.providerID}}
			k := newKind(&reader{nodes: []corev1.Node{node}, vms: test.vms}, controller.Options{Cluster: "cluster"})
			obs := &observation{cloud: "default"}
			if err := k.observeNodes(t.Context(), obs, inv, inv.View().Snapshot.Revision(), pcapi.CloudTypeREST); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range obs.servers[obs.nodes[0].key()] {
				got = append(got, s.ID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("servers of the Node (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodesAreReadAgainWhenOneHasChanged(t *testing.T) {
	nodes := []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}
	for name, change := range map[string]func(handler.EventHandler){
		"a node is created": func(h handler.EventHandler) { h.Create(t.Context(), event.CreateEvent{Object: &nodes[0]}, immediate{}) },
		"a node changes": func(h handler.EventHandler) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: &nodes[0], ObjectNew: &nodes[0]}, immediate{})
		},
		"a node is deleted": func(h handler.EventHandler) { h.Delete(t.Context(), event.DeleteEvent{Object: &nodes[0]}, immediate{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &reader{}
			k := newKind(s, controller.Options{})
			for _, want := range []struct{ listed, reads int }{{0, 1}, {0, 1}, {1, 2}, {1, 2}} {
				if want.listed != len(s.nodes) {
					s.nodes = nodes
					change(k.enqueueAll(finderOf(t)))
				}
				if got, err := k.nodes.read(t.Context(), s); err != nil || len(got) != want.listed || s.lists != want.reads {
					t.Errorf("got %d nodes with %d reads, %v; want %d with %d", len(got), s.lists, err, want.listed, want.reads)
				}
			}
		})
	}
}

func TestServersByNodeAreForgottenWithTheirCloud(t *testing.T) {
	s := &reader{nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}}
	k := &kind{client: s, named: map[string]named{}}
	inv := inventory.New(func() time.Time { return noon }, "cluster").Cloud("gone")
	if err := k.observeNodes(t.Context(), &observation{cloud: "gone"}, inv, 1, pcapi.CloudTypeREST); err != nil || len(k.named) != 1 {
		t.Fatalf("%d Clouds are cached, %v; want 1", len(k.named), err)
	}
	k.forgetLostClouds().Delete(t.Context(), event.DeleteEvent{Object: &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}}, nil)
	if len(k.named) != 0 {
		t.Errorf("the deleted Cloud is still cached: %v", k.named)
	}
}

func TestServersByNodeAreForgottenWhenTheirCloudIsAnotherManagers(t *testing.T) {
	scope, err := tenancy.ParseScope("shard!=east")
	if err != nil {
		t.Fatal(err)
	}
	k := &kind{scope: scope, named: map[string]named{"home": {}}}
	for _, tc := range []struct {
		shard string
		left  int
	}{{shard: "west", left: 1}, {shard: "east", left: 0}} {
		moved := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home", Labels: map[string]string{"shard": tc.shard}}}
		k.forgetLostClouds().Update(t.Context(), event.UpdateEvent{ObjectOld: &pcapi.Cloud{}, ObjectNew: moved}, nil)
		if len(k.named) != tc.left {
			t.Errorf("%d Clouds are cached once the Cloud has shard=%s, want %d", len(k.named), tc.shard, tc.left)
		}
	}
}

// newObserver returns a kind that reads these objects.
func newObserver(t *testing.T, objects ...client.Object) *kind {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	return newKind(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), controller.Options{
		Directory: inventory.New(func() time.Time { return noon }, "cluster"),
		Clock:     func() time.Time { return noon }, Elapsed: func() time.Duration { return 0 },
	})
}

func TestObserveWithoutAccess(t *testing.T) {
	home := func(selector *metav1.LabelSelector) *pcapi.Cloud {
		return &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: pcapi.CloudSpec{
			Endpoint: "https://cloud.internal", CredentialsSecretRef: &pcapi.SecretReference{Name: "login"}, AllowedNamespaces: selector,
		}}
	}
	on := func(gpu *pcapi.GPUInfo) { gpu.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} }
	teamA := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}}
	jobs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}}
	const denied = `Cloud "home" does not exist, or namespace "jobs" may not use it: choose another in spec.cloudRef, or ask an administrator`
	for name, test := range map[string]struct {
		objects []client.Object
		gpu     *pcapi.GPUInfo
		want    error
	}{
		"the namespace is not in the cache, a cloudRef: a quiet wait": {
			[]client.Object{home(teamA)}, asking(on),
			&reconciler.WaitError{After: time.Second, Reason: pcapi.ProgressingReason, Message: `namespace "jobs" has not been observed yet`, Quiet: true},
		},
		"the namespace is not in the cache, no cloudRef: a quiet wait": {
			nil, asking(),
			&reconciler.WaitError{After: time.Second, Reason: pcapi.ProgressingReason, Message: `namespace "jobs" has not been observed yet`, Quiet: true},
		},
		"the namespace has another label: refused": {
			[]client.Object{home(teamA), jobs}, asking(on), reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New(denied)),
		},
		"allowedNamespaces is no selector: refused": {
			[]client.Object{home(invalid), jobs}, asking(on), reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New(denied)),
		},
		"the Cloud does not exist: refused": {
			[]client.Object{jobs}, asking(on), reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New(denied)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newObserver(t, test.objects...)
			obs, err := k.Observe(t.Context(), test.gpu)
			if err != nil {
				t.Fatalf("Observe: %v", err)
			}
			got := obs.refused
			if got == nil {
				got = obs.unknown
			}
			text := cmp.Transformer("Text", func(err error) string { return err.Error() })
			if diff := cmp.Diff(test.want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Cause" }, text)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if len(k.named) != 0 {
				t.Errorf("something is cached: %v", k.named)
			}
		})
	}
}
