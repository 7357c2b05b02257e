package vsphere

import (
	"context"
	"errors"
	"fmt"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

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
