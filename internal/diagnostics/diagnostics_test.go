package diagnostics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/diagnostics"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/testkit"
)

const cluster = "this-cluster"

func TestCheckAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, address, want string }{
		{"off", "0", ""},
		{"not set", "", ""},
		{"loopback", "127.0.0.1:8082", ""},
		{"another of the loopback network", "127.0.0.2:8082", ""},
		{"loopback of IPv6", "[::1]:8082", ""},
		{"localhost", "localhost:8082", ""},
		{"all addresses", ":8082", "is no loopback address"},
		{"all addresses of IPv4", "0.0.0.0:8082", "is no loopback address"},
		{"an address of the network", "10.0.0.1:8082", "is no loopback address"},
		{"a name", "localhost.example.com:8082", "is no loopback address"},
		{"no port", "127.0.0.1", "is no address and port"},
		{"a port that is none", "127.0.0.1:http", "is no port"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := diagnostics.CheckAddress(tc.address)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	handler := handlerOf(t, nil, func() bool { return true })
	standby := handlerOf(t, nil, func() bool { return false })
	for _, tc := range []struct {
		name               string
		handler            http.Handler
		method, host, path string
		status             int
		reason             string
	}{
		{"a page of another site whose name resolves to this machine", handler, http.MethodGet, "evil.example.com:8082", wire.VersionPath, http.StatusForbidden, wire.Invalid},
		{"an address that is not loopback", handler, http.MethodGet, "10.0.0.1:8082", wire.MetricsPath, http.StatusForbidden, wire.Invalid},
		{"no host", handler, http.MethodGet, "", wire.VersionPath, http.StatusForbidden, wire.Invalid},
		{"a write", handler, http.MethodPost, "127.0.0.1:8082", wire.VersionPath, http.StatusMethodNotAllowed, wire.Invalid},
		{"a deletion", handler, http.MethodDelete, "localhost", wire.CloudsPath + "home", http.StatusMethodNotAllowed, wire.Invalid},
		{"a path that does not exist", handler, http.MethodGet, "localhost:8082", "/v2/clouds", http.StatusNotFound, wire.NotFound},
		{"a Cloud that does not exist", handler, http.MethodGet, "[::1]:8082", wire.CloudsPath + "other", http.StatusNotFound, wire.NotFound},
		{"a Cloud of another manager", handler, http.MethodGet, "localhost", wire.CloudsPath + "west", http.StatusNotFound, wire.NotFound},
		{"servers without a state", handler, http.MethodGet, "localhost", wire.CloudsPath + "home/servers", http.StatusBadRequest, wire.Invalid},
		{"servers of a Cloud that was not listed", handler, http.MethodGet, "localhost", wire.CloudsPath + "home/servers?state=unmanaged", http.StatusConflict, wire.Unavailable},
		{"the Clouds of a standby", standby, http.MethodGet, "localhost", wire.AllClouds, http.StatusServiceUnavailable, wire.NotLeading},
		{"a Cloud on a standby", standby, http.MethodGet, "localhost", wire.CloudsPath + "home", http.StatusServiceUnavailable, wire.NotLeading},
		{"servers on a standby", standby, http.MethodGet, "localhost", wire.CloudsPath + "home/servers?state=orphaned", http.StatusServiceUnavailable, wire.NotLeading},
		{"steps on a standby", standby, http.MethodGet, "localhost", wire.ObjectsPath + "VM/dev/web", http.StatusServiceUnavailable, wire.NotLeading},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var answered wire.Error
			status := ask(t, tc.handler, tc.method, tc.host, tc.path, &answered)
			if status != tc.status || answered.Reason != tc.reason || answered.Message == "" {
				t.Errorf("%d, %+v; want %d, %s", status, answered, tc.status, tc.reason)
			}
		})
	}
}

func TestStandbySaysSo(t *testing.T) {
	t.Parallel()
	var version wire.Version
	ask(t, handlerOf(t, nil, func() bool { return false }), http.MethodGet, "localhost", wire.VersionPath, &version)
	if diff := cmp.Diff(wire.Version{Version: "v1"}, version); diff != "" {
		t.Errorf("version (-want +got):\n%s", diff)
	}
}

func TestCloudsAreThoseOfTheManager(t *testing.T) {
	t.Parallel()
	var clouds wire.Clouds
	ask(t, handlerOf(t, nil, nil), http.MethodGet, "localhost", wire.AllClouds, &clouds)
	if diff := cmp.Diff([]string{"home", "home-again"}, clouds.Names); diff != "" {
		t.Errorf("Clouds (-want +got):\n%s", diff)
	}
}

