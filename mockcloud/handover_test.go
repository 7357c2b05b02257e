package mockcloud

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTakeOverCopiesServersKeysAndLedger(t *testing.T) {
	old := start(t, Options{Behaviour: Behaviour{BuildTime: Duration(time.Minute)}, SeedServers: 1})
	old.call(202, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "once")
	want, ledger := old.cloud.Servers(), old.cloud.Ledger()

	data := filepath.Join(t.TempDir(), "data")
	for attempt := range 2 {
		// A process that exits before the file is complete takes over again.
		taken, err := TakeOver(t.Context(), old.admin, data+string(rune('0'+attempt)), time.Minute)
		if err != nil || !taken {
			t.Fatalf("attempt %d: taken %t, %v", attempt, taken, err)
		}
	}
	old.call(503, "GET", "/servers", "")
	old.call(503, "POST", "/servers", `{"name":"late"}`)
	old.call(503, "GET", "/readyz", "")
	old.call(200, "GET", "/healthz", "")
	old.clock.Advance(time.Hour)
	if _, err := old.cloud.PutServer(Server{Name: "late"}); err == nil {
		t.Error("something took effect after the handover")
	}

	heir := start(t, Options{DataFile: data + "1", Behaviour: Behaviour{BuildTime: Duration(time.Minute)}, SeedServers: 1})
	if diff := cmp.Diff(want, heir.cloud.Servers()); diff != "" {
		t.Errorf("servers (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(ledger, heir.cloud.Ledger()); diff != "" {
		t.Errorf("ledger (-before +after):\n%s", diff)
	}
	again := decodeInto[Server](t, heir.call(202, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "once").body)
	if again.ID != ledger[0].ServerID {
		t.Errorf("the key yields server %s, want %s", again.ID, ledger[0].ServerID)
	}
	heir.clock.Advance(time.Minute)
	heir.call(200, "GET", "/servers/"+again.ID, "")
}

func TestTakeOverDoesNothingWithoutAServer(t *testing.T) {
	folder := t.TempDir()
	taken, err := TakeOver(t.Context(), "http://127.0.0.1:1", filepath.Join(folder, "data"), time.Minute)
	if err != nil || taken {
		t.Errorf("no server: taken %t, %v", taken, err)
	}
	if found, _ := filepath.Glob(filepath.Join(folder, "*")); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}

	// An existing file is newer than the data of the other process.
	data := filepath.Join(folder, "there")
	if err := storeAll(data, nil); err != nil {
		t.Fatal(err)
	}
	other := start(t, Options{})
	if taken, err := TakeOver(t.Context(), other.admin, data, time.Minute); err != nil || taken {
		t.Errorf("a file is there: taken %t, %v", taken, err)
	}
	other.call(200, "GET", "/servers", "")

	if _, err := TakeOver(t.Context(), other.admin+"/elsewhere", filepath.Join(folder, "data"), time.Minute); err == nil {
		t.Error("an answer that is no handover is taken for one")
	}
}
