package openstack

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	aboutSome = " compute/servers/" + someID
	large     = `"flavor": {"original_name": "large", "vcpus": 4, "ram": 8192}`
	marks     = `"metadata": {"privatecloud:size": "4x8192@large", "privatecloud:resize": "1x1024@large"}`
)

// requests drops the reads of the server and of what it needs.
func changesOf(sent []string) []string {
	var changes []string
	for _, request := range sent {
		if !strings.HasPrefix(request, "GET ") {
			changes = append(changes, request)
		}
	}
	return changes
}

func TestRunningServerIsNotResized(t *testing.T) {
	s := newStub(t)
	s.on("GET"+aboutSome, oneServer())
	if _, err := s.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetCPU(4), cloud.SetMemory(8192)}); !cloud.Is(err, cloud.NeedsStop) {
		t.Errorf("UpdateServer: %v, want NeedsStop", err)
	}
	if sent := changesOf(s.taken()); len(sent) != 0 {
		t.Errorf("sent %v, want nothing: the guest would be restarted", sent)
	}
}

func TestResizeIsAnOperationOfTwoSteps(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.on("GET"+aboutSome, oneServer(`"status": "SHUTOFF"`))
	s.on("POST"+aboutSome+"/metadata", `{"metadata": {}}`)
	s.on("POST"+aboutSome+"/action", "", 202)
	result, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetCPU(4), cloud.SetMemory(8192)})
	if err != nil || result.Operation != "resize."+someID {
		t.Fatalf("UpdateServer: %+v, %v", result, err)
	}
	want := []string{
		`POST` + aboutSome + `/metadata {"metadata":{"privatecloud:resize":"1x1024@large","privatecloud:size":"4x8192@large"}}`,
		`POST` + aboutSome + `/action {"resize":{"flavorRef":"f2"}}`,
	}
	if diff := cmp.Diff(want, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	confirm := []string{`POST` + aboutSome + `/action {"confirmResize":null}`}
	steps := []struct {
		name   string
		fields []string
		want   cloud.Operation
		sent   []string
	}{
		{"the cloud resizes", []string{`"status": "RESIZE"`, marks, `"progress": 40`}, cloud.Operation{Progress: 40, ServerID: someID}, nil},
		{"the resize waits: it is confirmed", []string{`"status": "VERIFY_RESIZE"`, large, marks}, cloud.Operation{Progress: 90, ServerID: someID}, confirm},
		{"a task runs on", []string{large, marks, `"OS-EXT-STS:task_state": "powering-on"`}, cloud.Operation{ServerID: someID}, nil},
		{"the server has the flavor", []string{large, marks}, cloud.Operation{Done: true, ServerID: someID}, nil},
	}
	for _, step := range steps {
		s.on("GET"+aboutSome, oneServer(step.fields...))
		got, err := c.GetOperation(t.Context(), result.Operation)
		if diff := cmp.Diff(step.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", step.name, err, diff)
		}
		if diff := cmp.Diff(step.sent, changesOf(s.taken())); diff != "" {
			t.Errorf("%s: sent (-want +got):\n%s", step.name, diff)
		}
	}
}

