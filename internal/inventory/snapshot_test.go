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

// listing answers ListServers with its pages, by marker. Unlike a cloud, it can
// break the contract: repeat a marker, or show a server twice.
type listing struct {
	cloud.ServerReader
	pages map[string]cloud.ServerPage
	fail  map[string]error
	// each is called before a page is answered.
	each  func()
	asked []cloud.ListServers
}

func (l *listing) ListServers(_ context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	l.asked = append(l.asked, opts)
	if l.each != nil {
		l.each()
	}
	return l.pages[opts.Marker], l.fail[opts.Marker]
}

// pages chains pages by the markers "1", "2" and so on.
func pages(servers ...[]cloud.Server) *listing {
	l := &listing{pages: map[string]cloud.ServerPage{}}
	marker := ""
	for i, page := range servers {
		next := ""
		if i+1 < len(servers) {
			next = string(rune('1' + i))
		}
		l.pages[marker] = cloud.ServerPage{Servers: page, Next: next}
		marker = next
	}
	return l
}

func TestListTakesEveryPageOrNothing(t *testing.T) {
	away := &cloud.Error{Kind: cloud.Unavailable, Op: "list servers", Detail: "connection refused"}
	tests := []struct {
		name   string
		from   *listing
		want   []string
		pages  int
		failed string
		kind   cloud.Kind
	}{
		{name: "an empty cloud has an empty listing, not none", from: pages(nil), pages: 1},
		{name: "the pages are joined", from: pages([]cloud.Server{server("a"), server("b")}, []cloud.Server{server("c")}), want: []string{"a", "b", "c"}, pages: 2},
		{name: "an empty page in the middle does not end the listing", from: pages([]cloud.Server{server("a")}, nil, []cloud.Server{server("b")}), want: []string{"a", "b"}, pages: 3},
		{name: "a server that moved to a later page meanwhile counts once", from: pages([]cloud.Server{server("a"), server("b")}, []cloud.Server{server("b"), server("c")}), want: []string{"a", "b", "c"}, pages: 2},
		{
			name: "a page that fails leaves no part of a listing, which would read as servers lost",
			from: func() *listing {
				l := pages([]cloud.Server{server("a")}, []cloud.Server{server("b")})
				l.fail = map[string]error{"1": away}
				return l
			}(),
			failed: "list servers: connection refused", kind: cloud.Unavailable,
		},
		{
			name:   "a marker that comes back would loop for ever",
			from:   &listing{pages: map[string]cloud.ServerPage{"": {Next: "1"}, "1": {Next: "2"}, "2": {Next: "1"}}},
			failed: "list servers: the cloud's listing loops: a page marker came back", kind: cloud.Unreadable,
		},
		{
			name:   "a page that names itself as the next one loops too",
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

// endless has always another page.
type endless struct {
	cloud.ServerReader
	n int
}

func (e *endless) ListServers(context.Context, cloud.ListServers) (cloud.ServerPage, error) {
	e.n++
	return cloud.ServerPage{Next: strconv.Itoa(e.n)}, nil
}

func TestListEndsWhereTheCloudDoesNot(t *testing.T) {
	from := &endless{}
	snap, err := inventory.List(t.Context(), from, func() time.Time { return dawn })
	if snap != nil || !cloud.Is(err, cloud.Unreadable) {
		t.Errorf("List = %v, %v; want no snapshot and an error of kind Unreadable", snap, err)
	}
	equal(t, "calls", 10_000, from.n)
}

func TestListAsksForFullPagesAndTellsWhenItBegan(t *testing.T) {
	h := newHouse(t)
	l := pages([]cloud.Server{server("a")}, []cloud.Server{server("b")})
	l.each = func() { h.clock.advance(3 * time.Second) }
	snap, err := inventory.List(t.Context(), l, h.clock.Now)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	equal(t, "questions", []cloud.ListServers{{Limit: inventory.PageSize}, {Limit: inventory.PageSize, Marker: "1"}}, l.asked)
	equal(t, "begun: before the first page was asked for, lest a change during the listing counts as seen", dawn, snap.Begun)
	equal(t, "took", 6*time.Second, snap.Took)
	equal(t, "id", "20260301T060000.000Z", snap.ID)
}

func TestOlderKeepsTheFirstBornAndBreaksTiesById(t *testing.T) {
	servers := []cloud.Server{server("z"), server("b", bornAfter(time.Hour)), server("a"), server("c", bornAfter(-time.Hour))}
	slices.SortFunc(servers, inventory.Older)
	equal(t, "order", []string{"c", "a", "z", "b"}, ids(servers))
	equal(t, "a server beside itself", 0, inventory.Older(server("a"), server("a")))
}

// FuzzList serves random pages with random markers: List must end, and return
// either all servers of the chain it walked or an error.
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
