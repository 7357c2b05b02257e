package inventory_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
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
	// with returns servers that are changed, each by its number.
	with := func(change func(i int, s *cloud.Server)) func(int) cloud.Server {
		return func(i int) cloud.Server {
			s := minimal(i)
			change(i, &s)
			return s
		}
	}
	// sharing returns servers that all have these many labels.
	sharing := func(labels int, suffix string) func(int) cloud.Server {
		all := map[string]string{}
		for l := range labels {
			all[strconv.Itoa(l)+suffix] = strconv.Itoa(l)
		}
		return with(func(_ int, s *cloud.Server) { s.Labels = all })
	}
	uuid := func(i int) string { return fmt.Sprintf("3d2f3b5c-0000-4000-8000-%012d", i) }
	mine := func(i int, s *cloud.Server) {
		s.ID, s.Labels = uuid(i), map[string]string{
			inventory.UIDLabel: uuid(i), inventory.ClusterLabel: uuid(0), inventory.NamespaceLabel: "team", inventory.NameLabel: s.Name,
		}
	}
	address := func(i int) cloud.Interfaces {
		return cloud.Interfaces(fmt.Sprintf("fa:16:3e:%02x:%02x:%02x,10.%d.%d.%d", i>>16, i>>8&255, i&255, i>>16, i>>8&255, i&255))
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
		{name: "100,000 servers with UUIDs: accepted", servers: 100_000, server: with(func(i int, s *cloud.Server) { s.ID = uuid(i) })},
		{name: "75,000 servers with owner labels: accepted", servers: 75_000, server: with(mine)},
		{name: "100,000 servers with owner labels: refused", servers: 100_000, server: with(mine), most: 90_000, says: "32 MiB"},
		{name: "10,000 servers, each with a kilobyte of labels that all share: accepted", servers: 10_000, server: sharing(4, kilobyte)},
		{name: "many short labels that all share, none of an owner: accepted", servers: 100_000, server: sharing(200, "")},
		{name: "long labels of their own, none of an owner: accepted", servers: 50_000, server: with(func(_ int, s *cloud.Server) {
			s.Labels = map[string]string{"id": s.ID + kilobyte}
		})},
		{name: "long owner labels of their own: refused", servers: 100_000, server: with(func(_ int, s *cloud.Server) {
			s.Labels = map[string]string{inventory.UIDLabel: s.ID + kilobyte}
		}), most: 35_000, says: "32 MiB"},
		{name: "long names: refused", servers: 100_000, server: with(func(_ int, s *cloud.Server) { s.Name += kilobyte }), most: 35_000, says: "32 MiB"},
		{name: "long hosts: refused", servers: 100_000, server: with(func(_ int, s *cloud.Server) { s.Host = s.ID + kilobyte }), most: 35_000, says: "32 MiB"},
		{name: "long lists of addresses: refused", servers: 100_000, server: with(func(_ int, s *cloud.Server) {
			s.Interfaces = cloud.Interfaces(s.ID + kilobyte)
		}), most: 35_000, says: "32 MiB"},
		{name: "70,000 servers with owner labels and an address: accepted", servers: 70_000, server: with(func(i int, s *cloud.Server) {
			mine(i, s)
			s.Interfaces = address(i)
		})},
		{name: "long images of their own: refused", servers: 100_000, server: with(func(_ int, s *cloud.Server) { s.Image.Name = s.ID + kilobyte }), most: 35_000, says: "32 MiB"},
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
				t.Errorf("List = a snapshot: %t, %v; want an error of kind Unreadable with %q", snap != nil, err, tc.says)
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
	if !cloud.Is(err, cloud.Unreadable) || from.pages > 33 {
		t.Errorf("List failed with %v after %d pages, want Unreadable after 32 MiB of markers", err, from.pages)
	}
}

// streamed passes a page on several times, as a client does whose connection breaks.
type streamed struct {
	cloud.ServerReader
	tries [][]cloud.Server
}

