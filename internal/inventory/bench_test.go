package inventory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// benchServers returns n servers with all fields set, as a cloud with every
// capability lists them.
func benchServers(n int, change func(i int, s *cloud.Server)) []cloud.Server {
	servers := make([]cloud.Server, n)
	for i := range servers {
		use := i % 100
		servers[i] = cloud.Server{
			ID: fmt.Sprintf("id-%05d", i), Name: fmt.Sprintf("vm-%05d", i), State: cloud.StateActive, CPU: 4, MemoryMiB: 16,
			Image: cloud.Image{Name: "template"}, Folder: "folder", NetworkID: "network", Host: fmt.Sprintf("host-%d", i%100), CPUUtilization: &use,
			CPUUsageMHz: i, MemoryUsageMB: i, CreatedAt: dawn, UpdatedAt: dawn,
			Labels: map[string]string{
				inventory.UIDLabel: fmt.Sprintf("uid-%05d", i), inventory.ClusterLabel: "cluster",
				inventory.NamespaceLabel: "namespace", inventory.NameLabel: fmt.Sprintf("vm-%05d", i),
			},
		}
		change(i, &servers[i])
	}
	return servers
}

// BenchmarkPublish publishes two listings of 10,000 servers in turn.
func BenchmarkPublish(b *testing.B) {
	unchanged := func(int, *cloud.Server) {}
	resized := func(i int, s *cloud.Server) {
		if i%100 == 0 {
			s.CPU++
		}
	}
	building := func(i int, s *cloud.Server) {
		if i%10 == 0 {
			s.State = cloud.StateBuilding
		}
	}
	for _, bc := range []struct {
		name          string
		first, second func(int, *cloud.Server)
	}{
		{name: "nothing changed", first: unchanged, second: unchanged},
		{name: "one in a hundred was resized", first: unchanged, second: resized},
		{name: "one in ten is being built", first: building, second: building},
	} {
		b.Run(bc.name, func(b *testing.B) {
			inv := inventory.New(time.Now, "c").Cloud("home")
			var snaps [2]*inventory.Snapshot
			for i, change := range []func(int, *cloud.Server){bc.first, bc.second} {
				snap, err := inventory.List(b.Context(), pages(benchServers(10_000, change)), time.Now)
				if err != nil {
					b.Fatal(err)
				}
				snaps[i] = snap
			}
			for i := 0; b.Loop(); i++ {
				inv.Publish(snaps[i%2])
			}
		})
	}
}

// BenchmarkApply publishes a change of one of 10,000 servers.
func BenchmarkApply(b *testing.B) {
	now := dawn
	inv, client := inventory.New(func() time.Time { return now }, "c").Cloud("home"), newCloud()
	inv.Connect(client, nil)
	servers := benchServers(10_000, func(int, *cloud.Server) {})
	snap, err := inventory.List(b.Context(), pages(servers), time.Now)
	if err != nil {
		b.Fatal(err)
	}
	inv.Publish(snap)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Second)
		changed := servers[i%len(servers)]
		changed.CPU = i
		if err := inv.Apply(client, cloud.Change{AsOf: now, Servers: []cloud.Server{changed}}); err != nil {
			b.Fatal(err)
		}
	}
}
