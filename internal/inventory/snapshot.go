package inventory

import (
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// Snapshot is one complete listing of a cloud's servers, perhaps with what a watch
// reported since. It does not change.
type Snapshot struct {
	// ID is the time at which the listing began, or at which what a watch reported was
	// added to it, in UTC. It is for people.
	ID string
	// Begun is when the first page was requested, or a later time up to which a watch
	// had reported all changes when they were compared. Changes before it are in the
	// snapshot, as far as the cloud's own listing and reports are up to date.
	Begun time.Time
	// Took is how long the listing took.
	Took time.Duration
	// Pages is the number of calls that the listing took.
	Pages int
	// Incomplete: the listing lacks servers that the cloud returns by id, so it proves no
	// absence. It is set before the snapshot is published.
	Incomplete bool

	// current is a time, Begun or later, up to which the snapshot has all changes of the
	// servers that it has. The absence of others is known up to Begun.
	current time.Time
	// ids has all servers by id, named by the normal form of their name, and owned those
	// with owner labels by the beginning of the UID of their owner.
	ids, named, owned index
	// bytes is the memory that it takes, about.
	bytes int
	// shared has the texts of a listing that servers share; nil once a watch has reported
	// servers, whose texts are their own.
	shared map[string]string
	// revision is that of the servers, unique in this process.
	revision uint64
}

// revisions is the last revision.
var revisions atomic.Uint64

func newSnapshot(begun time.Time) *Snapshot {
	return &Snapshot{
		ID:      snapshotID(begun),
		Begun:   begun,
		current: begun,
		ids:     index{key: serverID}, named: index{key: normalName}, owned: index{key: ownerKey}, revision: revisions.Add(1),
	}
}

func snapshotID(at time.Time) string { return at.UTC().Format("20060102T150405.000Z") }

func serverID(s *listed) string   { return s.id }
func normalName(s *listed) string { return cloud.NormalName(s.name) }
func ownerUID(s *listed) string   { return s.ownedBy().uid }
func ownerKey(s *listed) string   { return beginning(ownerUID(s)) }
func ownerless(s *listed) bool    { return ownerUID(s) == "" }

// state returns the state of a server, empty if it was not listed.
func (s *Snapshot) state(id string) cloud.State {
	if server := s.ids.get(id); server != nil {
		return server.state
	}
	return ""
}

// Server returns a server, and whether it was listed.
func (s *Snapshot) Server(id string) (cloud.Server, bool) {
	if server := s.ids.get(id); server != nil {
		return server.server(), true
	}
	return cloud.Server{}, false
}

// Revision identifies what the snapshot holds: another one may hold other servers.
func (s *Snapshot) Revision() uint64 { return s.revision }

// Len returns the number of servers.
func (s *Snapshot) Len() int { return s.ids.len }

// Has reports whether the server was listed.
func (s *Snapshot) Has(id string) bool { return s.ids.get(id) != nil }

// knownUntil returns the time up to which the snapshot has what happened to a server.
func (s *Snapshot) knownUntil(id string) time.Time {
	if s.Has(id) {
		return s.current
	}
	return s.Begun
}

// All yields all servers in no particular order.
func (s *Snapshot) All() iter.Seq[cloud.Server] {
	return func(yield func(cloud.Server) bool) {
		for server := range s.ids.all() {
			if !yield(server.server()) {
				return
			}
		}
	}
}

// Orphans yields the servers with the labels of a cluster, in no particular order, whose
// owner's UID is none of these. Servers that are being deleted are none of them.
func (s *Snapshot) Orphans(cluster string, uids map[string]bool) iter.Seq[cloud.Server] {
	return func(yield func(cloud.Server) bool) {
		for server := range s.ids.all() {
			by := server.owner
			if by == nil || by.cluster != cluster || uids[by.uid] || server.state == cloud.StateDeleting {
				continue
			}
			if !yield(server.server()) {
				return
			}
		}
	}
}

// Older orders servers by age, then by ID: the first is the one to keep when
// one create made several.
func Older(a, b cloud.Server) int {
	if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
		return c
	}
	if a.ID < b.ID {
		return -1
	}
	if a.ID > b.ID {
		return 1
	}
	return 0
}

func sorted(servers []cloud.Server) []cloud.Server {
	slices.SortFunc(servers, Older)
	return servers
}

// OwnerUID returns the UID in the owner labels of a server, and whether the server is listed.
func (s *Snapshot) OwnerUID(id string) (uid string, listed bool) {
	server := s.ids.get(id)
	if server == nil {
		return "", false
	}
	return ownerUID(server), true
}