func (s streamed) StreamServers(_ context.Context, _ cloud.ListServers, to cloud.ServerSink) (string, error) {
	for _, servers := range s.tries {
		to.Begin()
		for _, server := range servers {
			if err := to.Take(server); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

func TestListTakesTheLastReadingOfAPage(t *testing.T) {
	read := func(tries ...[]cloud.Server) (*inventory.Snapshot, error) {
		return inventory.List(t.Context(), streamed{tries: tries}, func() time.Time { return dawn })
	}
	snap, err := read([]cloud.Server{server("gone"), server("a")}, []cloud.Server{server("a"), server("b")})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "servers", []string{"a", "b"}, ids(slices.SortedFunc(snap.All(), inventory.Older)))
	if snap, err = read([]cloud.Server{server("gone")}, nil); err != nil || snap.Len() != 0 {
		t.Errorf("a page that is empty when it is read again: %d servers, %v", snap.Len(), err)
	}

	most := make([]cloud.Server, 100_000)
	for i := range most {
		most[i] = minimal(i)
	}
	if snap, err := read(most, most, most); err != nil || snap.Len() != len(most) {
		t.Errorf("a page as large as allowed, read three times: %v", err)
	}
	if _, err := read(slices.Concat(most, []cloud.Server{server("z")})); !cloud.Is(err, cloud.Unreadable) {
		t.Errorf("a page with one server more: %v, want Unreadable", err)
	}
	hosts := func(prefix string) []cloud.Server {
		servers := make([]cloud.Server, 30_000)
		for i := range servers {
			servers[i] = minimal(i)
			servers[i].Host = prefix + strings.Repeat("h", 250) + servers[i].ID
		}
		return servers
	}
	if _, err := read(hosts("a"), hosts("b"), hosts("c")); !cloud.Is(err, cloud.Unreadable) {
		t.Errorf("texts that are kept of the first readings: %v, want Unreadable", err)
	}
}

// A listing must not take more memory than the limit counts for it.
func TestListingTakesNoMoreMemoryThanIsCounted(t *testing.T) {
	const most = 34 << 20
	percent := 50
	full := func(i int) cloud.Server {
		s := minimal(i)
		id := fmt.Sprintf("3d2f3b5c-0000-4000-8000-%012d", i)
		return cloud.Server{
			ID: id, Name: s.Name, State: cloud.StateActive, Image: cloud.Image{Name: strings.Clone("template")}, Folder: "f" + s.Name, NetworkID: "n" + s.Name,
			Host: "host", CPUUtilization: &percent, CreatedAt: dawn, UpdatedAt: dawn,
			Labels: map[string]string{
				inventory.UIDLabel: "u" + id, inventory.ClusterLabel: strings.Clone("cluster"),
				inventory.NamespaceLabel: strings.Clone("namespace"), inventory.NameLabel: "l" + s.Name, "more": id,
			},
		}
	}
	reachable := func(i int) cloud.Server {
		s := full(i)
		s.Interfaces, _ = cloud.NewInterfaces([]cloud.Interface{{
			MAC:       fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", i>>16, i>>8&255, i&255),
			Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)},
		}})
		return s
	}
	for name, from := range map[string]generated{
		"100,000 servers with a name":                      {servers: 100_000, server: minimal},
		"75,000 servers with all fields but addresses":     {servers: 75_000, server: full},
		"70,000 servers with all fields and one interface": {servers: 70_000, server: reachable},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			snap, err := inventory.List(t.Context(), &from, func() time.Time { return dawn })
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			after := heap()
			t.Logf("a listing of %d servers takes %d KiB", snap.Len(), (after-before)>>10)
			if after-before > most {
				t.Errorf("a listing of %d servers takes %d bytes, want at most %d", snap.Len(), after-before, most)
			}
			runtime.KeepAlive(snap)
		})
	}
}

// heap returns the size of the live heap, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
