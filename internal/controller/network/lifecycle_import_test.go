package network

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// attachOnly can list networks and attach servers to them.
var attachOnly = cloud.NewCapabilities(cloud.NetworkAttach)

const importedName = "VM Network"

// importing makes a Network refer to the network of importedName.
func importing(net *pcapi.Network) {
	net.Spec.CIDR, net.Spec.Gateway, net.Spec.Import = "", "", &pcapi.NetworkImport{Name: importedName}
}

// portGroup returns a network without a range, as a vCenter has it, with changes.
func portGroup(change ...func(*cloud.Network)) cloud.Network {
	n := cloud.Network{ID: "n1", Name: importedName}
	for _, f := range change {
		f(&n)
	}
	return n
}

// editCloud changes the spec of the Cloud.
func (h *harness) editCloud(change func(*pcapi.CloudSpec)) {
	h.t.Helper()
	var c pcapi.Cloud
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: "default"}, &c); err != nil {
		h.t.Fatal(err)
	}
	change(&c.Spec)
	if err := h.client.Update(h.t.Context(), &c); err != nil {
		h.t.Fatal(err)
	}
}

// newImport returns a harness with a Network that imports a network, and a Cloud that
// allows it.
func newImport(t *testing.T, caps cloud.Capabilities, networks []cloud.Network, change ...func(*pcapi.Network)) *harness {
	t.Helper()
	h := newHarness(t, caps, networks, netWith(append([]func(*pcapi.Network){importing}, change...)...))
	h.editCloud(func(spec *pcapi.CloudSpec) { spec.Imports = pcapi.ImportPolicyAny })
	if err := h.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *harness) network() *pcapi.Network {
	h.t.Helper()
	var net pcapi.Network
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
		h.t.Fatal(err)
	}
	return &net
}

func (h *harness) remove() {
	h.t.Helper()
	if err := h.client.Delete(h.t.Context(), netWith()); err != nil {
		h.t.Fatal(err)
	}
}

// wantNetworks checks that the networks of the cloud are as they were.
func (h *harness) wantNetworks(want ...cloud.Network) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.cloud.Networks()); diff != "" {
		h.t.Errorf("networks of the cloud (-want +got):\n%s", diff)
	}
}

func TestImportFindsTheNetworkAndKeepsIt(t *testing.T) {
	t.Parallel()
	ranged := portGroup(withCIDR("10.0.0.0/8"), withGateway("10.0.0.1"))
	for name, caps := range map[string]cloud.Capabilities{"the cloud creates networks": everything, "the cloud only attaches": attachOnly} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			others := []cloud.Network{portGroup(withID("n0"), withName("vm network")), ranged}
			h := newImport(t, caps, others)
			if again := h.reconcile().RequeueAfter; again != pollInterval {
				t.Errorf("requeued after %v, want the poll interval", again)
			}
			h.wantCondition("Ready", "True InSync", "is imported, and not changed")
			h.wantCondition("Created", "True Imported", `network n1 on Cloud "default"`)
			status := h.network().Status
			got := []string{status.NetworkID, status.Cloud, status.NameInCloud, status.CIDR, status.Gateway}
			if diff := cmp.Diff([]string{"n1", "default", importedName, "10.0.0.0/8", "10.0.0.1"}, got); diff != "" {
				t.Errorf("id, Cloud, name, range and gateway (-want +got):\n%s", diff)
			}
			h.advance(pollInterval)
			h.reconcile()
			h.wantCalls("list", "list")
			h.remove()
			h.reconcile()
			h.wantCalls()
			h.wantGone()
			h.wantNetworks(others...)
		})
	}
}

