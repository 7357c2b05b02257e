package inventory

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// PageSize is the number of servers requested for a page.
	PageSize = 1000
	// maxPages bounds the calls of one listing, for a cloud with small pages.
	maxPages = 10_000
)

// Owner labels, which the operator sets on each server that it creates. UID and
// Cluster together prove which object owns a server; Namespace and Name name it.
const (
	UIDLabel       = "samplecontroller.k8s.io/uid"
	ClusterLabel   = "samplecontroller.k8s.io/cluster"
	NamespaceLabel = "samplecontroller.k8s.io/namespace"
	NameLabel      = "samplecontroller.k8s.io/name"
)

// Snapshot is one complete listing of a cloud's servers. It does not change.
type Snapshot struct {
	// ID is the time at which the listing began, in UTC. It is for people.
	ID string
	// Begun is when the first page was requested. Changes before it are in the
	// snapshot, as far as the cloud's own listing is up to date.
	Begun time.Time
	// Took is how long the listing took.
	Took time.Duration
	// Pages is the number of calls that the listing took.
	Pages int

	servers map[string]cloud.Server
	byUID   map[string][]string
	byName  map[string][]string
	// transitional are the IDs of servers with owner labels in a transitional state.
	transitional []string
}

// List lists all servers of a cloud. It fails rather than return an incomplete
// snapshot: when a page fails, when a page marker repeats, after maxPages, or as
// soon as the listing exceeds maxServers or maxBytes. A server on two pages counts
// once.
func List(ctx context.Context, from cloud.ServerReader, now func() time.Time) (*Snapshot, error) {
	begun := now()
	snap := newSnapshot(begun)
	markers, in := map[string]bool{}, newIntake(snap)
	for marker := ""; ; {
		page, err := from.ListServers(ctx, cloud.ListServers{Limit: PageSize, Marker: marker})
		if err != nil {
			return nil, err
		}
		snap.Pages++
		if err := in.add(page.Servers); err != nil {
			return nil, err
		}
		marker = page.Next
		switch {
		case marker == "":
			snap.index()
			snap.Took = now().Sub(begun)
			return snap, nil
		case markers[marker]:
			return nil, &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: "the cloud's listing loops: a page marker came back"}
		case snap.Pages == maxPages:
			return nil, &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Err: errors.New("the cloud's listing does not end")}
		}
		if err := in.addMarker(marker); err != nil {
			return nil, err
		}
		markers[marker] = true
	}
}

func newSnapshot(begun time.Time) *Snapshot {
	return &Snapshot{
		ID:      begun.UTC().Format("20060102T150405.000Z"),
		Begun:   begun,
		servers: map[string]cloud.Server{},
	}
}

func (s *Snapshot) index() {
	s.byUID = make(map[string][]string)
	s.byName = make(map[string][]string, len(s.servers))
	for id, server := range s.servers {
		s.byName[server.Name] = append(s.byName[server.Name], id)
		uid := server.Labels[UIDLabel]
		if uid == "" {
			continue
		}
		s.byUID[uid] = append(s.byUID[uid], id)
		if server.State.Transitional() {
			s.transitional = append(s.transitional, id)
		}
	}
}

// Len returns the number of servers.
func (s *Snapshot) Len() int { return len(s.servers) }

// Has reports whether the server was listed.
func (s *Snapshot) Has(id string) bool { _, ok := s.servers[id]; return ok }

// All yields all servers in no particular order.
func (s *Snapshot) All() iter.Seq[cloud.Server] { return maps.Values(s.servers) }

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
