package mockcloud

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStoreReturnsWrittenContent(t *testing.T) {
	bolt, err := OpenBoltStore(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]Store{"memory": NewMemoryStore(), "bbolt": bolt} {
		t.Run(name, func(t *testing.T) {
			defer store.Close()
			err := store.Write(
				Change{Bucket: "a", Key: "2", Value: []byte("two")}, Change{Bucket: "a", Key: "1", Value: []byte("one")},
				Change{Bucket: "b", Key: "1", Value: []byte("other")}, Change{Bucket: "a", Key: "3", Value: []byte("three")},
			)
			if err := errors.Join(err, store.Write(Change{Bucket: "a", Key: "3"}, Change{Bucket: "a", Key: "none"})); err != nil {
				t.Fatal(err)
			}
			var got []string
			visit := func(key string, value []byte) error {
				got = append(got, key+"="+string(value))
				return nil
			}
			if err := errors.Join(store.Load("a", visit), store.Load("none", visit)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"1=one", "2=two"}, got); diff != "" {
				t.Errorf("content (-want +got):\n%s", diff)
			}
			stop := errors.New("stop")
			if err := store.Load("a", func(string, []byte) error { return stop }); !errors.Is(err, stop) {
				t.Errorf("got %v, want the error of visit", err)
			}
		})
	}
}

// TestRestartKeepsState tests both stores: the state after a restart must be the
// state before it.
func TestRestartKeepsState(t *testing.T) {
	memory := NewMemoryStore()
	cases := map[string]Options{
		"memory": {Store: memory},
		"bbolt":  {DataFile: filepath.Join(t.TempDir(), "data")},
	}
	for name, opts := range cases {
		t.Run(name, func(t *testing.T) {
			clock := NewManualClock(epoch)
			opts.Clock, opts.SeedServers = clock, 2
			opts.BuildTime, opts.DeleteTime = Duration(time.Minute), Duration(time.Hour)
			before := start(t, opts)
			kept := before.call(202, "POST", "/servers", `{"name":"kept"}`, "Idempotency-Key", "kept")
			gone := before.call(202, "POST", "/servers", `{"name":"gone"}`, "Idempotency-Key", "gone")
			before.call(201, "POST", "/networks", `{"name":"n","cidr":"10.0.0.0/8","gateway":"10.0.0.1"}`)
			before.call(202, "DELETE", "/servers/"+decodeInto[Server](t, gone.body).ID, "")
			servers, networks, ledger := before.cloud.Servers(), before.cloud.Networks(), before.cloud.Ledger()
			if err := before.cloud.Close(); err != nil {
				t.Fatal(err)
			}

			after := start(t, opts)
			if diff := cmp.Diff(servers, after.cloud.Servers()); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(networks, after.cloud.Networks()); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(ledger, after.cloud.Ledger()); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
			again := after.call(202, "POST", "/servers", `{"name":"kept"}`, "Idempotency-Key", "kept")
			if again.body != kept.body {
				t.Errorf("the key made %s, want %s", again.body, kept.body)
			}
			clock.Advance(2 * time.Hour)
			again = after.call(202, "POST", "/servers", `{"name":"gone"}`, "Idempotency-Key", "gone")
			if again.body != gone.body {
				t.Errorf("the key of a server that is gone made %s, want %s", again.body, gone.body)
			}
			want := append(ops(ledger), "gone gone by client")
			if diff := cmp.Diff(want, ops(after.cloud.Ledger())); diff != "" {
				t.Errorf("ledger after the deletion went on (-want +got):\n%s", diff)
			}
			if got, _ := after.cloud.Server(decodeInto[Server](t, kept.body).ID); got.State != StateActive {
				t.Errorf("the build in progress: got %s, want ACTIVE", got.State)
			}
			clock.Advance(24 * time.Hour)
			after.call(202, "POST", "/servers", `{"name":"gone","cpu":2}`, "Idempotency-Key", "gone")
		})
	}
}

// brokenStore returns an error for every write.
type brokenStore struct{ MemoryStore }

func (*brokenStore) Write(changes ...Change) error {
	for _, change := range changes {
		if change.Bucket != bucketMeta {
			return errors.New("disk full")
		}
	}
	return nil
}

func TestEffectThatCannotBeStoredDoesNotOccur(t *testing.T) {
	h := start(t, Options{Store: &brokenStore{}})
	got := h.call(500, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k")
	if code := codeIn(t, got); code != CodeInternal {
		t.Errorf("got %s, want internal", code)
	}
	if servers, ledger := h.cloud.Servers(), h.cloud.Ledger(); len(servers)+len(ledger) != 0 {
		t.Errorf("got servers %v and ledger %v, want none", servers, ledger)
	}
}
