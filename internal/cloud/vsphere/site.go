package vsphere

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// capabilities are those of every vCenter.
var capabilities = cloud.NewCapabilities(
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.FolderNames, cloud.BulkStatus, cloud.Power, cloud.PowerAtCreate,
	cloud.Resize, cloud.Folders, cloud.Hosts, cloud.Sessions, cloud.Sizing, cloud.Operations, cloud.NetworkAttach,
	cloud.Events, cloud.WithUserData, cloud.Addresses, cloud.Snapshots, cloud.Revert, cloud.SoftPowerOff, cloud.WithDisks, cloud.GuestHeartbeat, cloud.Suspend, cloud.WithInterfaces,
)

// site is what the Place names, found in the inventory.
type site struct {
	vim        *vim25.Client
	datacenter types.ManagedObjectReference
	hosts      types.ManagedObjectReference
	// root has all VMs, and templates the templates.
	root, templates types.ManagedObjectReference
	pool, datastore types.ManagedObjectReference
	// network is the backing of the first adapter of VMs that name no network; nil for
	// that of the template.
	network types.BaseVirtualDeviceBackingInfo
	// zones are where VMs with a zone are created, and zoneOf the zones by their pool. defect says
	// what is missing of the first of the other zones, nil if there are none.
	zones  map[string]spot
	zoneOf map[types.ManagedObjectReference]string
	defect *cloud.Error
	// found is when the site was looked for.
	found time.Time
	// drs has the pools whose clusters have DRS.
	drs map[types.ManagedObjectReference]bool
}

// spot is where VMs are created.
type spot struct{ pool, datastore types.ManagedObjectReference }

// outdated reports whether the site has to be looked for again because a zone is missing.
func (s *site) outdated(hold time.Duration) bool {
	return s != nil && s.defect != nil && time.Since(s.found) > hold
}

// spot returns where VMs of a zone are created; the empty name is for those without one.
func (s *site) spot(zone string) spot {
	if in, ok := s.zones[zone]; ok {
		return in
	}
	return spot{s.pool, s.datastore}
}

// uses reports whether the site has this object as a pool or a datastore.
func (s *site) uses(ref types.ManagedObjectReference) bool {
	for _, in := range s.zones {
		if ref == in.pool || ref == in.datastore {
			return true
		}
	}
	return ref == s.pool || ref == s.datastore
}

// capabilities are those of the vCenter. A zone that is missing may be there later.
func (s *site) capabilities() cloud.Capabilities {
	has := slices.Clip(capabilities)
	if len(s.zones) > 0 || s.defect != nil {
		has = append(has, cloud.Zones)
	}
	if len(s.drs) > 0 || s.defect != nil {
		has = append(has, cloud.WithAntiAffinity)
	}
	return cloud.NewCapabilities(has...)
}

// checkZone refuses a zone that is not one of the Place, or of which something is missing.
func checkZone(at *site, zones []Zone, name string) error {
	if _, found := at.zones[name]; found || name == "" {
		return nil
	}
	switch {
	case slices.ContainsFunc(zones, func(z Zone) bool { return z.Name == name }):
		return refuse("", cloud.NoHost, "no VM can be created in the zone %s now: its settings have to be corrected by the administrator of the cloud", quote(name))
	case len(zones) == 0:
		return refuse("", cloud.Unsupported, "this cloud lacks zones")
	}
	e := refuse("", cloud.Rejected, "there is no zone %s; %s", quote(name), existing(func() (names []string, _ error) {
		for _, zone := range zones {
			names = append(names, zone.Name)
		}
		return names, nil
	}))
	e.Code = "zoneUnknown"
	return e
}
