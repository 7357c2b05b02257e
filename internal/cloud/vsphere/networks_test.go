package vsphere_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

func TestListNetworksReturnsPortGroupsWithoutUplinks(t *testing.T) {
	v := newVCenter(t)
	listed, err := v.client(t).ListNetworks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range listed {
		got[n.Name] = n.ID
	}
	if diff := cmp.Diff(v.PortGroups(), got); diff != "" {
		t.Errorf("networks (-want +got):\n%s", diff)
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"DC0_DVPG0", "VM Network"}) {
		t.Errorf("networks %v, want a standard and a distributed port group", names)
	}
}

func TestCreateConnectsTheOneAdapterToTheNetwork(t *testing.T) {
	byDefault := func(name string) func(*vsphere.Config) {
		return func(cfg *vsphere.Config) { cfg.Place.Network = name }
	}
	tests := map[string]struct{ byDefault, named, want string }{
		"a standard port group":                       {named: "VM Network", want: "VM Network"},
		"a distributed port group":                    {named: "DC0_DVPG0", want: "DC0_DVPG0"},
		"a network, and another default of the Cloud": {byDefault: "DC0_DVPG0", named: "VM Network", want: "VM Network"},
		"no network: the default of the Cloud":        {byDefault: "VM Network", want: "VM Network"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVCenter(t)
			c := v.client(t, byDefault(tc.byDefault))
			create(t, c, cloud.CreateServer{Name: "web", NetworkID: v.PortGroups()[tc.named]})
			if diff := cmp.Diff([]string{v.PortGroups()[tc.want]}, v.AttachedTo(v.VM("web"))); diff != "" {
				t.Errorf("adapters (-want +got):\n%s", diff)
			}
		})
	}
}

// The template of the simulator has one adapter.
func TestCreateWithSeveralInterfacesHasOneAdapterEach(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	standard, port := v.PortGroups()["VM Network"], v.PortGroups()["DC0_DVPG0"]
	want := []string{port, standard, standard}
	var asked []cloud.Attachment
	for _, id := range want {
		asked = append(asked, cloud.Attachment{NetworkID: id})
	}
	server := create(t, c, cloud.CreateServer{Name: "web", Interfaces: asked, Disks: "data=1024"})
	if diff := cmp.Diff(want, v.AttachedTo(v.VM("web"))); diff != "" {
		t.Errorf("adapters (-want +got):\n%s", diff)
	}
	if server.NetworkID != port || server.Disks != "data=1024" {
		t.Errorf("network %q and disks %q, want %q and the disk data", server.NetworkID, server.Disks, port)
	}
	if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "lost", Interfaces: append(asked, cloud.Attachment{NetworkID: "network-0"})}); !cloud.Is(err, cloud.Rejected) {
		t.Errorf("CreateServer on a port group that does not exist: %v, want Rejected", err)
	}
}

// The simulator checks no rights: the read of the switch is answered as a vCenter does
// to an account that may not.
func TestCreateOnPortGroupOfUnreadableSwitchIsRejected(t *testing.T) {
	v := newVCenter(t)
	id := v.PortGroups()["DC0_DVPG0"]
	c := v.client(t)
	restore := v.Front.Rewrite(func(_, body string) string {
		return strings.ReplaceAll(body, "<pathSet>config.distributedVirtualSwitch</pathSet>", "")
	})
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", NetworkID: id})
	restore()
	wantError(t, err, cloud.Rejected, "may not read the distributed switch")
	if v.VM("web") != nil {
		t.Error("a VM was made")
	}
}

func TestChangesOfNetworksNameTheImport(t *testing.T) {
	c := newVCenter(t).client(t)
	_, created := c.CreateNetwork(t.Context(), cloud.CreateNetwork{Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	_, updated := c.UpdateNetwork(t.Context(), "network-7", cloud.UpdateNetwork{Gateway: "10.0.0.2"})
	for call, err := range map[string]error{"CreateNetwork": created, "UpdateNetwork": updated, "DeleteNetwork": c.DeleteNetwork(t.Context(), "network-7")} {
		t.Run(call, func(t *testing.T) { wantError(t, err, cloud.Unsupported, "spec.import") })
	}
}
