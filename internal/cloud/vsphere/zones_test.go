package vsphere_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// root is the pool of the cluster, and poolB one below it.
const (
	root  = "/DC0/host/DC0_C0/Resources"
	poolB = root + "/b"
)

// zoned returns a change that configures zones.
func zoned(zones ...vsphere.Zone) func(*vsphere.Config) {
	return func(cfg *vsphere.Config) { cfg.Place.Zones = zones }
}

// newZones returns a vCenter with the pool b and the datastore fast.
func newZones(t *testing.T) *vcenter {
	t.Helper()
	v := newVCenter(t)
	if err := v.MakePool(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := v.MakeDatastore(t.Context(), "fast", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return v
}

// at returns the names of the pool and the datastore of a VM.
func (v *vcenter) at(name string) []string {
	vm, registry := v.VM(name), v.Model.Map()
	return []string{
		registry.Get(*vm.ResourcePool).(*simulator.ResourcePool).Name, registry.Get(vm.Datastore[0]).(*simulator.Datastore).Name, //nolint:forcetypeassert // it is one
	}
}

func TestVMIsClonedIntoItsZone(t *testing.T) {
	v := newZones(t)
	c := v.client(t, zoned(vsphere.Zone{Name: "a", ResourcePool: root, Datastore: "fast"}, vsphere.Zone{Name: "b", ResourcePool: poolB}))
	for name, test := range map[string]struct {
		zone, shows string
		want        []string
	}{
		"with a datastore":                              {"a", "a", []string{"Resources", "fast"}},
		"without one: that of the Cloud":                {"b", "b", []string{"b", "LocalDS_0"}},
		"no zone: the pool of the Cloud, which a is of": {"", "a", []string{"Resources", "LocalDS_0"}},
	} {
		t.Run(name, func(t *testing.T) {
			made := create(t, c, cloud.CreateServer{Name: "in " + name, Zone: test.zone})
			if diff := cmp.Diff(test.want, v.at("in "+name)); diff != "" || made.Zone != test.shows {
				t.Errorf("zone %q, want %q; pool and datastore (-want +got):\n%s", made.Zone, test.shows, diff)
			}
		})
	}
}

func TestZoneIsThatOfThePoolAsItIs(t *testing.T) {
	v := newZones(t)
	c := v.client(t, zoned(vsphere.Zone{Name: "a", ResourcePool: root}))
	made := create(t, c, cloud.CreateServer{Name: "web", Zone: "a"})
	var below types.ManagedObjectReference
	for _, entity := range v.Model.Map().All("ResourcePool") {
		if entity.Entity().Name == "b" {
			below = entity.Reference()
		}
	}
	v.Change(v.VM("web").Self, types.PropertyChange{Name: "resourcePool", Val: &below})
	got, err := c.GetServer(t.Context(), made.ID)
	if err != nil || got.Zone != "" {
		t.Errorf("a VM in a pool below that of the zone: %q, %v, want no zone", got.Zone, err)
	}
}

func TestZoneThatDoesNotExistIsRefusedUnsent(t *testing.T) {
	v := newZones(t)
	for name, test := range map[string]struct {
		zones []vsphere.Zone
		kind  cloud.Kind
		says  []string
	}{
		"another one":        {[]vsphere.Zone{{Name: "b", ResourcePool: poolB}, {Name: "a", ResourcePool: root}}, cloud.Rejected, []string{`there is no zone "c"`, `there is "a", "b"`}},
		"the Cloud has none": {nil, cloud.Unsupported, []string{"lacks zones"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := v.client(t, zoned(test.zones...))
			if _, err := c.Capabilities(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := v.Front.Sent("")
			_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", Zone: "c"})
			wantError(t, err, test.kind, test.says...)
			if sent := v.Front.Sent("") - before; sent != 0 {
				t.Errorf("%d calls, want none", sent)
			}
		})
	}
}

func TestVMOfACreateWhoseAnswerWasLostIsFoundWhereNoneCanBeMadeNow(t *testing.T) {
	for name, test := range map[string]struct {
		zone string
		drs  bool
	}{"the zone was removed": {"a", true}, "DRS was switched off": {"b", false}} {
		t.Run(name, func(t *testing.T) {
			v := newZones(t)
			req := apart("web", required)
			req.Zone = "b"
			made := create(t, v.client(t, zoned(vsphere.Zone{Name: "b", ResourcePool: poolB})), req)
			if err := v.SetDRS(t.Context(), test.drs); err != nil {
				t.Fatal(err)
			}
			result, err := v.client(t, zoned(vsphere.Zone{Name: test.zone, ResourcePool: poolB})).CreateServer(t.Context(), req)
			if err != nil || result.Server.ID != made.ID {
				t.Errorf("create again: %+v, %v, want the VM %s", result, err, made.ID)
			}
		})
	}
}

func TestWhatAZoneLacksConcernsItsVMsAlone(t *testing.T) {
	good := vsphere.Zone{Name: "a", ResourcePool: root}
	for name, test := range map[string]struct {
		zone vsphere.Zone
		says []string
		mend func(v *vcenter) error
	}{
		"its pool": {
			vsphere.Zone{Name: "b", ResourcePool: root + "/c"}, []string{`spec.vsphere.zones[b].resourcePool "/DC0/host/DC0_C0/Resources/c" does not exist`, root},
			func(v *vcenter) error { return v.MakePool(t.Context(), "c") },
		},
		"its datastore": {
			vsphere.Zone{Name: "b", ResourcePool: poolB, Datastore: "tape"}, []string{`spec.vsphere.zones[b].datastore "tape" does not exist`, `"LocalDS_0"`},
			func(v *vcenter) error { return v.MakeDatastore(t.Context(), "tape", t.TempDir()) },
		},
		"a pool of its own": {vsphere.Zone{Name: "b", ResourcePool: root}, []string{`spec.vsphere.zones "a" and "b" have the same resourcePool`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := newZones(t)
			c := v.client(t, zoned(good, test.zone))
			c.SetDefectHold(0)
			has, err := c.Capabilities(t.Context())
			if err != nil || !has.Has(cloud.Zones) {
				t.Fatalf("capabilities %v, %v, want zones", has, err)
			}
			wantError(t, c.Defect(), cloud.Misconfigured, test.says...)
			create(t, c, cloud.CreateServer{Name: "none"})
			create(t, c, cloud.CreateServer{Name: "good", Zone: "a"})
			_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "bad", Zone: "b"})
			wantError(t, err, cloud.NoHost, `the zone "b"`, "corrected by the administrator")
			if strings.Contains(err.Error(), "Resources") || strings.Contains(err.Error(), "tape") {
				t.Errorf("%v says what tenants must not know", err)
			}
			if test.mend == nil {
				return
			}
			if err := test.mend(v); err != nil {
				t.Fatal(err)
			}
			create(t, c, cloud.CreateServer{Name: "bad", Zone: "b"})
			if err := c.Defect(); err != nil {
				t.Errorf("%v, want no defect any more", err)
			}
		})
	}
}

func TestPoolIsReadOnlyWhereThereAreZones(t *testing.T) {
	v := newZones(t)
	read := 0
	v.Front.Rewrite(func(method, body string) string {
		if method == "RetrievePropertiesEx" && strings.Contains(body, "<pathSet>guestHeartbeatStatus<") && strings.Contains(body, "<pathSet>resourcePool<") {
			read++
		}
		return body
	})
	list(t, v.client(t))
	if read != 0 {
		t.Errorf("%d requests for the pools of VMs without zones, want none", read)
	}
	list(t, v.client(t, zoned(vsphere.Zone{Name: "a", ResourcePool: root})))
	if read != 1 {
		t.Errorf("%d requests for the pools of VMs with zones, want one", read)
	}
}
