package vsphere

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// poolPath is read of VMs only where there are zones.
const poolPath = "resourcePool"

// spot is where VMs are created.
type spot struct{ pool, datastore types.ManagedObjectReference }

// defaultDefectHold is how long a site is used of which a zone is missing. Then it is looked for again.
const defaultDefectHold = 10 * time.Second

// outdated reports whether the site has to be looked for again because a zone is missing.
func (s *site) outdated(hold time.Duration) bool {
	return s != nil && s.defect != nil && time.Since(s.found) > hold
}

// Defect returns what is missing of a zone, nil if nothing is.
func (c *Client) Defect() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.site == nil || c.site.defect == nil {
		return nil
	}
	defect := *c.site.defect
	defect.Op = "find the zones"
	return &defect
}

// checkZone refuses a zone that the Place does not have, or of which something is missing.
func (c *Client) checkZone(at *site, name string) error {
	if _, found := at.zones[name]; found || name == "" {
		return nil
	}
	zones := c.place.Zones
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

// findZones looks for the pools and datastores of the zones. What is missing of one concerns the
// VMs of that zone alone.
func (s *search) findZones(ctx context.Context) error {
	s.at.zones, s.at.zoneOf = map[string]spot{}, map[types.ManagedObjectReference]string{}
	for _, zone := range s.place.Zones {
		err := s.findZone(ctx, zone)
		defect, ok := errors.AsType[*cloud.Error](err)
		switch {
		case err == nil, ok && defect.Kind == cloud.Misconfigured && s.at.defect != nil:
		case ok && defect.Kind == cloud.Misconfigured:
			s.at.defect = defect
		default:
			return err
		}
	}
	return nil
}

func (s *search) findZone(ctx context.Context, zone Zone) (err error) {
	at := spot{datastore: s.at.datastore}
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
