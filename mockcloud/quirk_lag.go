package mockcloud

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// version is a server or network as it was before a change.
type version[T any] struct {
	// at is the time of the change.
	at time.Time
	id string
	// was is nil if there was none.
	was *T
}

// history has the former versions that a lagging read can show, oldest change
// first.
type history[T any] []version[T]

// add records a change, and forgets those that happened more than keep ago. With
// keep 0 nothing is recorded.
func (h *history[T]) add(at time.Time, keep time.Duration, id string, was *T) {
	if keep == 0 {
		return
	}
	old := slices.IndexFunc(*h, func(v version[T]) bool { return v.at.After(at.Add(-keep)) })
	if old < 0 {
		old = len(*h)
	}
	*h = append(slices.Delete(*h, 0, old), version[T]{at: at, id: id, was: was})
}

// lag returns how late a read shows changes of a server or network.
type lag func(id string) time.Duration

// before returns the versions that a read at now shows instead of the present
// ones, by ID. A nil version is one that the read does not show.
func (h history[T]) before(now time.Time, late lag) map[string]*T {
	if late == nil {
		return nil
	}
	shown := map[string]*T{}
	// The version before the first change that the read does not know yet.
	for _, v := range slices.Backward(h) {
		if v.at.After(now.Add(-late(v.id))) {
			shown[v.id] = v.was
		}
	}
	return shown
}

// reads shows servers and networks as calls of the API read them, which can lag.
type reads struct {
	core *core
	// count counts the reads for the quirk replicaLag.
	count atomic.Uint64
}

// nextLag returns the lag of the next read; nil if the read is up to date.
func (rd *reads) nextLag() lag {
	q := rd.core.quirks.Load()
	replica := time.Duration(0)
	if q.ReplicaLag > 0 && rd.count.Add(1)%2 == 0 {
		replica = time.Duration(q.ReplicaLag)
	}
	if q.ReadLag == 0 && replica == 0 {
		return nil
	}
	return func(id string) time.Duration {
		half := time.Duration(q.ReadLag) / 2
		own := half + time.Duration(float64(half)*float64(hash(q.Seed, id, 0)%1001)/1000)
		return max(own, replica)
	}
}

// server returns a server as the next read shows it.
func (rd *reads) server(id string) (*record, error) {
	late := rd.nextLag()
	rd.core.mu.RLock()
	defer rd.core.mu.RUnlock()
	r := rd.core.st.servers[id]
	if was, changed := rd.core.st.pastServers.before(rd.core.now(), late)[id]; changed {
		r = was
	}
	if r == nil {
		return nil, notFound("server", id)
	}
	return r, nil
}

// networks returns the networks as the next read shows them, by ID.
func (rd *reads) networks() map[string]*Network {
	late := rd.nextLag()
	rd.core.mu.RLock()
	defer rd.core.mu.RUnlock()
	shown := maps.Clone(rd.core.st.networks)
	overlay(shown, rd.core.st.pastNetworks.before(rd.core.now(), late))
	return shown
}

// overlay replaces versions, and removes those that are nil.
func overlay[T any](onto, versions map[string]*T) {
	for id, was := range versions {
		if was == nil {
			delete(onto, id)
		} else {
			onto[id] = was
		}
	}
}

// listed is what a listing shows.
type listed struct {
	servers map[string]*record
	order   []position
}

// listing returns the servers as the next listing shows them. The caller holds
// core.mu.
func (rd *reads) listing(q listQuery, now time.Time) listed {
	l := listed{servers: rd.core.st.servers, order: rd.core.st.order}
	if versions := rd.core.st.pastServers.before(now, rd.nextLag()); len(versions) > 0 {
		l.servers = maps.Clone(l.servers)
		overlay(l.servers, versions)
		l.order = make([]position, 0, len(l.servers))
		for _, r := range l.servers {
			l.order = append(l.order, r.position())
		}
		slices.SortFunc(l.order, position.compare)
	}
	if limit := rd.core.quirks.Load().ListCap; limit > 0 {
		l.order = l.capped(limit, q)
	}
	return l
}

// capped returns the first positions whose servers match the query.
func (l listed) capped(limit int, q listQuery) []position {
	var kept []position
	for _, p := range l.order {
		if len(kept) == limit {
			break
		}
		if q.matches(l.servers[p.id]) {
			kept = append(kept, p)
		}
	}
	return kept
}
