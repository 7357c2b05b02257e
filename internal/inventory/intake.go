package inventory

import (
	"maps"

	"github.com/privatecloud/operator/internal/cloud"
)

// intake takes the servers of one listing into a snapshot, as far as the limits
// allow: a cloud.ServerSink for each page, and add at its end. It holds one copy of
// each text that many servers share: with tens of thousands of servers, the names of
// their cluster alone take megabytes.
//
// Servers that are the same as in the last listing are taken from that one. They are
// counted as if they took new memory: they do once the last listing is dropped.
type intake struct {
	snap *Snapshot
	// last is the last listing; empty if there is none.
	last *Snapshot
	// servers are those of the pages that were added, by id.
	servers map[string]*listed
	// shared has the texts, also those of pages that had to be read again, and
	// sharedBytes is their memory.
	shared      map[string]string
	sharedBytes int
	// page are the servers of the page that is being read.
	page []*listed
	// bytes is the memory of all else, and added that of the pages that were added.
	bytes, added int
	// hold is called with the memory whenever that has grown by holdStep since it was
	// known, and at the end of a page.
	hold  func(bytes int) error
	known int
}

// newIntake returns an intake into a new snapshot. last may be nil. One with what a watch
// reported does not count as a listing, since texts of its servers are not shared.
func newIntake(snap, last *Snapshot, hold func(bytes int) error) *intake {
	if last == nil || last.shared == nil {
		last = &Snapshot{}
	}
	return &intake{snap: snap, last: last, servers: make(map[string]*listed, last.Len()), shared: map[string]string{}, hold: hold}
}

// holdAll sets no bound beside those of one listing.
func holdAll(int) error { return nil }

// Begin begins a page, again if it was begun before.
func (in *intake) Begin() { in.page, in.bytes = nil, in.added }

// Take takes a server of the page. It fails as Unreadable when the listing is larger
// than the operator reads.
func (in *intake) Take(s cloud.Server) error {
	in.page = append(in.page, in.keep(&s))
	if err := in.exceeded(len(in.page)); err != nil || in.held() < in.known+holdStep {
		return err
	}
	return in.holdMore()
}

// holdMore reports the memory to hold.
func (in *intake) holdMore() error {
	in.known = in.held()
	return in.hold(in.known)
}

// add adds the page to the snapshot.
func (in *intake) add() error {
	for _, server := range in.page {
		in.servers[server.id] = server
	}
	in.page, in.added = nil, in.bytes
	return in.exceeded(len(in.servers))
}

// done returns the snapshot with all pages that were added.
func (in *intake) done() *Snapshot {
	in.snap.index(in.servers, in.last)
	in.snap.bytes, in.snap.shared = in.held(), in.shared
	return in.snap
}

// held returns the memory of what was taken so far.
func (in *intake) held() int { return in.bytes + in.sharedBytes }

// addMarker counts a page marker, which is kept until the listing ends.
func (in *intake) addMarker(marker string) error {
	in.bytes += textCost + len(marker)
	in.added = in.bytes
	return in.exceeded(0)
}

func (in *intake) exceeded(servers int) error { return exceeded(servers, in.held()) }

// keep returns what is kept of a server, and counts it.
func (in *intake) keep(s *cloud.Server) *listed {
	read, by := read(s)
	in.bytes += serverCost
	in.own(read.id)
	in.own(read.name)
	if read.folder != "" {
		in.own(read.folder) // a client shares those of a page
	}
	if read.interfaces != "" {
		in.own(string(read.interfaces))
	}
	if s.Disks != "" {
		in.own(string(s.Disks))
	}
	if s.PublicAddress != "" {
		in.own(s.PublicAddress)
	}
	in.share(s.Image.Name)
	in.share(s.Image.ID)
	in.share(s.Flavor)
	in.share(s.Fault)
	in.share(s.RootDisk.Type)
	in.share(string(s.SecurityGroups))
	in.share(string(s.AllowedAddresses))
	in.share(shared(read.traits).tags)
	read.host = in.share(read.host)
	if by != (owner{}) {
		in.bytes += ownerCost
		in.own(by.uid)
		in.own(by.name)
		by.cluster, by.namespace = in.share(by.cluster), in.share(by.namespace)
	}
	if last := in.last.ids.get(read.id); last != nil && last.is(read, by) {
		return last
	}
	return read.with(by)
}

// own counts a text that one server has.
func (in *intake) own(text string) { in.bytes += textCost + len(text) }

// share returns the copy of a text that all servers share, that of the last listing if it
// has one.
func (in *intake) share(text string) string {
	if shared, ok := in.shared[text]; ok {
		return shared
	}
	if last, ok := in.last.shared[text]; ok {
		text = last
	}
	in.shared[text] = text
	in.sharedBytes += sharedCost + len(text)
	return text
}

// index sets the servers of the snapshot, by id. It shares the indexes of the last listing
// if few servers differ.
func (s *Snapshot) index(servers map[string]*listed, last *Snapshot) {
	if by, few := last.changesTo(servers, last.Len()/8); few && last.Len() > 0 {
		like, _ := last.amended(by)
		s.ids, s.named, s.owned = like.ids, like.named, like.owned
		return
	}
	s.ids = newIndex(serverID, len(servers), maps.Values(servers))
	s.named = newIndex(normalName, len(servers), maps.Values(servers))
	owned := 0
	for _, server := range servers {
		if !ownerless(server) {
			owned++
		}
	}
	s.owned = newIndex(ownerKey, owned, func(yield func(*listed) bool) {
		for _, server := range servers {
			if !ownerless(server) && !yield(server) {
				return
			}
		}
	})
}
