package cloudtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// deltaTime bounds how long a change may take to be reported. Clouds report within a
// second; machines that run tests may be busy.
const deltaTime = 10 * time.Second

// errEnough is returned to a watch that is to end.
var errEnough = &cloud.Error{Kind: cloud.Rejected, Op: "test", Detail: "enough"}

var watchCases = []testCase{
	{name: "a watch: begins with a full set as of a time before it", watching: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		want := []string{
			mustCreate(ctx, t, f, cloud.CreateServer{Name: name("first")}).ID,
			mustCreate(ctx, t, f, cloud.CreateServer{Name: name("second")}).ID,
		}
		began, got := time.Now(), map[string]cloud.Server{}
		err := watcher(t, f).Watch(ctx, func(c cloud.Change) error {
			if !c.Complete || len(c.Gone) > 0 || c.AsOf.Before(began) || c.AsOf.After(time.Now()) {
				t.Errorf("the first changes have %+v, want a full set as of the time of the watch", c)
			}
			fold(got, c)
			if c.More {
				return nil
			}
			return errEnough
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("Watch: %v, want the error of the caller", err)
		}
		wantKeys(t, want, got)
	}},
	{name: "a change during a watch: is reported within seconds", watching: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		w := follow(ctx, t, f)
		w.until(ctx, t, "the full set", func(map[string]cloud.Server) bool { return true })
		created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("watched")})
		w.until(ctx, t, "the new server", func(s map[string]cloud.Server) bool { return s[created.ID].Name == created.Name })
		if f.Has.Has(cloud.Power) {
			mustUpdate(ctx, t, f, created.ID, cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
			w.until(ctx, t, "the stopped server", func(s map[string]cloud.Server) bool { return s[created.ID].State == cloud.StateStopped })
		}
		mustDelete(ctx, t, f, created.ID)
		w.until(ctx, t, "the deletion", func(s map[string]cloud.Server) bool { _, exists := s[created.ID]; return !exists })
	}},
	{name: "a watch: reports a server as a read returns it", watching: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		w := follow(ctx, t, f)
		w.until(ctx, t, "the full set", func(map[string]cloud.Server) bool { return true })
		created := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("alike")})
		var reported cloud.Server
		w.until(ctx, t, "the new server", func(s map[string]cloud.Server) bool {
			reported = s[created.ID]
			return reported.ID != "" && !reported.State.Transitional()
		})
		read, err := f.Client.GetServer(ctx, created.ID)
		if err != nil {
			t.Fatalf("GetServer: %v", err)
		}
		sameServer(t, "the server of a change", read, reported)
	}},
	{name: "a lost session of a watch: nothing is missed", watching: true, ending: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		kept := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("kept")})
		gone := mustCreate(ctx, t, f, cloud.CreateServer{Name: name("gone")})
		w := follow(ctx, t, f)
		for range 3 {
			w.until(ctx, t, "the servers", func(s map[string]cloud.Server) bool { return s[kept.ID].ID != "" && s[gone.ID].ID != "" })
			f.EndWatches(t)
			mustDelete(ctx, t, f, gone.ID)
			gone = mustCreate(ctx, t, f, cloud.CreateServer{Name: name("gone")})
		}
		f.EndWatches(t)
		mustDelete(ctx, t, f, gone.ID)
		w.until(ctx, t, "the servers that are left", func(s map[string]cloud.Server) bool { return cmp.Equal(keys(s), []string{kept.ID}) })
	}},
	{name: "the context of a watch ends: so does the watch", watching: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		err := watcher(t, f).Watch(watching, func(c cloud.Change) error {
			if !c.More {
				cancel()
			}
			return nil
		})
		wantKind(t, "Watch", err, cloud.Unavailable, false)
	}},
	{name: "the client is closed: its watch ends", watching: true, run: func(ctx context.Context, t *testing.T, f Fixture) {
		err := watcher(t, f).Watch(ctx, func(c cloud.Change) error {
			if !c.More {
				go f.Client.Close(ctx)
			}
			return nil
		})
		wantKind(t, "Watch", err, cloud.Unavailable, false)
		if ctx.Err() != nil {
			t.Error("the watch did not end")
		}
	}},
	{name: "a watch, the cloud lacks events: Unsupported, and not sent", lacks: []cloud.Capability{cloud.Events},
		run: func(ctx context.Context, t *testing.T, f Fixture) {
			w, ok := f.Client.(cloud.Watcher)
			if !ok {
				return // a client may leave the interface out
			}
			unsent(t, f, "Watch", func() error { return w.Watch(ctx, func(cloud.Change) error { return nil }) })
		}},
}

func watcher(t *testing.T, f Fixture) cloud.Watcher {
	t.Helper()
	w, ok := f.Client.(cloud.Watcher)
	if !ok {
		t.Fatal("the client of a cloud with events is no cloud.Watcher")
	}
	return w
}

// follower holds the servers that watches report.
type follower struct {
	mu      sync.Mutex
	servers map[string]cloud.Server
	// next is the full set that is being reported.
	next map[string]cloud.Server
	// changed is closed at the next change.
	changed chan struct{}
}

// follow watches a cloud until the case ends, beginning anew when the session ends.
func follow(ctx context.Context, t *testing.T, f Fixture) *follower {
	t.Helper()
	w := &follower{changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	t.Cleanup(func() { cancel(); ended.Wait() })
	from := watcher(t, f)
	ended.Go(func() {
		for ctx.Err() == nil {
			if err := from.Watch(ctx, w.report); !cloud.Is(err, cloud.Unavailable, cloud.Unauthorized) {
				t.Errorf("Watch: %v, want it to end with the session or the case", err)
				return
			}
		}
	})
	return w
}

func (w *follower) report(c cloud.Change) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Complete {
		if w.next == nil {
			w.next = map[string]cloud.Server{}
		}
		fold(w.next, c)
		if c.More {
			return nil
		}
		w.servers, w.next = w.next, nil
	} else {
		w.next = nil
		fold(w.servers, c)
	}
	close(w.changed)
	w.changed = make(chan struct{})
	return nil
}

// until waits until what was reported meets a condition. It is not called before the
// first full set.
func (w *follower) until(ctx context.Context, t *testing.T, what string, met func(map[string]cloud.Server) bool) {
	t.Helper()
	timeout := time.NewTimer(deltaTime)
	defer timeout.Stop()
	for {
		w.mu.Lock()
		ok, changed := w.servers != nil && met(w.servers), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("%s was not reported within %s", what, deltaTime)
		case <-ctx.Done():
			t.Fatalf("%s was not reported", what)
		}
	}
}

func fold(into map[string]cloud.Server, c cloud.Change) {
	for _, s := range c.Servers {
		into[s.ID] = s
	}
	for _, id := range c.Gone {
		delete(into, id)
	}
}

func keys(servers map[string]cloud.Server) []string {
	return slices.Sorted(maps.Keys(servers))
}

func wantKeys(t *testing.T, want []string, got map[string]cloud.Server) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), keys(got)); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}