func TestImportFollowsTheNetworkByItsID(t *testing.T) {
	t.Parallel()
	h := newImport(t, everything, []cloud.Network{portGroup()})
	h.reconcile()
	h.cloud.ModifyNetwork("n1", func(n *cloud.Network) { n.Name, n.CIDR = "renamed", "10.0.0.0/8" })
	h.cloud.AddNetworks(portGroup(withID("n2")))
	h.advance(pollInterval)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	if s := h.network().Status; s.NetworkID != "n1" || s.NameInCloud != "renamed" || s.CIDR != "10.0.0.0/8" {
		t.Errorf("status %+v, want network n1 as it is now", s)
	}
	h.cloud.ModifyNetwork("n1", func(n *cloud.Network) { n.Name = "tenant-secret-0123456789ab" })
	h.advance(pollInterval)
	h.reconcile()
	if name := h.network().Status.NameInCloud; name != "renamed" {
		t.Errorf("name %q, want none of another object", name)
	}

	h.cloud.RemoveNetworks("n1")
	h.advance(settleTime)
	h.reconcile()
	h.wantCondition("Ready", "False Lost", "network n1 is gone")
	h.cloud.AddNetworks(portGroup())
	h.advance(time.Minute)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	h.remove()
	h.reconcile()
	h.wantGone()
}

func TestImportOfMissingNetworkRecoversWhenItAppears(t *testing.T) {
	t.Parallel()
	h := newImport(t, attachOnly, []cloud.Network{portGroup(withName("secret of the platform"))}, func(net *pcapi.Network) {
		net.CreationTimestamp.Time = startTime.Add(time.Hour)
	})
	h.reconcile()
	h.wantCondition("Ready", "False NotFound", `does not show network "VM Network"`)
	h.advance(settleTime + time.Second)
	if again := h.reconcile().RequeueAfter; again < time.Minute || again > 2*time.Minute {
		t.Errorf("requeued after %v, want about a minute", again)
	}
	h.wantCondition("Stalled", "True Rejected", `the cloud has no network named "VM Network"`)
	h.wantCondition("Created", "False Rejected")
	for _, c := range h.network().Status.Conditions {
		if strings.Contains(c.Message, "platform") {
			t.Errorf("%s has message %q, want none that names another network", c.Type, c.Message)
		}
	}
	if net := h.network(); len(net.Finalizers) > 0 {
		t.Errorf("finalizers %v of a Network without a network", net.Finalizers)
	}
	h.cloud.AddNetworks(portGroup(withID("n2")))
	h.advance(time.Minute)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	if id := h.network().Status.NetworkID; id != "n2" {
		t.Errorf("network %q, want n2", id)
	}
	for _, call := range h.takeVerbs() {
		if call != "list" {
			t.Errorf("call %s, want listings alone", call)
		}
	}
}

func TestImportOfOneNameOfSeveralNetworksIsAmbiguous(t *testing.T) {
	t.Parallel()
	h := newImport(t, attachOnly, []cloud.Network{portGroup(), portGroup(withID("n2"))})
	h.reconcile()
	h.wantCondition("Stalled", "True Ambiguous", `2 networks named "VM Network"`)
	h.cloud.ModifyNetwork("n1", func(n *cloud.Network) { n.Name = "another" })
	h.advance(time.Minute)
	h.reconcile()
	h.wantCondition("Ready", "True InSync")
	if id := h.network().Status.NetworkID; id != "n2" {
		t.Errorf("network %q, want n2", id)
	}
}

