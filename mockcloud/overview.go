package mockcloud

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// overviewItems is the maximum number of items of each list of an overview.
const overviewItems = 100

// maxDescription is the maximum number of bytes of the description of a fault.
const maxDescription = 300

// overview is what the page for people shows, at one time.
type overview struct {
	summary  summary
	servers  excerpt[Server]
	networks excerpt[Network]
	hosts    excerpt[Host]
	faults   excerpt[faultSummary]
	ledger   excerpt[LedgerEntry]
}

type summary struct {
	At      time.Time `json:"at"`
	Profile Profile   `json:"profile"`
	// Servers counts the servers by state.
	Servers map[State]int `json:"servers"`
	// CPUUtilization is the mean of the servers in percent; absent if there are none.
	CPUUtilization *float64 `json:"cpuUtilization,omitempty"`
}

// excerpt has the first items of a list.
type excerpt[T any] struct {
	Total int `json:"total"`
	Items []T `json:"items"`
}

func excerptOf[T any](all []T) excerpt[T] {
	return excerpt[T]{Total: len(all), Items: append([]T{}, all[:min(len(all), overviewItems)]...)}
}

// faultSummary is a fault without its bodies, which can be large.
type faultSummary struct {
	ID string `json:"id"`
	// Description is the beginning of the fault as JSON.
	Description string `json:"description"`
	Fired       int    `json:"fired"`
	Held        int    `json:"held"`
}

// overviewStreams sends overviews.
type overviewStreams struct {
	core        *core
	events      *broker
	faults      *faultSet
	views       *views
	hosts       *hosts
	transitions *transitions
}

// overview returns the overview with the newest servers that match filter: a part of
// the name, ID, state or host, in any case.
func (ov *overviewStreams) overview(filter string) overview {
	now := ov.core.now()
	o := overview{
		hosts:  excerptOf(ov.hosts.usage(now)),
		faults: faultSummaries(ov.faults.all()),
	}
	ov.core.mu.RLock()
	defer ov.core.mu.RUnlock()
	o.summary, o.servers = ov.serversMatching(strings.ToLower(filter), now)
	networks := slices.SortedFunc(maps.Values(ov.core.st.networks), func(a, b *Network) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	o.networks = excerpt[Network]{Total: len(networks), Items: []Network{}}
	for _, n := range networks[:min(len(networks), overviewItems)] {
		o.networks.Items = append(o.networks.Items, *n)
	}
	o.ledger = excerptOf(ov.core.st.ledger[max(0, len(ov.core.st.ledger)-overviewItems):])
	o.ledger.Total = len(ov.core.st.ledger)
	slices.Reverse(o.ledger.Items)
	return o
}

// serversMatching returns the summary of all servers, and the newest that match. The
// caller holds core.mu.
func (ov *overviewStreams) serversMatching(filter string, now time.Time) (summary, excerpt[Server]) {
	all := summary{At: now, Profile: ov.core.profile, Servers: map[State]int{}}
	matching := excerpt[Server]{Items: []Server{}}
	percent := 0
	for _, p := range slices.Backward(ov.core.st.order) {
		r := ov.core.st.servers[p.id]
		s := r.Server
		ov.views.measure(r, &s, now)
		all.Servers[s.State]++
		percent += *s.CPUUtilization
		if !s.contains(filter) {
			continue
		}
		matching.Total++
		if len(matching.Items) < overviewItems {
			s.Labels = nil
			matching.Items = append(matching.Items, s)
		}
	}
	if n := len(ov.core.st.order); n > 0 {
		mean := float64(percent) / float64(n)
		all.CPUUtilization = &mean
	}
	return all, matching
}

// contains reports whether a field that the page shows contains text, which is in
// lower case.
func (s *Server) contains(text string) bool {
	if text == "" {
		return true
	}
	return slices.ContainsFunc([]string{s.Name, s.ID, string(s.State), s.Host}, func(field string) bool {
		return strings.Contains(strings.ToLower(field), text)
	})
}

func faultSummaries(faults []FaultStatus) excerpt[faultSummary] {
	out := excerpt[faultSummary]{Total: len(faults), Items: []faultSummary{}}
	for _, f := range faults[:min(len(faults), overviewItems)] {
		s := faultSummary{ID: f.ID, Fired: f.Fired, Held: f.Held}
		f.ID = ""
		s.Description = string(encoded("", s.ID, f.Fault).Value)
		if len(s.Description) > maxDescription {
			s.Description = strings.ToValidUTF8(s.Description[:maxDescription], "") + "…"
		}
		out.Items = append(out.Items, s)
	}
	return out
}

// parts returns the name and the encoding of each part.
func (o *overview) parts() []overviewPart {
	var parts []overviewPart
	for _, part := range []struct {
		name  string
		value any
	}{
		{"summary", o.summary}, {"servers", o.servers}, {"networks", o.networks},
		{"hosts", o.hosts}, {"faults", o.faults}, {"ledger", o.ledger},
	} {
		parts = append(parts, overviewPart{name: part.name, data: encoded("", part.name, part.value).Value})
	}
	return parts
}

type overviewPart struct {
	name string
	data json.RawMessage
}
