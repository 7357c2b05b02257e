package vsphere

import (
	"context"
	"fmt"
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// poolPath is read of VMs only where there are zones.
const poolPath = "resourcePool"

// spot is where VMs are created.
type spot struct{ pool, datastore types.ManagedObjectReference }

// checkZone refuses a zone that the Place does not have.
func (c *Client) checkZone(name string) error {
	zones := c.place.Zones
	switch {
	case name == "" || slices.ContainsFunc(zones, func(z Zone) bool { return z.Name == name }):
		return nil
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

// findZones looks for the pools and datastores of the zones.
func (s *search) findZones(ctx context.Context) error {
	s.at.zones, s.at.zoneOf = map[string]spot{}, map[types.ManagedObjectReference]string{}
	for _, zone := range s.place.Zones {
		at := spot{datastore: s.at.datastore}
		var err error
		if at.pool, err = s.pool(ctx, fmt.Sprintf("zones[%s].resourcePool", zone.Name), zone.ResourcePool); err != nil {
			return err
		}
		if zone.Datastore != "" {
			if at.datastore, err = s.datastore(ctx, fmt.Sprintf("zones[%s].datastore", zone.Name), zone.Datastore); err != nil {
				return err
			}
		}
		if other, taken := s.at.zoneOf[at.pool]; taken {
			return refuse("", cloud.Misconfigured, "spec.vsphere.zones %s and %s have the same resourcePool: give each zone its own", quote(other), quote(zone.Name))
		}
		s.at.zones[zone.Name], s.at.zoneOf[at.pool] = at, zone.Name
	}
	return nil
}

// findClusters looks for DRS in the clusters of the pools.
func (s *search) findClusters(ctx context.Context) error {
	pools := []types.ManagedObjectReference{s.at.pool}
	for pool := range s.at.zoneOf {
		if pool != s.at.pool {
			pools = append(pools, pool)
		}
	}
	found, err := clustersOf(ctx, s.at, pools...)
	if err != nil {
		return err
	}
	s.at.drs = map[types.ManagedObjectReference]bool{}
	enabled := map[types.ManagedObjectReference]bool{}
	for _, object := range found {
		enabled[object.ref] = object.cluster().drs
	}
	for _, object := range found {
		if enabled[object.reference("owner")] {
			s.at.drs[object.ref] = true
		}
	}
	return nil
}

// capabilities are those of the vCenter.
func (s *site) capabilities() cloud.Capabilities {
	has := slices.Clip(capabilities)
	if len(s.zones) > 0 {
		has = append(has, cloud.Zones)
	}
	if len(s.drs) > 0 {
		has = append(has, cloud.WithAntiAffinity)
	}
	return cloud.NewCapabilities(has...)
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

// pathsOf returns the paths that are read of VMs, with that of the pool if there are zones.
func (p Place) pathsOf(paths []string) []string {
	if len(p.Zones) == 0 {
		return paths
	}
	return append(slices.Clip(paths), poolPath)
}
