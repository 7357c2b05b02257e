package cloudtest

import (
	"context"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

var addressCases = []testCase{
	{name: "a server that runs: a read and the listing show the same addresses", needs: []cloud.Capability{cloud.Addresses},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			req := cloud.CreateServer{Name: name("reachable")}
			if f.Has.Has(cloud.Networks) {
				req.NetworkID = mustCreateNetwork(ctx, t, f, aNetwork()).ID
			}
			created := mustCreate(ctx, t, f, req)
			if f.BootGuest != nil {
				f.BootGuest(t, created)
			}
			got, err := f.Client.GetServer(ctx, created.ID)
			if err != nil {
				t.Fatalf("GetServer: %v", err)
			}
			if list := got.Interfaces.List(); len(list) == 0 || list[0].MAC == "" || len(list[0].Addresses) == 0 {
				t.Errorf("GetServer: interfaces %q, want one with a MAC address and an IP address", got.Interfaces)
			}
			for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
				if s.ID == created.ID && s.Interfaces != got.Interfaces {
					t.Errorf("ListServers: interfaces %q, want %q as GetServer has", s.Interfaces, got.Interfaces)
				}
			}
		}},

	{name: "a guest that has booted: a read and the listing show its heartbeat", needs: []cloud.Capability{cloud.GuestHeartbeat},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("alive")})
			if f.BootGuest != nil {
				f.BootGuest(t, created)
			}
			if got, err := f.Client.GetServer(ctx, created.ID); err != nil || got.Heartbeat != cloud.HeartbeatOK {
				t.Errorf("GetServer: heartbeat %d, %v, want %d", got.Heartbeat, err, cloud.HeartbeatOK)
			}
			for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
				if s.ID == created.ID && s.Heartbeat != cloud.HeartbeatOK {
					t.Errorf("ListServers: heartbeat %d, want %d", s.Heartbeat, cloud.HeartbeatOK)
				}
			}
		}},
}
