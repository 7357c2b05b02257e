package mockcloud

import (
	"net/http"
	"slices"
)

// The values of AntiAffinity.Policy.
const (
	AntiAffinityRequired  = "Required"
	AntiAffinityPreferred = "Preferred"
)

// AntiAffinity keeps a server on another host than the servers that were created with the
// same one.
type AntiAffinity struct {
	Group string `json:"group"`
	// Policy is AntiAffinityRequired or AntiAffinityPreferred.
	Policy string `json:"policy"`
}

func (a *AntiAffinity) check() error {
	switch {
	case a == nil:
	case a.Group == "" || len(a.Group) > maxText:
		return invalid("antiAffinity: a group has 1-%d bytes", maxText)
	case a.Policy != AntiAffinityRequired && a.Policy != AntiAffinityPreferred:
		return invalid("antiAffinity: the policy is %s or %s", AntiAffinityRequired, AntiAffinityPreferred)
	}
	return nil
}

// allowed returns the hosts that the zone and the anti-affinity of a new server allow, empty
// only without hosts. The caller holds core.mu.
func (h *hosts) allowed(b createServer) ([]Host, error) {
	hosts := h.list
	if zone := deref(b.Zone, ""); zone != "" {
		hosts = slices.DeleteFunc(slices.Clone(hosts), func(one Host) bool { return one.Zone != zone })
		if len(hosts) == 0 {
			return nil, problem(http.StatusUnprocessableEntity, CodeZoneUnknown, "there is no zone %q", zone)
		}
	}
	if b.AntiAffinity == nil {
		return hosts, nil
	}
	taken := h.core.st.hostsOf(*b.AntiAffinity)
	free := slices.DeleteFunc(slices.Clone(hosts), func(one Host) bool { return taken[one.Name] })
	switch {
	case len(free) > 0:
		return free, nil
	case b.AntiAffinity.Policy == AntiAffinityRequired:
		return nil, problem(http.StatusConflict, CodeNoHost, "each of the %d hosts has a server of the anti-affinity group", len(hosts))
	}
	return hosts, nil
}

// pick returns the next of these hosts, round-robin; empty without hosts. The caller holds core.mu.
func (h *hosts) pick(hosts []Host) string {
	if len(hosts) == 0 {
		return ""
	}
	host := hosts[h.core.st.placed%len(hosts)].Name
	h.core.st.placed++
	return host
}

// hostsOf returns the hosts that have servers with an anti-affinity. The caller holds core.mu.
func (s *state) hostsOf(a AntiAffinity) map[string]bool {
	hosts := map[string]bool{}
	for _, r := range s.servers {
		if r.AntiAffinity != nil && *r.AntiAffinity == a {
			hosts[r.Host] = true
		}
	}
	return hosts
}

// zoneOf returns the zone of a host; empty if there is no such host. The caller holds core.mu.
func (h *hosts) zoneOf(host string) string {
	if at := hostNamed(h.list, host); at >= 0 {
		return h.list[at].Zone
	}
	return ""
}
