package inventory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// keyed are the ids of servers by a key.
type keyed map[string]map[string]bool

// holds returns what an index holds, by all and by each key.
func holds(x *index, keys []string) (all, each keyed) {
	all, each = keyed{}, keyed{}
	add := func(to keyed, key string, server *listed) {
		if to[key] == nil {
			to[key] = map[string]bool{}
		}
		to[key][server.id] = true
	}
	for server := range x.all() {
		add(all, x.key(server), server)
	}
	for _, key := range keys {
		for server := range x.with(key) {
			add(each, key, server)
		}
	}
	return all, each
}

// The servers of an index are those of the last change, in it and in each copy before.
func TestIndexHoldsWhatItWasChangedTo(t *testing.T) {
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 0))
		keys := make([]string, 1+random.IntN(300))
		for i := range keys {
			keys[i] = fmt.Sprint("key", i)
		}
		type version struct {
			index   index
			servers map[*listed]bool
		}
		versions := []version{{index: index{key: serverName}}}
		for n := range 40 {
			last := versions[len(versions)-1]
			gone, added := map[*listed]bool{}, []*listed{}
			for server := range last.servers {
				if random.IntN(4) == 0 {
					gone[server] = true
				}
			}
			for i := range random.IntN(100) {
				added = append(added, &listed{id: fmt.Sprint(n, "-", i), name: keys[random.IntN(len(keys))]})
			}
			next := version{index: last.index.changed(gone, added), servers: maps.Clone(last.servers)}
			maps.DeleteFunc(next.servers, func(server *listed, _ bool) bool { return gone[server] })
			for _, server := range added {
				if next.servers == nil {
					next.servers = map[*listed]bool{}
				}
				next.servers[server] = true
			}
			versions = append(versions, next)
		}
		for n, version := range versions {
			want := keyed{}
			for server := range version.servers {
				if want[server.name] == nil {
					want[server.name] = map[string]bool{}
				}
				want[server.name][server.id] = true
			}
			made := newIndex(serverName, len(version.servers), maps.Keys(version.servers))
			for name, x := range map[string]*index{"changed": &version.index, "made at once": &made} {
				all, each := holds(x, keys)
				if diff := cmp.Diff([]any{want, want, len(version.servers)}, []any{all, each, x.len}); diff != "" {
					t.Fatalf("seed %d, version %d, %s: servers, servers by key, length (-want +got):\n%s", seed, n, name, diff)
				}
			}
		}
	}
}

func serverName(s *listed) string { return s.name }

func numbered(n int) []*listed {
	servers := make([]*listed, n)
	for i := range servers {
		servers[i] = &listed{id: fmt.Sprint(i)}
	}
	return servers
}

func TestIndexSharesThePartsThatDoNotChange(t *testing.T) {
	const n = 10_000
	servers := numbered(n)
	x := newIndex(serverID, n, slices.Values(servers))
	next := x.changed(map[*listed]bool{servers[0]: true}, []*listed{{id: "new"}})
	differ := map[*listed]bool{}
	for server := range next.notIn(&x) {
		differ[server] = true
	}
	if len(differ) > n/10 || !differ[next.get("new")] {
		t.Errorf("%d of %d servers are in parts that are not shared, the new one: %t; want few, and the new one", len(differ), n, differ[next.get("new")])
	}
}

func TestIndexStaysInEvenPartsAsItGrows(t *testing.T) {
	x := index{key: serverID}
	for _, server := range numbered(20_000) {
		x = x.changed(nil, []*listed{server})
	}
	largest := 0
	for _, part := range x.parts {
		largest = max(largest, len(part))
	}
	if len(x.parts) < 32 || largest > 1_000 {
		t.Errorf("%d servers are in %d parts, the largest with %d", x.len, len(x.parts), largest)
	}
}