// A process that ends between a resize and its confirmation leaves a server that shows
// its old size, so that the change is requested again.
func TestResizeIsConfirmedByTheNextProcess(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.on("GET"+aboutSome, oneServer(`"status": "VERIFY_RESIZE"`, large, marks))
	s.on("POST"+aboutSome+"/action", "", 204)
	before, err := c.GetServer(t.Context(), someID)
	if err != nil || before.CPU != 1 || before.MemoryMiB != 1024 || before.State != cloud.StateActive {
		t.Fatalf("%+v, %v, want the size before the resize", before, err)
	}
	s.on("GET"+aboutSome, oneServer(`"status": "RESIZE"`, large, marks))
	if early, err := c.GetServer(t.Context(), someID); err != nil || early.CPU != 1 {
		t.Errorf("%+v, %v, want the size before the resize as soon as the flavor changes", early, err)
	}
	s.on("GET"+aboutSome, oneServer(`"status": "VERIFY_RESIZE"`, large, marks, `"OS-EXT-STS:power_state": 4`))
	if stopped, err := c.GetServer(t.Context(), someID); err != nil || stopped.State != cloud.StateStopped {
		t.Errorf("%+v, %v, want that it is stopped", stopped, err)
	}
	result, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetCPU(4), cloud.SetMemory(8192)})
	if err != nil || result.Operation != "resize."+someID {
		t.Errorf("UpdateServer: %+v, %v, want the operation", result, err)
	}
	want := []string{`POST` + aboutSome + `/action {"confirmResize":null}`}
	if diff := cmp.Diff(want, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestResizeOfSomebodyElseIsNotConfirmed(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.on("GET"+aboutSome, oneServer(`"status": "VERIFY_RESIZE"`, large))
	if got, err := c.GetServer(t.Context(), someID); err != nil || got.State != cloud.StateUnknown || got.Fault != "VERIFY_RESIZE" {
		t.Errorf("%+v, %v, want an unknown state and its status", got, err)
	}
	if _, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetCPU(1)}); !cloud.Is(err, cloud.Busy) {
		t.Errorf("UpdateServer: %v, want Busy", err)
	}
	got, err := c.GetOperation(t.Context(), "resize."+someID)
	if err != nil || !got.Done || got.Err == nil || got.Err.Kind != cloud.Failed {
		t.Errorf("GetOperation: %+v, %v, want a failure", got, err)
	}
	if sent := changesOf(s.taken()); len(sent) != 0 {
		t.Errorf("sent %v, want nothing", sent)
	}
}

func TestResizeWithinAFlavorChangesTheRecordOnly(t *testing.T) {
	s := newStub(t)
	c := s.client(func(c *Config) { c.AtLeast = true })
	s.on("GET"+aboutSome, oneServer(large, `"metadata": {"privatecloud:size": "3x5120@large"}`))
	s.on("POST"+aboutSome+"/metadata", `{"metadata": {}}`)
	result, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetCPU(2)})
	if err != nil || result.Operation != "" || result.Server.ID != someID {
		t.Errorf("UpdateServer: %+v, %v, want the server", result, err)
	}
	want := []string{`POST` + aboutSome + `/metadata {"metadata":{"privatecloud:size":"2x5120@large"}}`}
	if diff := cmp.Diff(want, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestOperationsAreReadFromTheServer(t *testing.T) {
	fault := `"fault": {"message": "No valid host was found. There are not enough hosts available."}`
	tests := map[string]struct {
		operation operationKind
		fields    []string
		done      bool
		fault     cloud.Kind
	}{
		"create, building":               {opCreate, []string{`"status": "BUILD"`}, false, ""},
		"create, active":                 {opCreate, nil, true, ""},
		"create, no room":                {opCreate, []string{`"status": "ERROR"`, fault}, true, cloud.NoHost},
		"create, error without a fault":  {opCreate, []string{`"status": "ERROR"`}, true, cloud.Failed},
		"create, deleted by somebody":    {opCreate, []string{`"OS-EXT-STS:task_state": "deleting"`}, true, cloud.Failed},
		"stop, under way":                {opStop, []string{`"OS-EXT-STS:task_state": "powering-off"`}, false, ""},
		"stop, stopped":                  {opStop, []string{`"status": "SHUTOFF"`}, true, ""},
		"stop, still active":             {opStop, nil, true, cloud.Failed},
		"start, under way":               {opStart, []string{`"status": "SHUTOFF"`, `"OS-EXT-STS:task_state": "powering-on"`}, false, ""},
		"start, active":                  {opStart, nil, true, ""},
		"start, still stopped":           {opStart, []string{`"status": "SHUTOFF"`}, true, cloud.Failed},
		"suspend, under way":             {opSuspend, []string{`"OS-EXT-STS:task_state": "suspending"`}, false, ""},
		"suspend, suspended":             {opSuspend, []string{`"status": "SUSPENDED"`}, true, ""},
		"suspend, the hypervisor cannot": {opSuspend, nil, true, cloud.Failed},
		"resume, under way":              {opResume, []string{`"status": "SUSPENDED"`, `"OS-EXT-STS:task_state": "resuming"`}, false, ""},
		"resume, active":                 {opResume, nil, true, ""},
		"resume, still suspended":        {opResume, []string{`"status": "SUSPENDED"`}, true, cloud.Failed},
		"delete, under way":              {opDelete, []string{`"OS-EXT-STS:task_state": "deleting"`}, false, ""},
		"delete, kept by the cloud":      {opDelete, []string{`"status": "SOFT_DELETED"`}, true, ""},
		"delete, given up":               {opDelete, nil, true, cloud.Failed},
		"delete, in error":               {opDelete, []string{`"status": "ERROR"`}, true, cloud.Failed},
		"resize, given up":               {opResize, nil, true, cloud.Failed},
		"resize, being reverted":         {opResize, []string{`"status": "REVERT_RESIZE"`}, false, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET"+aboutSome, oneServer(tc.fields...))
			got, err := s.client().GetOperation(t.Context(), operation(tc.operation, someID))
			kind := cloud.Kind("")
			if got.Err != nil {
				kind = got.Err.Kind
			}
			if err != nil || got.Done != tc.done || kind != tc.fault || got.ServerID != someID {
				t.Errorf("%+v, %v, want done %t with the fault %q", got, err, tc.done, tc.fault)
			}
		})
	}
}

