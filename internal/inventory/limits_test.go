package inventory_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// generated lists a number of servers, made page by page.
type generated struct {
	cloud.ServerReader
	servers int
	server  func(i int) cloud.Server
	listed  int
}

func (g *generated) ListServers(_ context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	from, _ := strconv.Atoi(opts.Marker)
	page := cloud.ServerPage{}
	for i := from; i < min(from+inventory.PageSize, g.servers); i++ {
		page.Servers = append(page.Servers, g.server(i))
		g.listed++
	}
	if from+inventory.PageSize < g.servers {
		page.Next = strconv.Itoa(from + inventory.PageSize)
	}
	return page, nil
}

func minimal(i int) cloud.Server {
	return cloud.Server{ID: fmt.Sprintf("id-%06d", i), Name: fmt.Sprintf("vm-%06d", i), State: cloud.StateActive}
}

func TestListFailsOnAListingThatIsTooLarge(t *testing.T) {
	kilobyte := strings.Repeat("x", 1024)
	// sharing returns servers that all have these many labels.
	sharing := func(labels int, suffix string) func(int) cloud.Server {
		all := map[string]string{}
		for l := range labels {
			all[strconv.Itoa(l)+suffix] = strconv.Itoa(l)
		}
		return func(i int) cloud.Server {
			s := minimal(i)
			s.Labels = all
			return s
		}
	}
	tests := []struct {
		name    string
		servers int
		server  func(i int) cloud.Server
		// most is the largest number of servers that may be read before the failure; 0 if the listing is accepted.
		most int
		says string
	}{
		{name: "100,000 servers: accepted", servers: 100_000, server: minimal},
		{name: "one more: refused", servers: 100_001, server: minimal, most: 100_001, says: "more than 100000 servers"},
		{name: "endless: refused", servers: 1 << 40, server: minimal, most: 101_000, says: "use credentials that see only the servers of this cluster"},
		{name: "10,000 servers, each with a kilobyte of labels that all share: accepted", servers: 10_000, server: sharing(4, kilobyte)},
		{name: "long labels of their own: refused", servers: 100_000, server: func(i int) cloud.Server {
			s := minimal(i)
			s.Labels = map[string]string{"id": s.ID + kilobyte}
			return s
		}, most: 70_000, says: "64 MiB"},
		{name: "long names: refused", servers: 100_000, server: func(i int) cloud.Server {
			s := minimal(i)
			s.Name += kilobyte
			return s
		}, most: 70_000, says: "64 MiB"},
		{name: "long hosts: refused", servers: 100_000, server: func(i int) cloud.Server {
			s := minimal(i)
			s.Host = s.ID + kilobyte
			return s
		}, most: 70_000, says: "64 MiB"},
		{name: "many short labels that all share: refused", servers: 100_000, server: sharing(200, ""), most: 11_000, says: "64 MiB"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			from := &generated{servers: tc.servers, server: tc.server}
			snap, err := inventory.List(t.Context(), from, func() time.Time { return dawn })
			if tc.most == 0 {
				if err != nil || snap.Len() != tc.servers {
					t.Fatalf("List = %d servers, %v; want %d", snap.Len(), err, tc.servers)
				}
				return
			}
			if snap != nil || !cloud.Is(err, cloud.Unreadable) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("List = %v, %v; want an error of kind Unreadable with %q", snap, err, tc.says)
			}
			if from.listed > tc.most+inventory.PageSize {
				t.Errorf("%d servers were read, want at most %d", from.listed, tc.most)
			}
		})
	}
}

var mebibyte = strings.Repeat("m", 1<<20)

// longMarkers answers empty pages with long markers.
type longMarkers struct {
	cloud.ServerReader
	pages int
}

func (l *longMarkers) ListServers(context.Context, cloud.ListServers) (cloud.ServerPage, error) {
	l.pages++
	return cloud.ServerPage{Next: mebibyte + strconv.Itoa(l.pages)}, nil
}

func TestListBoundsTheMarkersThatItKeeps(t *testing.T) {
	from := &longMarkers{}
	_, err := inventory.List(t.Context(), from, func() time.Time { return dawn })
	if !cloud.Is(err, cloud.Unreadable) || from.pages > 65 {
		t.Errorf("List failed with %v after %d pages, want Unreadable after 64 MiB of markers", err, from.pages)
	}
}

func TestListingOfManyServersTakesLittleMemory(t *testing.T) {
	const most = 120 << 20
	before := heap()
	from := &generated{servers: 100_000, server: minimal}
	snap, err := inventory.List(t.Context(), from, func() time.Time { return dawn })
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	after := heap()
	t.Logf("a listing of %d servers takes %d MiB", snap.Len(), (after-before)>>20)
	if after-before > most {
		t.Errorf("a listing of %d servers takes %d bytes, want at most %d", snap.Len(), after-before, most)
	}
	runtime.KeepAlive(snap)
}

// heap returns the size of the live heap, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
