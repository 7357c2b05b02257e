package imports

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
)

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-name.", 10)
	for _, tc := range []struct {
		name    string
		used    names
		servers []string
		want    []string
	}{
		{"a valid name stays", names{}, []string{"web-1"}, []string{"web-1"}},
		{"what names of objects lack becomes one dash inside", names{}, []string{"_Web  01.corp_"}, []string{"web-01-corp"}},
		{"the second of two alike gets a suffix of its id", names{}, []string{"Web", "web"}, []string{"web", "web-3da72209"}},
		{"the name of an object is not used", names{"web": true}, []string{"web"}, []string{"web-afe0784d"}},
		{"a name without ASCII gets one of its own", names{}, []string{"вебсервер"}, []string{"server-afe0784d"}},
		{"a long name is cut", names{}, []string{long}, []string{strings.TrimRight(strings.ReplaceAll(long, ".", "-")[:63], "-")}},
		{"a long name is cut for its suffix", names{}, []string{long, long}, []string{
			strings.TrimRight(strings.ReplaceAll(long, ".", "-")[:63], "-"), strings.TrimRight(strings.ReplaceAll(long, ".", "-")[:54], "-") + "-3da72209",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for i, server := range tc.servers {
				got = append(got, tc.used.next(server, fmt.Sprint("id-", i)))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzNames(f *testing.F) {
	f.Add("Web 01", "web-01")
	f.Add("", "--")
	f.Fuzz(func(t *testing.T, a, b string) {
		used := names{}
		first, second := used.next(a, "1"), used.next(b, "2")
		if first == second {
			t.Errorf("%q and %q both become %q", a, b, first)
		}
		for _, name := range []string{first, second} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("%q and %q become %q, %q: %v", a, b, first, second, problems)
			}
		}
	})
}

func TestPlan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		server wire.Server
		change func(*target)
		power  pcapi.PowerState
		why    string
	}{
		{name: "a server that runs has the default", server: wire.Server{ID: "1", Name: "web", State: "ACTIVE"}},
		{name: "a core cloud does not say", server: wire.Server{ID: "1", Name: "web"}},
		{name: "one that is stopped stays so", server: wire.Server{ID: "1", Name: "web", State: "STOPPED"}, power: pcapi.PowerOff},
		{name: "one that is suspended stays so", server: wire.Server{ID: "1", Name: "web", State: "SUSPENDED"}, power: pcapi.PowerSuspended},
		{name: "one that is built comes later", server: wire.Server{ID: "1", Name: "web", State: "BUILDING"}, why: "run this again"},
		{name: "one that is deleted does not come", server: wire.Server{ID: "1", Name: "web", State: "DELETING"}, why: "being deleted"},
		{name: "one in error is for a person", server: wire.Server{ID: "1", Name: "web", State: "ERROR"}, why: "repair or delete it"},
		{name: "an unknown state is for a person", server: wire.Server{ID: "1", Name: "web", State: "UNKNOWN"}, why: "its state is UNKNOWN"},
		{name: "letters of any script are allowed", server: wire.Server{ID: "1", Name: "вебсервер 1", State: "ACTIVE"}},
		{name: "a name that ends with a dash is not", server: wire.Server{ID: "1", Name: "web-"}, why: "not allowed in spec.vmname"},
		{name: "an empty name is not", server: wire.Server{ID: "1"}, why: "not allowed in spec.vmname"},
		{name: "63 characters are allowed", server: wire.Server{ID: "1", Name: strings.Repeat("ж", 63)}},
		{name: "64 are not", server: wire.Server{ID: "1", Name: strings.Repeat("ж", 64)}, why: "longer than the 63 characters"},
		{name: "a long id is not", server: wire.Server{ID: strings.Repeat("1", 129), Name: "web"}, why: "longer than the 128 characters"},
		{
			name: "one that is listed for another namespace is not", server: wire.Server{ID: "1", Name: "web"}, why: "to namespace prod",
			change: func(t *target) {
				t.policy.imports, t.policy.namespaceOf = pcapi.ImportPolicyListed, map[string]string{"1": "prod"}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := planner{target: target{namespace: "dev", isDefault: true, names: names{}}}
			if tc.change != nil {
				tc.change(&p.target)
			}
			vm, why := p.plan(tc.server)
			if tc.why == "" && (why != "" || p.planned != 1 || p.leftOut != 0) {
				t.Fatalf("left out: %q", why)
			}
			if !strings.Contains(why, tc.why) || vm.Spec.PowerState != tc.power {
				t.Errorf("%q, power state %q; want %q, %q", why, vm.Spec.PowerState, tc.why, tc.power)
			}
			if vm.Spec.CloudRef != nil {
				t.Error("the default Cloud of the namespace is named")
			}
		})
	}
}

