package mockcloud

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// operating returns the options of a cloud whose changes of servers take a minute.
func operating(change ...func(*Options)) Options {
	opts := Options{
		Capabilities: map[Capability]bool{Operations: true}, Behaviour: Behaviour{OperationTime: Duration(time.Minute), FailOperations: "bad*"},
	}
	for _, f := range change {
		f(&opts)
	}
	return opts
}

type operationBody struct {
	ID       string   `json:"id"`
	Done     bool     `json:"done"`
	Progress int      `json:"progress"`
	ServerID string   `json:"serverId"`
	Error    *Problem `json:"error"`
}

// begin sends a change and returns the id of its operation.
func (h *harness) begin(method, path, body string, header ...string) string {
	h.t.Helper()
	got := h.call(202, method, path, body, header...)
	id, found := strings.CutPrefix(got.header.Get("Location"), "/operations/")
	if !found || id == "" {
		h.t.Fatalf("%s %s: Location %q", method, path, got.header.Get("Location"))
	}
	return id
}

func (h *harness) operation(id string) operationBody {
	h.t.Helper()
	return decodeInto[operationBody](h.t, h.call(200, "GET", "/operations/"+id, "").body)
}

func TestOperationTakesEffectWhenItEnds(t *testing.T) {
	h := start(t, operating())
	create := h.begin("POST", "/servers", `{"name":"web"}`)
	h.clock.Advance(24 * time.Second)
	if diff := cmp.Diff(operationBody{ID: create, Progress: 40}, h.operation(create)); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	if got := h.names("", 1); len(got) != 0 {
		t.Errorf("listed while it runs: %v", got)
	}
	if got := codeIn(t, h.call(409, "POST", "/servers", `{"name":"web"}`)); got != CodeNameTaken {
		t.Errorf("a second create of the name: %s, want nameTaken", got)
	}
	h.call(409, "GET", "/check/web", "")
	h.clock.Advance(36 * time.Second)
	done := h.operation(create)
	if !done.Done || done.ServerID == "" || done.Error != nil {
		t.Fatalf("done: %+v", done)
	}

	path := "/servers/" + done.ServerID
	h.begin("PATCH", path, `{"cpu":4}`)
	for _, method := range []string{"PATCH", "DELETE"} {
		body := map[string]string{"PATCH": `{"cpu":8}`}[method]
		if got := codeIn(t, h.call(409, method, path, body)); got != CodeInvalidState {
			t.Errorf("%s while a change runs: %s, want invalidState", method, got)
		}
	}
	if got, _ := h.cloud.Server(done.ServerID); got.CPU != 1 {
		t.Errorf("cpu while the change runs: %d, want 1", got.CPU)
	}
	h.clock.Advance(time.Minute)
	h.begin("DELETE", path, "")
	if got := decodeInto[Server](t, h.call(200, "GET", path, "").body); got.CPU != 4 {
		t.Errorf("cpu after the change: %d, want 4", got.CPU)
	}
	h.clock.Advance(time.Minute)
	h.call(404, "GET", path, "")
	want := []string{"create web by client", "update web by client", "delete web by client"}
	if diff := cmp.Diff(want, ops(h.cloud.Ledger())); diff != "" {
		t.Errorf("ledger (-want +got):\n%s", diff)
	}
	h.clock.Advance(25 * time.Hour)
	h.call(404, "GET", "/operations/"+create, "")
}

func TestOperationThatFailsLeavesNoServerAndFreesKey(t *testing.T) {
	h := start(t, operating())
	id := h.begin("POST", "/servers", `{"name":"bad-1"}`, "Idempotency-Key", "k")
	h.clock.Advance(time.Minute)
	if got := h.operation(id); !got.Done || got.ServerID != "" || got.Error == nil || got.Error.Code != CodeQuotaExceeded {
		t.Errorf("got %+v, want it failed with quotaExceeded", got)
	}
	if n := len(h.cloud.Servers()) + len(h.cloud.Ledger()); n != 0 {
		t.Errorf("%d servers and effects, want none", n)
	}
	if again := h.begin("POST", "/servers", `{"name":"bad-1"}`, "Idempotency-Key", "k"); again == id {
		t.Error("the key leads to the operation that failed")
	}
}

func TestKeyOfOpenOperation(t *testing.T) {
	h := start(t, operating())
	id := h.begin("POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k")
	if again := h.begin("POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k"); again != id {
		t.Errorf("the same key began %s, want %s", again, id)
	}
	if got := codeIn(t, h.call(422, "POST", "/servers", `{"name":"web2"}`, "Idempotency-Key", "k")); got != CodeKeyReused {
		t.Errorf("another body: %s, want keyReused", got)
	}
	h.clock.Advance(time.Minute)
	first := h.operation(id).ServerID
	if got := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"web"}`, "Idempotency-Key", "k").body); got.ID != first {
		t.Errorf("the key after the operation: server %s, want %s", got.ID, first)
	}
}

func TestOperationSurvivesRestart(t *testing.T) {
	store, clock := NewMemoryStore(), NewManualClock(epoch)
	same := func(o *Options) { o.Store, o.Clock = store, clock }
	before := start(t, operating(same))
	id := before.begin("POST", "/servers", `{"name":"web"}`)
	if err := before.cloud.Close(); err != nil {
		t.Fatal(err)
	}
	after := start(t, operating(same))
	clock.Advance(time.Minute)
	if got := after.operation(id); !got.Done || got.ServerID == "" {
		t.Errorf("got %+v, want it done", got)
	}
}

func TestForgottenOperationHasNoEffect(t *testing.T) {
	h := start(t, operating())
	id := h.begin("POST", "/servers", `{"name":"web"}`)
	if err := h.cloud.ForgetOperations(); err != nil {
		t.Fatal(err)
	}
	h.clock.Advance(time.Hour)
	h.call(404, "GET", "/operations/"+id, "")
	if got := h.cloud.Servers(); len(got) != 0 {
		t.Errorf("servers %v, want none", got)
	}
}

func TestOperationsAndFolderNamesAreOffByDefault(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{OperationTime: Duration(time.Minute)}})
	listed := h.call(200, "GET", "/capabilities", "").body
	for _, name := range []Capability{Operations, FolderNames} {
		if strings.Contains(listed, `"`+string(name)+`"`) {
			t.Errorf("%s is listed: %s", name, listed)
		}
	}
	h.create("web")
	h.call(404, "GET", "/operations/any", "")
}

func TestNamesPerFolder(t *testing.T) {
	for name, tc := range map[string]struct {
		on   bool
		want int
	}{"names are unique per folder: free in another": {true, 201}, "names are unique in the cloud: taken": {false, 409}} {
		t.Run(name, func(t *testing.T) {
			h := start(t, Options{Capabilities: map[Capability]bool{FolderNames: tc.on}})
			h.call(201, "POST", "/servers", `{"name":"web","folder":"a"}`)
			h.call(409, "POST", "/servers", `{"name":"web","folder":"a"}`)
			h.call(409, "GET", "/check/web?folder=a", "")
			if got := h.send("GET", "/check/web?folder=b", "").status; (got == 200) != tc.on {
				t.Errorf("check: %d", got)
			}
			h.call(tc.want, "POST", "/servers", `{"name":"web","folder":"b"}`)
		})
	}
}