func TestOperationOfAServerThatIsGone(t *testing.T) {
	s := newStub(t)
	s.on("GET"+aboutSome, novaNotFound, 404)
	c := s.client()
	if got, err := c.GetOperation(t.Context(), "delete."+someID); err != nil || !got.Done || got.Err != nil {
		t.Errorf("a deletion: %+v, %v, want it done", got, err)
	}
	for _, kind := range []operationKind{opCreate, opStart, opStop, opSuspend, opResume, opResize} {
		if _, err := c.GetOperation(t.Context(), operation(kind, someID)); !cloud.Is(err, cloud.NotFound) {
			t.Errorf("%s: %v, want NotFound", kind, err)
		}
	}
	s.on("GET"+aboutSome, "", 404)
	if got, err := c.GetOperation(t.Context(), "delete."+someID); got.Done || !cloud.Is(err, cloud.NotFound) {
		t.Errorf("a deletion, a 404 of a proxy: %+v, %v, want NotFound: the server is looked for", got, err)
	}
	s.taken()
	for _, id := range []string{"", "x", "delete.", "delete.a/b", "DELETE." + someID, someID} {
		if _, err := c.GetOperation(t.Context(), id); !cloud.Is(err, cloud.NotFound, cloud.Rejected) || len(s.taken()) != 0 {
			t.Errorf("%q: %v, want a refusal, and nothing sent", id, err)
		}
	}
}

func TestPowerThatTheServerHasAlreadyIsNoFailure(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.on("POST"+aboutSome+"/action", conflict, 409)
	s.on("GET"+aboutSome, oneServer(`"status": "SHUTOFF"`))
	if got, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetPower{State: cloud.PowerOff}}); err != nil || got.Server.State != cloud.StateStopped {
		t.Errorf("%+v, %v, want the stopped server", got, err)
	}
	s.on("GET"+aboutSome, oneServer(`"status": "BUILD"`))
	if _, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetPower{State: cloud.PowerOff}}); !cloud.Is(err, cloud.Busy) {
		t.Errorf("%v, want Busy", err)
	}
}

