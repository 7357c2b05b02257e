package cloudtest

import (
	"context"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

var flavorCases = []testCase{
	{name: "a create with a flavor: the server has it, and its size", needs: []cloud.Capability{cloud.Flavors},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("flavored"), Flavor: f.Flavors[0]})
			got, err := f.Client.GetServer(ctx, created.ID)
			if err != nil || got.Flavor != f.Flavors[0] || got.CPU == 0 || got.MemoryMiB == 0 {
				t.Errorf("GetServer = %+v, %v; want flavor %s and its size", got, err, f.Flavors[0])
			}
		}},
	{name: "a create with a flavor that does not exist: Rejected, and no server", needs: []cloud.Capability{cloud.Flavors},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			_, err := f.Client.CreateServer(ctx, cloud.CreateServer{Name: name("unknown"), Flavor: "no-such-flavor"})
			wantKind(t, "CreateServer", err, cloud.Rejected, false)
			wantServers(ctx, t, f)
		}},
}
