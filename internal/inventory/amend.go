package inventory

import (
	"slices"
	"time"
)

// changes are servers by id as they were reported; nil for one that is gone.
type changes map[string]*listed

// amended returns a copy of the snapshot with these changes, and the ids of the servers
// that appeared, disappeared or differ in a compared field. The snapshots share the
// servers that are the same.
func (s *Snapshot) amended(by changes) (*Snapshot, []string) {
	next := *s
	var ids []string
	gone, added := map[*listed]bool{}, []*listed{}
	for id, server := range by {
		before := s.ids.get(id)
		switch {
		case before == server, before != nil && server != nil && *before == *server:
			continue
		case before == nil || server == nil || !equalServers(before, server):
			ids = append(ids, id)
		}
		if before != nil {
			gone[before] = true
			next.bytes -= costOf(before) - commonCost(before) // other servers may have the same
		}
		if server != nil {
			added = append(added, server)
			next.bytes += costOf(server)
			if before != nil && before.traits == server.traits {
				next.bytes -= commonCost(server)
			}
		}
	}
	if len(gone)+len(added) == 0 {
		return &next, nil
	}
	next.revision, next.shared = revisions.Add(1), nil
	next.ids, next.named = s.ids.changed(gone, added), s.named.changed(gone, added)
	next.owned = s.owned.changed(gone, slices.DeleteFunc(added, ownerless))
	return &next, ids
}

// changesTo returns the servers that differ from those of the snapshot, not ok if
// they are more than most.
func (s *Snapshot) changesTo(servers map[string]*listed, most int) (by changes, ok bool) {
	by = changes{}
	found := 0
	for id, server := range servers {
		before := s.ids.get(id)
		if before != nil {
			found++
		}
		if before != server {
			by[id] = server
		}
		if len(by) > most {
			return nil, false
		}
	}
	if found == s.Len() {
		return by, true
	}
	for server := range s.ids.all() {
		if servers[server.id] == nil {
			by[server.id] = nil
		}
	}
	return by, len(by) <= most
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sharing replaces the texts of a server that servers share by those of another one.
func (l *listed) sharing(with *listed) *listed {
	l.host, l.folder = same(l.host, with.host), same(l.folder, with.folder)
	if l.owner != nil && with.owner != nil {
		if *l.owner == *with.owner {
			l.owner = with.owner // of a snapshot, which does not change
			return l
		}
		l.owner.cluster = same(l.owner.cluster, with.owner.cluster)
		l.owner.namespace = same(l.owner.namespace, with.owner.namespace)
	}
	return l
}

// same returns the second of two texts if they are equal.
func same(text, known string) string {
	if text == known {
		return known
	}
	return text
}

// tooLarge returns an error if the snapshot is larger than a listing may be.
func (s *Snapshot) tooLarge() error { return exceeded(s.Len(), s.bytes) }
