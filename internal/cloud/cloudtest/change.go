package cloudtest

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

var changeCases = []testCase{
	{name: "a change of the power state: the server is stopped and started", needs: []cloud.Capability{cloud.Power},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("switched")})
			states := []cloud.State{created.State}
			for _, power := range []cloud.PowerState{cloud.PowerOff, cloud.PowerOn, cloud.PowerOff} {
				states = append(states, mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPower{State: power}}).State)
			}
			want := []cloud.State{cloud.StateActive, cloud.StateStopped, cloud.StateActive, cloud.StateStopped}
			if diff := cmp.Diff(want, states); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
		}},
	{name: "a soft power-off: the server is stopped once its guest has shut down", needs: []cloud.Capability{cloud.Power, cloud.SoftPowerOff},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("shut-down")})
			off := cloud.Update{cloud.SetPower{State: cloud.PowerOff, Soft: true}}
			server := mustUpdate(ctx, t, f, created.ID, off)
			for pause := time.NewTicker(f.pollTime()); server.State == cloud.StateActive; <-pause.C {
				var err error
				if server, err = f.Client.GetServer(ctx, created.ID); err != nil {
					t.Fatalf("GetServer: %v", err)
				}
			}
			again := mustUpdate(ctx, t, f, created.ID, off)
			if diff := cmp.Diff([]cloud.State{cloud.StateStopped, cloud.StateStopped}, []cloud.State{server.State, again.State}); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
		}},
	{name: "a suspend: the listing shows the server suspended, it is not powered off, and resumes", needs: []cloud.Capability{cloud.Power, cloud.Suspend},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("suspended")})
			suspend, off := cloud.Update{cloud.SetPower{State: cloud.PowerSuspended}}, cloud.Update{cloud.SetPower{State: cloud.PowerOff}}
			states := []cloud.State{mustUpdate(ctx, t, f, created.ID, suspend).State, mustUpdate(ctx, t, f, created.ID, suspend).State}
			for _, s := range listAll(ctx, t, f, cloud.ListServers{}) {
				if s.ID == created.ID {
					states = append(states, s.State)
				}
			}
			_, err := f.Client.UpdateServer(ctx, created.ID, off)
			wantKind(t, "UpdateServer(Off)", err, cloud.Busy, false)
			for _, power := range []cloud.PowerState{cloud.PowerOn, cloud.PowerOff} {
				states = append(states, mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPower{State: power}}).State)
			}
			want := []cloud.State{cloud.StateSuspended, cloud.StateSuspended, cloud.StateSuspended, cloud.StateActive, cloud.StateStopped}
			if diff := cmp.Diff(want, states); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			_, err = f.Client.UpdateServer(ctx, created.ID, suspend)
			wantKind(t, "UpdateServer(Suspended)", err, cloud.Busy, false)
		}},
	{name: "a deletion of a server that is suspended: it is gone", needs: []cloud.Capability{cloud.Power, cloud.Suspend},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("asleep")})
			mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPower{State: cloud.PowerSuspended}})
			mustDelete(ctx, t, f, created.ID)
			_, err := f.Client.GetServer(ctx, created.ID)
			wantGone(t, f, "GetServer", err)
		}},
	{name: "a create with the power state Off: the server is stopped", needs: []cloud.Capability{cloud.Power, cloud.PowerAtCreate},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("stopped"), PowerState: cloud.PowerOff})
			if diff := cmp.Diff(cloud.StateStopped, created.State); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		}},
	{name: "a change of the size: nothing else changes", needs: []cloud.Capability{cloud.Resize, cloud.Sizing},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("grown"), CPU: 1, MemoryMiB: 2 << 10})
			got := mustResize(ctx, t, f, created.ID, cloud.Update{cloud.SetCPU(4)})
			want := created.Clone()
			want.CPU, want.Flavor = 4, got.Flavor // each size has one, where there are flavors
			sameServer(t, "UpdateServer", want, got)
		}},
	{name: "a change of labels: they are merged, and RemoveLabel removes one", needs: []cloud.Capability{cloud.Labels},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("labelled"), Labels: map[string]string{"keep": "1", "drop": "2"}})
			got := mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.RemoveLabel("drop"), cloud.SetLabel{Key: "add", Value: "3"}})
			if diff := cmp.Diff(map[string]string{"keep": "1", "add": "3"}, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		}},
	{name: "a change of a server that does not exist: NotFound", needs: []cloud.Capability{cloud.Power},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			_, err := f.Client.UpdateServer(ctx, nowhere, cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
			wantGone(t, f, "UpdateServer", err)
		}},
	{name: "the answer of a change is lost: uncertain", losing: true, needs: []cloud.Capability{cloud.Power},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("unsure")})
			restore := f.LoseAnswer(t, OpUpdateServer)
			_, err := f.Client.UpdateServer(ctx, created.ID, cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
			restore()
			wantKind(t, "UpdateServer", err, cloud.Unavailable, true)
		}},
	{name: "an update without changes: Rejected", run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.UpdateServer(ctx, nowhere, cloud.Update{})
		wantKind(t, "UpdateServer", err, cloud.Rejected, false)
	}},
	{name: "a change of an unknown type: Unsupported", run: func(ctx context.Context, t *testing.T, f Fixture) {
		_, err := f.Client.UpdateServer(ctx, nowhere, cloud.Update{unknownChange{}})
		wantKind(t, "UpdateServer", err, cloud.Unsupported, false)
	}},
}

// unknownChange is a change that no client knows.
type unknownChange struct{ cloud.SetCPU }
