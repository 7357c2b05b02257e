package mockcloud

import (
	"fmt"
	"net/http"
	"slices"
)

// Host is a machine that servers run on.
type Host struct {
	Name string `json:"name"`
	GPU  bool   `json:"gpu"`
	// AvailableHours is for how long the host's accelerator can be had.
	AvailableHours int `json:"availableHours"`
	// CPUUsageMHz and MemoryUsageMB are sums over the servers on it where zero
	// in Options.
	CPUUsageMHz   int `json:"cpuUsageMHz"`
	MemoryUsageMB int `json:"memoryUsageMB"`
}

func defaultHosts() []Host {
	hosts := make([]Host, 4)
	for i := range hosts {
		hosts[i] = Host{Name: fmt.Sprintf("host-%d", i+1), GPU: i%2 == 1, AvailableHours: 8 * (i + 1)}
	}
	return hosts
}

// place picks the host of a new server, in turn. The caller holds mu.
func (c *Cloud) place() string {
	if len(c.opts.Hosts) == 0 {
		return ""
	}
	host := c.opts.Hosts[c.st.placed%len(c.opts.Hosts)].Name
	c.st.placed++
	return host
}

// handleHosts answers GET /hosts.
func (c *Cloud) handleHosts(w http.ResponseWriter, _ *request) error {
	now := c.now()
	c.mu.RLock()
	hosts := slices.Clone(c.opts.Hosts)
	at := make(map[string]int, len(hosts))
	for i, host := range hosts {
		at[host.Name] = i
	}
	mhz, memory := make([]int, len(hosts)), make([]int, len(hosts))
	for _, r := range c.st.servers {
		i, known := at[r.Host]
		if !known {
			continue
		}
		s := r.Server
		c.measure(r, &s, now)
		mhz[i] += *s.CPUUsageMHz
		memory[i] += *s.MemoryUsageMB
	}
	c.mu.RUnlock()
	for i := range hosts {
		if hosts[i].CPUUsageMHz == 0 {
			hosts[i].CPUUsageMHz = mhz[i]
		}
		if hosts[i].MemoryUsageMB == 0 {
			hosts[i].MemoryUsageMB = memory[i]
		}
	}
	return writeJSON(w, http.StatusOK, hosts)
}
