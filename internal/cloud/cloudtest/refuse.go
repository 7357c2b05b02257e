package cloudtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// refuseCases check that a client does not send what the cloud cannot do. A cloud
// that ignores unknown fields would create a server that differs from the request.
var refuseCases = []testCase{
	refusesCreate("a size", cloud.Sizing, cloud.CreateServer{CPU: 2, MemoryMiB: 2 << 10}),
	refusesCreate("a template", cloud.Sizing, cloud.CreateServer{Template: "small"}),
	refusesCreate("a flavor", cloud.Flavors, cloud.CreateServer{Flavor: "small"}),
	refusesCreate("a folder", cloud.Folders, cloud.CreateServer{Folder: "team-a"}),
	refusesCreate("a network", cloud.Networks, cloud.CreateServer{NetworkID: nowhere}).lacking(cloud.NetworkAttach),
	refusesCreate("a power state", cloud.Power, cloud.CreateServer{PowerState: cloud.PowerOn}),
	refusesCreate("the power state Off", cloud.PowerAtCreate, cloud.CreateServer{PowerState: cloud.PowerOff}),
	refusesCreate("labels", cloud.Labels, cloud.CreateServer{Labels: map[string]string{"a": "b"}}),
	refusesCreate("user data", cloud.WithUserData, cloud.CreateServer{UserData: cloud.UserData("#cloud-config")}),
	refusesCreate("disks", cloud.WithDisks, cloud.CreateServer{Disks: "data=1024"}),
	refusesCreate("disks of a type", cloud.DiskTypes, cloud.CreateServer{Disks: "data=1024=fast"}),
	refusesCreate("a disk that is kept", cloud.KeepDisks, cloud.CreateServer{Disks: "data=1024==keep"}),
	refusesCreate("the size of the root disk", cloud.WithRootDisk, cloud.CreateServer{RootDisk: cloud.RootDisk{SizeMiB: 20 << 10}}),
	refusesCreate("the type of the root disk", cloud.DiskTypes, cloud.CreateServer{RootDisk: cloud.RootDisk{Type: "fast"}}),
	refusesCreate("a zone", cloud.Zones, cloud.CreateServer{Zone: "z"}),
	refusesCreate("several interfaces", cloud.WithInterfaces, cloud.CreateServer{Interfaces: []cloud.Attachment{{NetworkID: nowhere}, {NetworkID: nowhere}}}),
	refusesCreate("a static address", cloud.StaticAddresses, cloud.CreateServer{Interfaces: []cloud.Attachment{{NetworkID: nowhere, Addresses: []string{"10.0.0.5"}}}}),
	refusesCreate("an anti-affinity", cloud.WithAntiAffinity, cloud.CreateServer{AntiAffinity: cloud.AntiAffinity{Group: "g"}}),
	refusesCreate("security groups", cloud.WithSecurityGroups, cloud.CreateServer{SecurityGroups: "default"}),
	refuses("a create of a snapshot", cloud.Snapshots, func(ctx context.Context, c cloud.Client) error {
		snapshots, ok := c.(cloud.Snapshotter)
		if !ok { // nothing can be sent
			return &cloud.Error{Kind: cloud.Unsupported, Op: "create snapshot"}
		}
		_, err := snapshots.CreateSnapshot(ctx, cloud.CreateSnapshot{ServerID: nowhere, Name: name("refused")})
		return err
	}),
	refuses("a revert", cloud.Revert, func(ctx context.Context, c cloud.Client) error {
		reverter, ok := c.(cloud.Reverter)
		if !ok { // nothing can be sent
			return &cloud.Error{Kind: cloud.Unsupported, Op: "revert"}
		}
		_, err := reverter.RevertServer(ctx, cloud.RevertServer{ServerID: nowhere, SnapshotID: nowhere})
		return err
	}),
	refuses("a read of a console", cloud.Console, func(ctx context.Context, c cloud.Client) error {
		reader, ok := c.(cloud.ConsoleReader)
		if !ok { // nothing can be sent
			return &cloud.Error{Kind: cloud.Unsupported, Op: "read console"}
		}
		_, err := reader.ReadConsole(ctx, nowhere, 1)
		return err
	}),
	refusesUpdate("a size", cloud.Resize, cloud.Update{cloud.SetCPU(2)}),
	refusesUpdate("a flavor", cloud.Flavors, cloud.Update{cloud.SetFlavor("small")}),
	refusesUpdate("a power state", cloud.Power, cloud.Update{cloud.SetPower{State: cloud.PowerOff}}),
	refusesUpdate("a suspend", cloud.Suspend, cloud.Update{cloud.SetPower{State: cloud.PowerSuspended}}),
	refusesUpdate("a soft power-off", cloud.SoftPowerOff, cloud.Update{cloud.SetPower{State: cloud.PowerOff, Soft: true}}),
	refusesUpdate("disks", cloud.WithDisks, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024}}),
	refusesUpdate("disks of a type", cloud.DiskTypes, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024, Type: "fast"}}),
	refusesUpdate("a disk that is kept", cloud.KeepDisks, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024, Keep: true}}),
	refusesUpdate("whether a disk is kept", cloud.KeepDisks, cloud.Update{cloud.SetDiskKeep{Name: "data", Keep: true}}),
	refusesUpdate("the size of the root disk", cloud.WithRootDisk, cloud.Update{cloud.SetRootDisk(20 << 10)}),
	refusesUpdate("security groups", cloud.WithSecurityGroups, cloud.Update{cloud.SetSecurityGroups("default")}),
	refusesUpdate("allowed addresses", cloud.WithAllowedAddresses, cloud.Update{cloud.SetAllowedAddresses("10.0.0.200")}),
	refusesUpdate("a public address", cloud.PublicAddresses, cloud.Update{cloud.SetPublicAddress("ext-net")}),
	refusesUpdate("a public address that it is to lose", cloud.PublicAddresses, cloud.Update{cloud.RemovePublicAddress{}}),
	refusesUpdate("labels", cloud.Labels, cloud.Update{cloud.RemoveLabel("a")}),
	refusesList("a label filter", cloud.Labels, cloud.ListServers{Labels: map[string]string{"a": "b"}}),
	refusesList("a marker", cloud.Sizing, cloud.ListServers{Marker: "next"}),
}

func refusesCreate(what string, without cloud.Capability, req cloud.CreateServer) testCase {
	refused := refuses("a create with "+what, without, func(ctx context.Context, c cloud.Client) error {
		req := req
		req.Name = name("refused")
		_, err := c.CreateServer(ctx, req)
		return err
	})
	refused.create = req
	return refused
}

func refusesUpdate(what string, without cloud.Capability, req cloud.Update) testCase {
	return refuses("a change of "+what, without, func(ctx context.Context, c cloud.Client) error {
		_, err := c.UpdateServer(ctx, nowhere, req)
		return err
	})
}

func refusesList(what string, without cloud.Capability, opts cloud.ListServers) testCase {
	return refuses("a listing with "+what, without, func(ctx context.Context, c cloud.Client) error {
		_, err := c.ListServers(ctx, opts)
		return err
	})
}

// lacking returns c for clouds that lack another capability, too.
func (c testCase) lacking(also cloud.Capability) testCase {
	c.lacks = append(c.lacks, also)
	return c
}

func refuses(what string, without cloud.Capability, call func(context.Context, cloud.Client) error) testCase {
	return testCase{
		name:  fmt.Sprintf("%s, the cloud lacks %s: Unsupported, and not sent", what, without),
		lacks: []cloud.Capability{without},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			unsent(t, f, what, func() error { return call(ctx, f.Client) })
		},
	}
}