func TestServersOfNodesAreLeftOut(t *testing.T) {
	t.Parallel()
	node := func(name, providerID, uuid string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID},
			Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: uuid}},
		}
	}
	for _, tc := range []struct {
		name   string
		node   *corev1.Node
		server wire.Server
		why    string
	}{
		{"the id in the providerID", node("n1", "openstack:///A1", ""), wire.Server{ID: "a1", Name: "web"}, "Node n1, whose providerID has its id"},
		{"the id after a region", node("n1", "openstack://east/a1", ""), wire.Server{ID: "a1", Name: "web"}, "Node n1, whose providerID has its id"},
		{"the system UUID", node("n1", "aws:///eu/i-1", "A1"), wire.Server{ID: "a1", Name: "web"}, "Node n1, whose system UUID is its id"},
		{"the name, in any case", node("n1", "", ""), wire.Server{ID: "a1", Name: "N1"}, "Node n1, which has its name"},
		{"the name in a vCenter, whose providerIDs have another UUID", node("n1", "vsphere://b", "b"), wire.Server{ID: "a1", Name: "n1"}, "Node n1, which has its name"},
		{"the name of a Node whose server is another one", node("n1", "privatecloud:///b", ""), wire.Server{ID: "a1", Name: "n1"}, ""},
		{"another server", node("n1", "", "b"), wire.Server{ID: "a1", Name: "web"}, ""},
		{"a Node without an id, a server without a name", node("n1", "openstack:///", ""), wire.Server{ID: "", Name: "web"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := planner{target: target{namespace: "dev", names: names{}}}
			p.target.nodes.add(tc.node)
			_, why := p.plan(tc.server)
			if (tc.why == "") != (why == "") || !strings.Contains(why, tc.why) || p.ofNodes != p.leftOut {
				t.Errorf("%q, %d servers of Nodes, want %q", why, p.ofNodes, tc.why)
			}
		})
	}
}

func TestReportSaysHowManyServersOfNodesAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		planner planner
		want    string
	}{
		{"left out", planner{ofNodes: 2, leftOut: 2}, "2 servers of Nodes of this cluster are not among them"},
		{"not known", planner{target: target{nodesUnknown: true}}, "since you may not list nodes"},
	} {
		var out bytes.Buffer
		report(&out, &tc.planner, wire.Servers{Cloud: "home"}, 0)
		if !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, out.String(), tc.want)
		}
	}
}

func TestPowerStateIsText(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := writer{format: formatYAML, out: &out}
	p := planner{target: target{namespace: "dev", names: names{}, cloud: "home"}}
	vm, _ := p.plan(wire.Server{ID: "1", Name: "007", State: "STOPPED"})
	if err := w.write(vm); err != nil {
		t.Fatal(err)
	}
	// Unquoted, Off is false and 007 a number.
	for _, line := range []string{`powerState: "Off"`, `vmname: "007"`, "cloudRef:\n    name: home"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%s lacks %s", out.String(), line)
		}
	}
}