func TestNetworkImportPolicy(t *testing.T) {
	t.Parallel()
	listed := func(name, namespace string) pcapi.CloudSpec {
		return pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, ImportableNetworks: []pcapi.ImportableNetwork{{Name: name, Namespace: namespace}}}
	}
	networksOf := func(spec pcapi.CloudSpec, policy pcapi.ImportPolicy) pcapi.CloudSpec {
		spec.NetworkImports = policy
		return spec
	}
	anyVM := pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}
	listing := func(name string) pcapi.CloudSpec {
		spec := listed(name, "ns")
		spec.Imports = pcapi.ImportPolicyAny
		return spec
	}
	const ofAnObject = "b-net-0123456789ab"
	tests := []struct {
		name, network string
		spec          pcapi.CloudSpec
		want, message string
	}{
		{name: "no policy: refused", want: "False Rejected", message: "set networkImports"},
		{name: "None: refused", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone}, want: "False Rejected", message: "does not allow imports"},
		{name: "Listed for this namespace: imported", spec: listed(importedName, "ns"), want: "True InSync"},
		{name: "Listed for another namespace: refused", spec: listed(importedName, "db"), want: "False Rejected", message: "importableNetworks"},
		{name: "another network is listed: refused", spec: listed("storage", "ns"), want: "False Rejected", message: "importableNetworks"},
		{name: "Any: imported", spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, want: "True InSync"},
		{name: "Any, network of an object: refused", network: ofAnObject, spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}, want: "False Rejected", message: "may belong to another object"},
		{name: "any VM and no network: refused", spec: networksOf(anyVM, pcapi.ImportPolicyNone), want: "False Rejected", message: "does not allow imports of networks: ask its administrator to set networkImports"},
		{name: "any VM and networks of an empty list: refused", spec: networksOf(anyVM, pcapi.ImportPolicyListed), want: "False Rejected", message: "importableNetworks"},
		{name: "any VM and listed networks: imported", spec: networksOf(listing(importedName), pcapi.ImportPolicyListed), want: "True InSync"},
		{name: "no VM and any network: imported", spec: networksOf(pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone}, pcapi.ImportPolicyAny), want: "True InSync"},
		{name: "no VM and any network, network of an object: refused", network: ofAnObject, spec: networksOf(pcapi.CloudSpec{}, pcapi.ImportPolicyAny), want: "False Rejected", message: "set networkImports to Listed"},
		{name: "any VM and listed networks, network of an object: imported", network: ofAnObject, spec: networksOf(listing(ofAnObject), pcapi.ImportPolicyListed), want: "True InSync"},
		{name: "Listed, network of an object: imported", network: ofAnObject, spec: listed(ofAnObject, "ns"), want: "True InSync"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			named := withName(importedName)
			if tc.network != "" {
				named = withName(tc.network)
			}
			there := portGroup(named)
			h := newImport(t, everything, []cloud.Network{there}, func(net *pcapi.Network) { net.Spec.Import.Name = there.Name })
			h.editCloud(func(spec *pcapi.CloudSpec) { *spec = tc.spec })
			h.reconcile()
			h.wantCondition("Ready", tc.want, tc.message)
			if tc.want == "False Rejected" {
				h.wantCalls()
				if net := h.network(); net.Status.NetworkID != "" || len(net.Finalizers) > 0 {
					t.Errorf("id %q and finalizers %v of a refused import", net.Status.NetworkID, net.Finalizers)
				}
			}
			h.editCloud(func(spec *pcapi.CloudSpec) { spec.Imports, spec.NetworkImports = pcapi.ImportPolicyNone, "" })
			h.advance(pollInterval)
			h.reconcile()
			h.wantCondition("Ready", tc.want) // what is recorded stays
			h.remove()
			h.reconcile()
			h.wantGone()
			h.wantNetworks(there)
		})
	}
}

func TestImportIsReleasedWhateverTheCloudAnswers(t *testing.T) {
	t.Parallel()
	deniedToAll := func(spec *pcapi.CloudSpec) {
		spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "platform"}}
	}
	for name, trouble := range map[string]func(*harness){
		"the cloud is unavailable":          func(h *harness) { h.inv.MarkUnavailable("connection refused") },
		"the networks cannot be listed":     func(h *harness) { h.fail(cloudfake.ListNetworks, errAway, errAway) },
		"the network is gone":               func(h *harness) { h.cloud.RemoveNetworks("n1") },
		"the brake is on":                   func(h *harness) { h.inv.Brake(true) },
		"the Cloud lost its networks":       func(h *harness) { h.inv.Connect(h.cloud, nil) },
		"the Cloud allows no imports":       func(h *harness) { h.editCloud(func(s *pcapi.CloudSpec) { s.Imports = pcapi.ImportPolicyNone }) },
		"the Cloud allows no namespace now": func(h *harness) { h.editCloud(deniedToAll) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newImport(t, attachOnly, []cloud.Network{portGroup()})
			h.reconcile()
			h.takeVerbs()
			h.remove()
			trouble(h)
			h.advance(pollInterval)
			h.reconcile()
			h.wantGone()
			h.wantCalls()
		})
	}
}

