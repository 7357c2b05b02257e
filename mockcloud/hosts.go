package mockcloud

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Host is a machine that servers run on.
type Host struct {
	Name string `json:"name"`
	GPU  bool   `json:"gpu"`
	// Zone is the zone of the host; empty for none.
	Zone string `json:"zone,omitempty"`
	// AvailableHours is how long the accelerator of the host is available.
	AvailableHours int `json:"availableHours"`
	// CPUUsageMHz and MemoryUsageMB are the sums of the servers on the host if they
	// are zero in Options.
	CPUUsageMHz   int `json:"cpuUsageMHz"`
	MemoryUsageMB int `json:"memoryUsageMB"`
}

func defaultHosts() []Host {
	hosts := make([]Host, 4)
	for i := range hosts {
		hosts[i] = Host{Name: fmt.Sprintf("host-%d", i+1), GPU: i%2 == 1, AvailableHours: 8 * (i + 1), Zone: []string{"zone-a", "zone-b"}[i/2]}
	}
	return hosts
}

// Hosts returns all hosts with the usage that Options or PutHost set.
func (c *Cloud) Hosts() []Host {
	c.core.mu.RLock()
	defer c.core.mu.RUnlock()
	return slices.Clone(c.opts.Hosts)
}

// PutHost adds a host or replaces the one with the same name. Hosts are not
// stored: after a restart they are those of Options. It returns an error if the
// name is empty.
func (c *Cloud) PutHost(host Host) error {
	if host.Name == "" {
		return invalid("name is required")
	}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	hosts := slices.Clone(c.opts.Hosts)
	if at := hostNamed(hosts, host.Name); at >= 0 {
		hosts[at] = host
	} else {
		hosts = append(hosts, host)
	}
	c.opts.Hosts = hosts
	return nil
}

// DeleteHost deletes a host. Servers keep its name. It returns an error if there
// is no such host.
func (c *Cloud) DeleteHost(name string) error {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	at := hostNamed(c.opts.Hosts, name)
	if at < 0 {
		return notFound("host", name)
	}
	c.opts.Hosts = slices.Delete(slices.Clone(c.opts.Hosts), at, at+1)
	return nil
}

func hostNamed(hosts []Host, name string) int {
	return slices.IndexFunc(hosts, func(h Host) bool { return h.Name == name })
}

// handlePutHost handles PUT /admin/hosts/{name}.
func (c *Cloud) handlePutHost(w http.ResponseWriter, r *request) error {
	var host Host
	if err := readInto(r, &host); err != nil {
		return err
	}
	if host.Name == "" {
		host.Name = r.vars[0]
	}
	if host.Name != r.vars[0] {
		return invalid("name is %q, but the path has %q", host.Name, r.vars[0])
	}
	if err := c.PutHost(host); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, host)
}

// handleHosts handles GET /hosts.
func (c *Cloud) handleHosts(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, c.hostUsage(c.core.now()))
}

// hostUsage returns all hosts with their usage at a time.
func (c *Cloud) hostUsage(now time.Time) []Host {
	c.core.mu.RLock()
	hosts := slices.Clone(c.opts.Hosts)
	at := make(map[string]int, len(hosts))
	for i, host := range hosts {
		at[host.Name] = i
	}
	mhz, memory := make([]int, len(hosts)), make([]int, len(hosts))
	for _, r := range c.core.st.servers {
		i, known := at[r.Host]
		if !known {
			continue
		}
		s := r.Server
		c.measure(r, &s, now)
		mhz[i] += *s.CPUUsageMHz
		memory[i] += *s.MemoryUsageMB
	}
	c.core.mu.RUnlock()
	for i := range hosts {
		if hosts[i].CPUUsageMHz == 0 {
			hosts[i].CPUUsageMHz = mhz[i]
		}
		if hosts[i].MemoryUsageMB == 0 {
			hosts[i].MemoryUsageMB = memory[i]
		}
	}
	return hosts
}
