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

// hosts holds the hosts of a cloud and chooses the host of a server.
type hosts struct {
	core  *core
	views *views
	// list is replaced and never changed. core.mu guards it.
	list []Host
}

func (h *hosts) all() []Host {
	h.core.mu.RLock()
	defer h.core.mu.RUnlock()
	return slices.Clone(h.list)
}

func (h *hosts) put(host Host) error {
	if host.Name == "" {
		return invalid("name is required")
	}
	h.core.mu.Lock()
	defer h.core.mu.Unlock()
	hosts := slices.Clone(h.list)
	if at := hostNamed(hosts, host.Name); at >= 0 {
		hosts[at] = host
	} else {
		hosts = append(hosts, host)
	}
	h.list = hosts
	return nil
}

func (h *hosts) remove(name string) error {
	h.core.mu.Lock()
	defer h.core.mu.Unlock()
	at := hostNamed(h.list, name)
	if at < 0 {
		return notFound("host", name)
	}
	h.list = slices.Delete(slices.Clone(h.list), at, at+1)
	return nil
}

func hostNamed(hosts []Host, name string) int {
	return slices.IndexFunc(hosts, func(h Host) bool { return h.Name == name })
}

// handlePut handles PUT /admin/hosts/{name}.
func (h *hosts) handlePut(w http.ResponseWriter, r *request) error {
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
	if err := h.put(host); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, host)
}

// handleList handles GET /hosts.
func (h *hosts) handleList(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, h.usage(h.core.now()))
}

// usage returns all hosts with their usage at a time.
func (h *hosts) usage(now time.Time) []Host {
	h.core.mu.RLock()
	hosts := slices.Clone(h.list)
	at := make(map[string]int, len(hosts))
	for i, host := range hosts {
		at[host.Name] = i
	}
	mhz, memory := make([]int, len(hosts)), make([]int, len(hosts))
	for _, r := range h.core.st.servers {
		i, known := at[r.Host]
		if !known {
			continue
		}
		s := r.Server
		h.views.measure(r, &s, now)
		mhz[i] += *s.CPUUsageMHz
		memory[i] += *s.MemoryUsageMB
	}
	h.core.mu.RUnlock()
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