func TestSuspendIsAnOperation(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.on("POST"+aboutSome+"/action", "", 202)
	got, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetPower{State: cloud.PowerSuspended}})
	if err != nil || got.Operation != "suspend."+someID {
		t.Errorf("%+v, %v, want an operation", got, err)
	}
	if diff := cmp.Diff([]string{`POST` + aboutSome + `/action {"suspend":null}`}, s.taken()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestPowerOnResumesAServerThatIsSuspended(t *testing.T) {
	start, resume := `POST`+aboutSome+`/action {"os-start":null}`, `POST`+aboutSome+`/action {"resume":null}`
	tests := map[string]struct {
		fields    []string
		refused   int // how many actions are refused
		operation string
		kind      cloud.Kind
		sent      []string
	}{
		"it is stopped: started, and not read":     {[]string{`"status": "SHUTOFF"`}, 0, "start." + someID, "", []string{start}},
		"it is suspended: resumed":                 {[]string{`"status": "SUSPENDED"`}, 1, "resume." + someID, "", []string{start, resume}},
		"it is resuming: busy":                     {[]string{`"status": "SUSPENDED"`, `"OS-EXT-STS:task_state": "resuming"`}, 1, "", cloud.Busy, []string{start}},
		"it is suspended, and cannot be resumed":   {[]string{`"status": "SUSPENDED"`}, 2, "", cloud.Busy, []string{start, resume}},
		"it is paused, which only a person undoes": {[]string{`"status": "PAUSED"`}, 1, "", cloud.Busy, []string{start}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			c := s.client()
			s.on("GET"+aboutSome, oneServer(tc.fields...))
			actions := 0
			s.handle("POST"+aboutSome+"/action", func(w http.ResponseWriter, _ *http.Request) {
				actions++
				if actions > tc.refused {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusConflict)
				_, _ = io.WriteString(w, conflict)
			})
			got, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
			if got.Operation != tc.operation || cloud.KindOf(err) != tc.kind {
				t.Errorf("%+v, %v, want the operation %q or %q", got, err, tc.operation, tc.kind)
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// Compute answers 404 to actions of a server that is not built yet, and about a key of
// metadata that it does not find.
func TestNotFoundOfAPartIsConfirmed(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.on("POST"+aboutSome+"/action", novaNotFound, 404)
	s.on("DELETE"+aboutSome+"/metadata/k", `{"itemNotFound": {"message": "Metadata item was not found"}}`, 404)
	s.on("GET"+aboutSome, oneServer(`"status": "BUILD"`, `"metadata": {"k": "v"}`))
	changes := map[string]cloud.Update{"an action": {cloud.SetPower{State: cloud.PowerOff}}, "a label": {cloud.RemoveLabel("k")}}
	for name, change := range changes {
		if _, err := c.UpdateServer(t.Context(), someID, change); !cloud.Is(err, cloud.Busy) {
			t.Errorf("%s of a server that exists: %v, want Busy", name, err)
		}
	}
	s.on("GET"+aboutSome, novaNotFound, 404)
	for name, change := range changes {
		if _, err := c.UpdateServer(t.Context(), someID, change); !cloud.Is(err, cloud.NotFound) {
			t.Errorf("%s of a server that is gone: %v, want NotFound", name, err)
		}
	}
}

// Such a server is missing in listings as well.
func TestServerThatTheCloudKeepsIsNotFound(t *testing.T) {
	for _, status := range []string{statusSoftDeleted, statusDeleted} {
		s := newStub(t)
		s.on("GET"+aboutSome, oneServer(`"status": "`+status+`"`))
		if got, err := s.client().GetServer(t.Context(), someID); !cloud.Is(err, cloud.NotFound) {
			t.Errorf("%s: %+v, %v, want NotFound", status, got, err)
		}
	}
}

func TestDeleteEndsWhenTheServerIsGone(t *testing.T) {
	tests := map[string]struct {
		body   string
		status int
		want   cloud.Result
	}{
		"the server is gone: gone":         {novaNotFound, 404, cloud.Result{}},
		"the cloud keeps the server: gone": {oneServer(`"status": "SOFT_DELETED"`), 200, cloud.Result{}},
		"the deletion runs: an operation": {oneServer(`"OS-EXT-STS:task_state": "deleting"`), 200, cloud.Result{Operation: "delete." + someID, Server: cloud.Server{
			ID: someID, Name: "web", State: cloud.StateDeleting, CPU: 1, MemoryMiB: 1024, Flavor: "small",
		}}},
		"the read fails: an operation": {"", 403, cloud.Result{Operation: "delete." + someID, Server: cloud.Server{ID: someID, State: cloud.StateDeleting}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("DELETE"+aboutSome, "", 204)
			s.on("GET"+aboutSome, tc.body, tc.status)
			got, err := s.client().DeleteServer(t.Context(), someID)
			got.Server.CreatedAt = tc.want.Server.CreatedAt
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
