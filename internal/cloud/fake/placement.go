package fake

import (
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// NoZone is the zone that no cloud has. Every other one exists.
const NoZone = "nowhere"

// place returns the host of a new server, empty without hosts. The caller holds mu.
func (c *serverClient) place(op string, req cloud.CreateServer) (string, error) {
	if req.Zone == NoZone {
		return "", failure(op, cloud.Rejected, "there is no zone %s", quote(req.Zone))
	}
	if !c.settings.caps.Has(cloud.Hosts) || len(c.hosts.list) == 0 {
		return "", nil
	}
	hosts := c.hosts.list
	if req.AntiAffinity != (cloud.AntiAffinity{}) {
		free := slices.DeleteFunc(slices.Clone(hosts), func(h cloud.Host) bool { return c.keptFrom(h.Name, req.AntiAffinity) })
		switch {
		case len(free) > 0:
			hosts = free
		case req.AntiAffinity.Required:
			return "", failure(op, cloud.NoHost, "each of the %d hosts has a server of the anti-affinity group", len(hosts))
		}
	}
	return hosts[c.store.added%len(hosts)].Name, nil
}

// keptFrom reports whether a host has a server with an anti-affinity. The caller holds mu.
func (c *serverClient) keptFrom(host string, a cloud.AntiAffinity) bool {
	return slices.ContainsFunc(c.store.all(), func(s cloud.Server) bool { return s.Host == host && c.antiAffinity[s.ID] == a })
}