func TestMissingVMsAreListedWhileTheBrakeIsOn(t *testing.T) {
	t.Parallel()
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	vm := func(namespace, name string, change ...func(*pcapi.VM)) client.Object {
		return testkit.VM(namespace, name, func(v *pcapi.VM) {
			v.Status.VMID, v.Status.Cloud, v.Status.CreatedTime = "id-"+name, "home", &long
			for _, apply := range change {
				apply(v)
			}
		})
	}
	objects := []client.Object{
		vm("dev", "listed"),
		vm("dev", "lost", func(v *pcapi.VM) { v.Status.State = pcapi.VMStateLost }),
		vm("dev", "observed", func(v *pcapi.VM) { v.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly }),
		vm("dev", "elsewhere", func(v *pcapi.VM) { v.Status.Cloud = "west" }),
		vm("dev", "pending", func(v *pcapi.VM) { v.Status.VMID = "" }),
		vm("dev", "going", func(v *pcapi.VM) {
			v.DeletionTimestamp, v.Finalizers = &long, []string{pcapi.VMFinalizer}
		}),
		vm("dev", "new", func(v *pcapi.VM) { v.Status.CreatedTime = new(metav1.Now()) }),
		vm("prod", "a"),
	}
	want := []wire.MissingVM{}
	for i := range 11 {
		name := fmt.Sprintf("m%02d", i)
		objects = append(objects, vm("dev", name))
		if i < 10 {
			want = append(want, wire.MissingVM{Namespace: "dev", Name: name, ID: "id-" + name})
		}
	}
	braked := true
	prepare := func(home *inventory.Inventory) {
		home.Configure(inventory.Settings{PollInterval: time.Second, SettleTime: time.Minute})
		home.Brake(braked)
		publish(t, home, []cloud.Server{{ID: "id-listed", Name: "listed", State: cloud.StateActive}})
	}
	var got wire.Cloud
	ask(t, handlerWith(t, nil, prepare, objects...), http.MethodGet, "localhost", wire.CloudsPath+"home", &got)
	if diff := cmp.Diff(&wire.Missing{Count: 12, VMs: want}, got.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	braked, got = false, wire.Cloud{}
	ask(t, handlerWith(t, nil, prepare, objects...), http.MethodGet, "localhost", wire.CloudsPath+"home", &got)
	if got.Missing != nil {
		t.Errorf("the brake is off: %+v, want none", got.Missing)
	}
}

func TestServers(t *testing.T) {
	t.Parallel()
	labels := func(cluster, uid string) map[string]string {
		return map[string]string{inventory.ClusterLabel: cluster, inventory.UIDLabel: uid, inventory.NamespaceLabel: "dev", inventory.NameLabel: "former"}
	}
	servers := []cloud.Server{
		{ID: "1", Name: "stranger", State: cloud.StateStopped, CPU: 2, MemoryMiB: 1536, Folder: "f", Zone: "z", Image: cloud.Image{Name: "debian"}},
		{ID: "3", Name: "alike", State: cloud.StateActive}, {ID: "2", Name: "alike", State: cloud.StateActive},
		{ID: "4", Name: "recorded", State: cloud.StateActive},
		{ID: "5", Name: "recorded-by-the-other-cloud", State: cloud.StateActive},
		{ID: "6", Name: "wanted", State: cloud.StateActive},
		{ID: "7", Name: "claimed", State: cloud.StateActive},
		{ID: "8", Name: "labelled", State: cloud.StateActive, Labels: labels(cluster, "uid-of-new")},
		{ID: "9", Name: "orphan", State: cloud.StateActive, Labels: labels(cluster, "gone")},
		{ID: "10", Name: "going", State: cloud.StateDeleting, Labels: labels(cluster, "gone")},
		{ID: "11", Name: "foreign", State: cloud.StateActive, Labels: labels("other-cluster", "x")},
	}
	vm := func(name string, change func(*pcapi.VM)) *pcapi.VM {
		v := testkit.VM("dev", name, func(v *pcapi.VM) {
			v.UID = types.UID("uid-of-" + name)
			v.Spec.CloudRef = &pcapi.CloudReference{Name: "home"}
		})
		change(v)
		return v
	}
	objects := []client.Object{
		vm("recorded", func(v *pcapi.VM) { v.Status.VMID, v.Status.Cloud = "4", "home" }),
		vm("other", func(v *pcapi.VM) { v.Status.VMID, v.Status.Cloud = "5", "home-again" }),
		vm("elsewhere", func(v *pcapi.VM) { v.Status.VMID, v.Status.Cloud = "1", "west" }), // an id of another cloud
		vm("wants", func(v *pcapi.VM) { v.Spec.Import = &pcapi.VMImport{VMID: "6"} }),
		vm("hides", func(v *pcapi.VM) { v.Spec.Import = &pcapi.VMImport{VMID: "2"} }), // which the Cloud does not allow
		vm("claims", func(v *pcapi.VM) {
			v.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: "claimed", pcapi.ClaimedCloudAnnotation: "home"}
		}),
		vm("new", func(*pcapi.VM) {}),
	}
	handler := handlerOf(t, servers, nil, objects...)
	counts := wire.Counts{Managed: 5, Unmanaged: 3, Orphaned: 1, OtherClusters: 1}
	for state, want := range map[string][]wire.Server{
		wire.StateUnmanaged: {
			{ID: "2", Name: "alike", State: "ACTIVE"}, {ID: "3", Name: "alike", State: "ACTIVE"},
			{ID: "1", Name: "stranger", State: "STOPPED", CPU: 2, MemoryMiB: 1536, Folder: "f", Zone: "z", Image: "debian"},
		},
		wire.StateOrphaned: {{ID: "9", Name: "orphan", State: "ACTIVE", Owner: &wire.Owner{Namespace: "dev", Name: "former", UID: "gone"}}},
	} {
		var got wire.Servers
		if status := ask(t, handler, http.MethodGet, "localhost", wire.CloudsPath+"home/servers?state="+state, &got); status != http.StatusOK {
			t.Fatalf("%s: status %d", state, status)
		}
		if diff := cmp.Diff(want, got.Servers); diff != "" || got.Counts != counts {
			t.Errorf("%s: %+v, want %+v; servers (-want +got):\n%s", state, got.Counts, counts, diff)
		}
	}
}

