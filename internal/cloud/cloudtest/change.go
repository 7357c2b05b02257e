package cloudtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var changeCases = []testCase{
	{name: "a change of the power state: the server is stopped and started", needs: []cloud.Capability{cloud.Power},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("switched"), PowerState: cloud.PowerOff})
			states := []cloud.State{created.State}
			for _, power := range []cloud.PowerState{cloud.PowerOn, cloud.PowerOff} {
				got, err := f.Client.UpdateServer(ctx, created.ID, cloud.UpdateServer{PowerState: new(power)})
				if err != nil {
					t.Fatalf("UpdateServer(%s): %v", power, err)
				}
				states = append(states, got.State)
			}
			want := []cloud.State{cloud.StateStopped, cloud.StateActive, cloud.StateStopped}
			if diff := cmp.Diff(want, states); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
		}},
	{name: "a change of the size: nothing else changes", needs: []cloud.Capability{cloud.Resize, cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("grown"), CPU: 1, MemoryGiB: 2})
			got, err := f.Client.UpdateServer(ctx, created.ID, cloud.UpdateServer{CPU: new(4)})
			if err != nil {
				t.Fatalf("UpdateServer: %v", err)
			}
			want := created.Clone()
			want.CPU = 4
			sameServer(t, "UpdateServer", want, got)
		}},
	{name: "a change of labels: they are merged, and nil removes one", needs: []cloud.Capability{cloud.Labels},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("labelled"), Labels: map[string]string{"keep": "1", "drop": "2"}})
			got, err := f.Client.UpdateServer(ctx, created.ID, cloud.UpdateServer{Labels: map[string]*string{"drop": nil, "add": new("3")}})
			if err != nil {
				t.Fatalf("UpdateServer: %v", err)
			}
			if diff := cmp.Diff(map[string]string{"keep": "1", "add": "3"}, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		}},
	{name: "a change of a server that does not exist: NotFound", needs: []cloud.Capability{cloud.Power},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			_, err := f.Client.UpdateServer(ctx, nowhere, cloud.UpdateServer{PowerState: new(cloud.PowerOff)})
			wantGone(t, f, "UpdateServer", err)
		}},
	{name: "the answer of a change is lost: uncertain", losing: true, needs: []cloud.Capability{cloud.Power},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("unsure")})
			restore := f.LoseAnswer(t, OpUpdateServer)
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.UpdateServer{PowerState: new(cloud.PowerOff)})
			restore()
			wantKind(t, "UpdateServer", err, cloud.Unavailable, true)
		}},
	{name: "a change without fields: Rejected", run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.UpdateServer(ctx, nowhere, cloud.UpdateServer{})
		wantKind(t, "UpdateServer", err, cloud.Rejected, false)
	}},
}