func TestImportable(t *testing.T) {
	t.Parallel()
	entries := func(from, to int) (list []pcapi.ImportableVM) {
		for i := from; i < to; i++ {
			list = append(list, pcapi.ImportableVM{VMID: fmt.Sprint(i), Namespace: "dev"})
		}
		return list
	}
	for _, tc := range []struct {
		name                 string
		has, add             []pcapi.ImportableVM
		wantEntries, omitted int
	}{
		{"the entries that the Cloud has stay", entries(0, 3), entries(3, 5), 5, 0},
		{"one that is listed is not listed twice", entries(0, 3), entries(2, 4), 4, 0},
		{"more than 1000 are omitted", entries(0, 600), entries(600, 1010), 1000, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w, err := newWriter(&out, formatImportable, policyOf(&pcapi.Cloud{Spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, Importable: tc.has}}))
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range tc.add {
				w.allow(entry)
			}
			if err := w.end(); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(out.String(), "vmId:"); n != tc.wantEntries || w.omitted != tc.omitted {
				t.Errorf("%d entries, %d omitted; want %d, %d", n, w.omitted, tc.wantEntries, tc.omitted)
			}
		})
	}
}

func TestPatchThatWouldTakeSomethingAwayIsRefused(t *testing.T) {
	t.Parallel()
	_, err := newWriter(io.Discard, formatImportable, policyOf(&pcapi.Cloud{Spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}}))
	if err == nil || !strings.Contains(err.Error(), "is Any") {
		t.Errorf("%v, want that the Cloud allows all imports", err)
	}
	var out bytes.Buffer
	listed := pcapi.ImportableVM{VMID: "1", Namespace: "dev"}
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone, Importable: []pcapi.ImportableVM{listed}}}
	w, err := newWriter(&out, formatImportable, policyOf(c))
	if err != nil {
		t.Fatal(err)
	}
	w.allow(listed)
	if err := w.writePatch(); err != nil || out.Len() > 0 {
		t.Errorf("%v, %q: want no patch without a new entry, which would allow the one that is there", err, out.String())
	}
	w.allow(pcapi.ImportableVM{VMID: "2", Namespace: "dev"})
	if err := w.writePatch(); err != nil || !strings.Contains(out.String(), `resourceVersion: "7"`) {
		t.Errorf("%v, %q: want a patch of the Cloud as it was read", err, out.String())
	}
}

// A list that nobody may use while imports is None is opened by no patch that is about VMs.
func TestPatchOfImportableAllowsNoNetworks(t *testing.T) {
	t.Parallel()
	networks := []pcapi.ImportableNetwork{{Name: "storage", Namespace: "dev"}}
	for _, tc := range []struct {
		name string
		spec pcapi.CloudSpec
		want string
	}{
		{"absent, and the Cloud lists networks", pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone, ImportableNetworks: networks}, "networkImports: None"},
		{"absent, and the Cloud lists none", pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone}, ""},
		{"set", pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone, NetworkImports: pcapi.ImportPolicyListed, ImportableNetworks: networks}, ""},
		{"absent, and imports stays", pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, ImportableNetworks: networks}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			w, err := newWriter(&out, formatImportable, policyOf(&pcapi.Cloud{Spec: tc.spec}))
			if err != nil {
				t.Fatal(err)
			}
			w.allow(pcapi.ImportableVM{VMID: "1", Namespace: "dev"})
			if err := w.end(); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); strings.Contains(got, "networkImports") != (tc.want != "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s, want %q", got, tc.want)
			}
		})
	}
}

func TestAdvice(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name        string
		policy      cloudPolicy
		n, unlisted int
		want        string
	}{
		{"any server may be imported", cloudPolicy{known: true, imports: pcapi.ImportPolicyAny}, 2, 0, ""},
		{"nothing is to be imported", cloudPolicy{known: true}, 0, 0, ""},
		{"none may be imported", cloudPolicy{name: "home", known: true, imports: pcapi.ImportPolicyNone}, 2, 2, `Cloud "home" allows no imports.`},
		{"none may be imported, and some are listed", cloudPolicy{name: "home", known: true, imports: pcapi.ImportPolicyNone, importable: make([]pcapi.ImportableVM, 3)}, 2, 2, "also allows the 3 imports"},
		{"some are not listed", cloudPolicy{name: "home", known: true, imports: pcapi.ImportPolicyListed}, 2, 1, "does not allow 1 of these imports"},
		{"the Cloud cannot be read", cloudPolicy{name: "home"}, 2, 0, "ask its administrator (spec.imports)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := tc.policy.advice(tc.n, tc.unlisted, "dev")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
