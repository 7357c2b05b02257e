package inventory

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
)

// index finds servers by a key, which several may have. It is divided into parts by a
// hash of the key, about as many as each has servers. So a copy with a few changes
// shares most parts, and costs in proportion to the square root of the servers. A
// published index does not change.
type index struct {
	key func(*listed) string
	// parts are each sorted by hash. There are none before there are servers.
	parts [][]place
	len   int
}

// place is a server in an index. The hash, of its key, saves most comparisons of texts.
type place struct {
	server *listed
	hash   uint32
}

// hashSeed is that of all indexes, which can then be compared by parts.
var hashSeed = maphash.MakeSeed()

func hashOf(key string) uint32 { return uint32(maphash.String(hashSeed, key)) } //nolint:gosec // a part of the hash

// newIndex returns an index of servers by a key.
func newIndex(key func(*listed) string, n int, servers iter.Seq[*listed]) index {
	x := index{key: key, parts: make([][]place, partsFor(n))}
	for server := range servers {
		hash := hashOf(key(server))
		p := x.part(hash)
		if x.parts[p] == nil {
			x.parts[p] = make([]place, 0, n/len(x.parts)+n/len(x.parts)/8+1)
		}
		x.parts[p] = append(x.parts[p], place{server: server, hash: hash})
		x.len++
	}
	for _, part := range x.parts {
		sortByHash(part)
	}
	return x
}

// partsFor returns the number of parts for n servers.
func partsFor(n int) int {
	parts := 1
	for parts*parts < n/2 {
		parts *= 2
	}
	return parts
}

// part returns which part has the servers with this hash.
func (x *index) part(hash uint32) int { return int(uint64(hash) * uint64(len(x.parts)) >> 32) }

// find returns where the servers with this hash begin, in which part.
func (x *index) find(hash uint32) (part, at int) {
	part = x.part(hash)
	at, _ = slices.BinarySearchFunc(x.parts[part], hash, func(p place, hash uint32) int { return cmp.Compare(p.hash, hash) })
	return part, at
}

// with yields the servers with a key.
func (x *index) with(key string) iter.Seq[*listed] {
	return func(yield func(*listed) bool) {
		if x.len == 0 {
			return
		}
		hash := hashOf(key)
		part, at := x.find(hash)
		for _, p := range x.parts[part][at:] {
			if p.hash != hash || x.key(p.server) == key && !yield(p.server) {
				return
			}
		}
	}
}

// get returns a server with a key; nil if there is none.
func (x *index) get(key string) *listed {
	for server := range x.with(key) {
		return server
	}
	return nil
}

// all yields all servers in no particular order.
func (x *index) all() iter.Seq[*listed] { return x.notIn(&index{}) }

// notIn yields the servers of all parts that another index does not share.
func (x *index) notIn(other *index) iter.Seq[*listed] {
	return func(yield func(*listed) bool) {
		for i, part := range x.parts {
			if len(part) == 0 || len(x.parts) == len(other.parts) && len(other.parts[i]) > 0 && &part[0] == &other.parts[i][0] {
				continue
			}
			for _, p := range part {
				if !yield(p.server) {
					return
				}
			}
		}
	}
}

// changed returns a copy without some servers and with others.
func (x *index) changed(gone map[*listed]bool, added []*listed) index {
	next := index{key: x.key, parts: slices.Clone(x.parts), len: x.len}
	if wanted := partsFor(x.len + len(added)); len(next.parts) == 0 || wanted > 2*len(next.parts) {
		next.parts = newIndex(x.key, x.len+len(added), x.all()).parts
	}
	edited := map[int][]place{}
	for server := range gone {
		part := next.part(hashOf(x.key(server)))
		edited[part] = nil
	}
	for _, server := range added {
		hash := hashOf(x.key(server))
		part := next.part(hash)
		edited[part] = append(edited[part], place{server: server, hash: hash})
	}
	for part, places := range edited {
		before := next.parts[part]
		places = slices.Grow(places, len(before))
		for _, p := range before {
			if !gone[p.server] {
				places = append(places, p)
			}
		}
		sortByHash(places)
		next.parts[part] = places
		next.len += len(places) - len(before)
	}
	return next
}

func sortByHash(places []place) {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.hash, b.hash) })
}
