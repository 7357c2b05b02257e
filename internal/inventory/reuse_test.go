package inventory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// onePage is a cloud that lists these servers. Each listing has its own copies of the texts.
type onePage struct {
	cloud.ServerReader
	servers map[string]cloud.Server
}

func (p onePage) ListServers(context.Context, cloud.ListServers) (cloud.ServerPage, error) {
	page := cloud.ServerPage{}
	for _, s := range p.servers {
		s.ID, s.Name, s.Host, s.Folder = strings.Clone(s.ID), strings.Clone(s.Name), strings.Clone(s.Host), strings.Clone(s.Folder)
		labels := map[string]string{}
		for key, value := range s.Labels {
			labels[key] = strings.Clone(value)
		}
		s.Labels = labels
		page.Servers = append(page.Servers, s)
	}
	return page, nil
}

// changeOne changes one field of a server.
var changeOne = []func(s *cloud.Server, n int){
	func(s *cloud.Server, n int) { s.Name = fmt.Sprint("name", n) },
	func(s *cloud.Server, n int) { s.Host = fmt.Sprint("host", n%3) },
	func(s *cloud.Server, n int) { s.Folder = fmt.Sprint("folder", n%3) },
	func(s *cloud.Server, n int) { s.State = []cloud.State{cloud.StateActive, cloud.StateStopped}[n%2] },
	func(s *cloud.Server, n int) { s.CPU = n },
	func(s *cloud.Server, n int) { s.MemoryMiB = n },
	func(s *cloud.Server, n int) { s.CPUUsageMHz = n },
	func(s *cloud.Server, n int) { s.MemoryUsageMB = n },
	func(s *cloud.Server, n int) { s.CPUUtilization = new(n) },
	func(s *cloud.Server, _ int) { s.CPUUtilization = nil },
	func(s *cloud.Server, n int) { s.CreatedAt = s.CreatedAt.Add(time.Duration(n)) },
	func(s *cloud.Server, n int) { s.Labels = owner{uid: fmt.Sprint("uid", n%5), cluster: "c"}.labels() },
	func(s *cloud.Server, n int) {
		s.Labels = owner{uid: "u", cluster: fmt.Sprint("c", n%2), namespace: "n", name: "v"}.labels()
	},
	func(s *cloud.Server, n int) {
		s.Labels = owner{uid: "u", namespace: fmt.Sprint("n", n%3), name: fmt.Sprint(n)}.labels()
	},
	func(s *cloud.Server, n int) { s.Labels = map[string]string{TagsLabel: "env", "env": fmt.Sprint(n % 3)} },
	func(s *cloud.Server, n int) { s.Fault = fmt.Sprint("fault ", n%3) },
	func(s *cloud.Server, _ int) { s.Labels = nil },
}

// content is what lookups find in a snapshot.
func content(s *Snapshot) map[string][]cloud.Server {
	found := map[string][]cloud.Server{}
	for name, x := range map[string]*index{"id": &s.ids, "name": &s.named, "owner": &s.owned} {
		found[name] = []cloud.Server{}
		for server := range x.all() {
			for with := range x.with(x.key(server)) {
				if with == server {
					found[name] = append(found[name], server.server())
				}
			}
		}
		slices.SortFunc(found[name], func(a, b cloud.Server) int { return strings.Compare(a.ID, b.ID) })
	}
	return found
}

// A listing that reuses the last one holds what it holds without it, counts the same
// memory, and leaves the last one as it was.
func TestListingThatReusesTheLastOneEqualsOneThatDoesNot(t *testing.T) {
	for seed := range uint64(10) {
		random, d := rand.New(rand.NewPCG(seed, 0)), New(time.Now, "c")
		from := onePage{servers: map[string]cloud.Server{}}
		var last *Snapshot
		for step := range 60 {
			for range random.IntN(1 + random.IntN(8)) {
				id := fmt.Sprint(random.IntN(60))
				s := from.servers[id]
				s.ID, s.Name = id, "name"+id
				changeOne[random.IntN(len(changeOne))](&s, random.IntN(100))
				if from.servers[id] = s; random.IntN(4) == 0 {
					delete(from.servers, id)
				}
			}
			begun := time.Unix(int64(step), 0)
			clock := func() time.Time { return begun }
			want, err := List(t.Context(), from, clock)
			if err != nil {
				t.Fatal(err)
			}
			var before map[string][]cloud.Server
			if last != nil {
				before = content(last)
			}
			got, err := d.List(t.Context(), from, last, clock)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(content(want), content(got)); diff != "" {
				t.Fatalf("seed %d, step %d: servers (-without reuse +with reuse):\n%s", seed, step, diff)
			}
			if got.bytes != want.bytes || got.Len() != want.Len() || got.owned.len != want.owned.len || !got.Begun.Equal(begun) || !got.current.Equal(begun) {
				t.Fatalf("seed %d, step %d: %d bytes, %d servers, %d owned, begun %v; want %d, %d, %d, %v", seed, step,
					got.bytes, got.Len(), got.owned.len, got.Begun, want.bytes, want.Len(), want.owned.len, begun)
			}
			if last != nil {
				if diff := cmp.Diff(before, content(last)); diff != "" {
					t.Fatalf("seed %d, step %d: the last listing (-before +after):\n%s", seed, step, diff)
				}
			}
			last = got
		}
	}
}

func TestSnapshotWithReportsIsNotReused(t *testing.T) {
	d, s := New(time.Now, "c"), cloud.Server{ID: "1", Name: "a", Host: "h"}
	from := onePage{servers: map[string]cloud.Server{"1": s, "2": {ID: "2", Name: "b", Host: "h"}}}
	first, err := d.List(t.Context(), from, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s.CPU = 2
	reported, _ := first.amended(changes{"1": newListed(&s)})
	from.servers["1"] = s
	for name, tc := range map[string]struct {
		last *Snapshot
		want bool
	}{
		"a listing":               {last: first, want: true},
		"a listing with a report": {last: reported, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			next, err := d.List(t.Context(), from, tc.last, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if got := next.ids.get("2") == first.ids.get("2"); got != tc.want {
				t.Errorf("the server that is the same is reused: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestListingOfTheSameServersTakesNoNewMemory(t *testing.T) {
	const n, most = 20_000, 64 << 10
	from := onePage{servers: map[string]cloud.Server{}}
	for i := range n {
		s := cloud.Server{ID: fmt.Sprint("id", i), Name: fmt.Sprint("name", i), Host: fmt.Sprint("host", i%7)}
		s.Labels = owner{uid: fmt.Sprint("uid", i), cluster: "c", namespace: "n", name: s.Name}.labels()
		from.servers[s.ID] = s
	}
	d := New(time.Now, "c")
	list := func(last *Snapshot) *Snapshot {
		snap, err := d.List(t.Context(), from, last, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	first := list(nil)
	before := liveHeap()
	second := list(first)
	if grown := liveHeap() - before; grown > most {
		t.Errorf("a second listing of %d servers takes %d bytes, want at most %d", n, grown, most)
	}
	if first.bytes != second.bytes || second.Len() != n {
		t.Errorf("%d bytes and %d servers are counted, want %d and %d", second.bytes, second.Len(), first.bytes, n)
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
}

// liveHeap returns the size of the heap that is in use, in bytes.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