func TestServeEndsWithTheManager(t *testing.T) {
	t.Parallel()
	address, err := testkit.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- diagnostics.NewServer(address.String(), handlerOf(t, nil, nil)).Start(ctx) }()
	for deadline := time.Now().Add(10 * time.Second); ; {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address.String())
		if err == nil {
			_ = connection.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := diagnostics.NewServer("0.0.0.0:0", nil).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no loopback address") {
		t.Errorf("served at all addresses: %v", err)
	}
}

// handlerOf returns the handler of a manager of the Clouds without the label shard, of which
// home has been listed if there are servers.
func handlerOf(t *testing.T, servers []cloud.Server, leading func() bool, objects ...client.Object) http.Handler {
	t.Helper()
	return handlerWith(t, leading, func(home *inventory.Inventory) {
		if servers != nil {
			publish(t, home, servers)
		}
	}, objects...)
}

// handlerWith is handlerOf with the inventory of the Cloud home as prepare leaves it.
func handlerWith(t *testing.T, leading func() bool, prepare func(home *inventory.Inventory), objects ...client.Object) http.Handler {
	t.Helper()
	scheme, err := testkit.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	scope, err := tenancy.ParseScope("!shard")
	if err != nil {
		t.Fatal(err)
	}
	for name, endpoint := range map[string]string{"home": "https://cloud.test", "home-again": "https://cloud.test/", "west": "https://west.test"} {
		c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pcapi.CloudSpec{Endpoint: endpoint}}
		if name == "home" {
			c.Spec.Imports, c.Spec.Importable = pcapi.ImportPolicyListed, []pcapi.ImportableVM{{VMID: "6", Namespace: "dev"}}
		}
		if name == "west" {
			c.Labels = map[string]string{"shard": "west"}
		}
		objects = append(objects, c)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := tenancy.IndexByIdentity(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	directory := inventory.New(time.Now, cluster)
	prepare(directory.Cloud("home"))
	return diagnostics.NewHandler(diagnostics.Options{
		Version: "v1", Cluster: cluster, Scope: scope, Cache: builder.Build(), Directory: directory, Metrics: prometheus.NewRegistry(), Leading: leading,
	})
}

// indexer registers indexes with a client in memory.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(obj, field, extract)
	return nil
}

func publish(t *testing.T, inv *inventory.Inventory, servers []cloud.Server) {
	t.Helper()
	listed, err := inventory.List(t.Context(), lister{servers: servers}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	inv.Publish(listed)
}

// lister lists servers in one page.
type lister struct {
	cloud.ServerReader
	servers []cloud.Server
}

func (l lister) ListServers(context.Context, cloud.ListServers) (cloud.ServerPage, error) {
	return cloud.ServerPage{Servers: l.servers}, nil
}

func ask(t *testing.T, handler http.Handler, method, host, path string, into any) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	request.Host = host
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	if err := json.Unmarshal(recorder.Body.Bytes(), into); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", recorder.Body, err))
	}
	return recorder.Code
}
