package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestListReturnsAllPagesOrAnError(t *testing.T) {
	unavailable := &cloud.Error{Kind: cloud.Unavailable, Op: "list servers", Detail: "connection refused"}
	tests := []struct {
		name   string
		from   *listing
		want   []string
		pages  int
		failed string
		kind   cloud.Kind
	}{
		{name: "no servers: an empty snapshot", from: pages(nil), pages: 1},
		{name: "two pages: the servers of both", from: pages([]cloud.Server{server("a"), server("b")}, []cloud.Server{server("c")}), want: []string{"a", "b", "c"}, pages: 2},
		{name: "an empty page in the middle: the listing goes on", from: pages([]cloud.Server{server("a")}, nil, []cloud.Server{server("b")}), want: []string{"a", "b"}, pages: 3},
		{name: "a server moved to a later page meanwhile: it counts once", from: pages([]cloud.Server{server("a"), server("b")}, []cloud.Server{server("b"), server("c")}), want: []string{"a", "b", "c"}, pages: 2},
		{
			name: "the second page fails: no snapshot, because servers would seem lost",
			from: func() *listing {
				l := pages([]cloud.Server{server("a")}, []cloud.Server{server("b")})
				l.fail = map[string]error{"1": unavailable}
				return l
			}(),
			failed: "list servers: connection refused", kind: cloud.Unavailable,
		},
		{
			name:   "an earlier marker comes back: an error instead of an endless loop",
			from:   &listing{pages: map[string]cloud.ServerPage{"": {Next: "1"}, "1": {Next: "2"}, "2": {Next: "1"}}},
			failed: "list servers: the cloud's listing loops: a page marker came back", kind: cloud.Unreadable,
		},
		{
			name:   "a page has its own marker as the next one: an error instead of an endless loop",
			from:   &listing{pages: map[string]cloud.ServerPage{"": {Next: "1"}, "1": {Next: "1"}}},
			failed: "list servers: the cloud's listing loops: a page marker came back", kind: cloud.Unreadable,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			snap, err := inventory.List(t.Context(), tc.from, func() time.Time { return dawn })
			if tc.failed != "" {
				if snap != nil || err == nil || err.Error() != tc.failed || cloud.KindOf(err) != tc.kind {
					t.Fatalf("List = %v, %v (kind %s); want no snapshot and %q (kind %s)", snap, err, cloud.KindOf(err), tc.failed, tc.kind)
				}
				return
			}
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			equal(t, "servers", tc.want, ids(slices.SortedFunc(snap.All(), inventory.Older)))
			equal(t, "number of servers", len(tc.want), snap.Len())
			equal(t, "calls", tc.pages, snap.Pages)
		})
	}
}

// endless always has another page.
type endless struct {
	cloud.ServerReader
	n int
}

func (e *endless) ListServers(context.Context, cloud.ListServers) (cloud.ServerPage, error) {
	e.n++
	return cloud.ServerPage{Next: strconv.Itoa(e.n)}, nil
}

func TestListFailsAfterTheMaximumOfPages(t *testing.T) {
	from := &endless{}
	snap, err := inventory.List(t.Context(), from, func() time.Time { return dawn })
	if snap != nil || !cloud.Is(err, cloud.Unreadable) {
		t.Errorf("List = %v, %v; want no snapshot and an error of kind Unreadable", snap, err)
	}
	equal(t, "calls", 10_000, from.n)
}

func TestListRequestsFullPagesAndRecordsItsBegin(t *testing.T) {
	h := newHarness(t)
	l := pages([]cloud.Server{server("a")}, []cloud.Server{server("b")})
	l.each = func() { h.clock.advance(3 * time.Second) }
	snap, err := inventory.List(t.Context(), l, h.clock.Now)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	equal(t, "requests", []cloud.ListServers{{Limit: inventory.PageSize}, {Limit: inventory.PageSize, Marker: "1"}}, l.asked)
	equal(t, "begun, before the first page was requested, so that no change during the listing counts as listed", dawn, snap.Begun)
	equal(t, "took", 6*time.Second, snap.Took)
	equal(t, "id", "20260301T060000.000Z", snap.ID)
}

func TestOlderOrdersByAgeThenByID(t *testing.T) {
	servers := []cloud.Server{server("z"), server("b", createdAfter(time.Hour)), server("a"), server("c", createdAfter(-time.Hour))}
	slices.SortFunc(servers, inventory.Older)
	equal(t, "order", []string{"c", "a", "z", "b"}, ids(servers))
	equal(t, "a server compared with itself", 0, inventory.Older(server("a"), server("a")))
}

// FuzzList serves random pages with random markers: List must end, and return
// either all servers of the pages that it requested or an error.
func FuzzList(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 0})
	f.Add([]byte{1, 1, 1})
	f.Add([]byte{5, 4, 3, 2, 1, 0})
	f.Add([]byte{3, 0, 250, 2, 1})
	f.Fuzz(func(t *testing.T, next []byte) {
		l := &listing{pages: map[string]cloud.ServerPage{}, fail: map[string]error{}}
		for i, n := range next {
			page := cloud.ServerPage{Servers: []cloud.Server{server(fmt.Sprint(n)), server(fmt.Sprint(i))}}
			if n != 0 {
				page.Next = strconv.Itoa(int(n) % len(next))
			}
			marker := strconv.Itoa(i)
			if i == 0 {
				marker = ""
			}
			if n == 250 {
				l.fail[marker] = errors.New("no")
			}
			l.pages[marker] = page
		}
		snap, err := inventory.List(t.Context(), l, func() time.Time { return dawn })
		if (snap == nil) == (err == nil) {
			t.Fatalf("List = %v, %v; want one of them", snap, err)
		}
		if len(l.asked) > len(next)+2 {
			t.Fatalf("List asked %d times for at most %d markers", len(l.asked), len(next)+1)
		}
		if err != nil {
			return
		}
		for _, q := range l.asked {
			for _, s := range l.pages[q.Marker].Servers {
				if !snap.Has(s.ID) {
					t.Errorf("server %s of the page at %q is missing", s.ID, q.Marker)
				}
			}
		}
	})
}