func TestImportWaitsForItsVMs(t *testing.T) {
	t.Parallel()
	h := newImport(t, attachOnly, []cloud.Network{portGroup()})
	h.reconcile()
	if h.waitsForWrites {
		t.Error("the VMs of a Network that stays are listed only once the cache has what was written")
	}
	vm := &pcapi.VM{Spec: pcapi.VMSpec{NetworkRef: &pcapi.NetworkReference{Name: "net"}}, Status: pcapi.VMStatus{VMID: "s1"}}
	vm.Namespace, vm.Name = "ns", "web"
	if err := h.client.Create(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	h.remove()
	h.reconcile()
	h.wantCondition("Deleting", "True Blocked", "VMs on this network: 1 (web)", "the network stays")
	if !h.waitsForWrites {
		t.Error("a VM that was created a moment ago may be missed, and its Network be removed")
	}
	if err := h.client.Delete(t.Context(), vm); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	h.wantGone()
	h.wantNetworks(portGroup())
}

func TestNetworkWithoutImportOnCloudThatOnlyAttaches(t *testing.T) {
	t.Parallel()
	h := newHarness(t, attachOnly, []cloud.Network{portGroup()}, netWith())
	h.reconcile()
	h.wantCondition("Stalled", "True Unsupported", "cannot create networks", "spec.import")
	h.wantCondition("Created", "False Rejected")
	h.wantCalls()
	h.remove()
	h.wantGone()
}

// A claim that users write, and one of a Cloud that the spec named before, lead to no
// call that changes a network.
func TestImportWithForgedClaimChangesNothing(t *testing.T) {
	t.Parallel()
	forged := func(cloudName string) func(*pcapi.Network) {
		return func(net *pcapi.Network) {
			net.Finalizers = []string{pcapi.NetworkFinalizer}
			net.Annotations = map[string]string{pcapi.ClaimedCloudAnnotation: cloudName, pcapi.ClaimedNameAnnotation: ownName}
		}
	}
	t.Run("of this Cloud, and the import is refused", func(t *testing.T) {
		t.Parallel()
		h := newImport(t, everything, []cloud.Network{portGroup(), networkWith(withID("n2"))}, forged("default"))
		h.editCloud(func(spec *pcapi.CloudSpec) { spec.Imports = pcapi.ImportPolicyNone })
		h.reconcile()
		h.wantCondition("Ready", "False Rejected")
		h.remove()
		h.reconcile()
		h.wantGone()
		h.wantCalls()
	})
	t.Run("of another Cloud", func(t *testing.T) {
		t.Parallel()
		h := newImport(t, everything, []cloud.Network{portGroup()}, forged("default"), func(net *pcapi.Network) {
			net.Spec.CloudRef.Name = "second"
		})
		h.reconcile()
		h.wantCondition("Ready", "False Progressing", "spec.cloudRef named before")
		if net := h.network(); net.Status.NetworkID != "" || len(net.Finalizers) > 0 {
			t.Errorf("id %q and finalizers %v after the claim was dropped", net.Status.NetworkID, net.Finalizers)
		}
		h.wantNetworks(portGroup())
	})
}

// Who shares a network can give it any name.
func TestNetworkThatIsSharedIsNotAdopted(t *testing.T) {
	t.Parallel()
	shared := networkWith(withID("n2"), func(n *cloud.Network) { n.Shared = true })
	h := newHarness(t, keysOnly, []cloud.Network{shared}, netWith())
	h.fail(cloudfake.CreateNetwork, errReset)
	h.reconcile()
	h.advance(settleTime)
	h.reconcile()
	h.advance(pollInterval)
	h.reconcile()
	if id := h.network().Status.NetworkID; id == "n2" || id == "" {
		t.Errorf("network %q, want the one that the create made", id)
	}
	h.remove()
	h.reconcile()
	h.wantGone()
	h.wantNetworks(shared)
}
