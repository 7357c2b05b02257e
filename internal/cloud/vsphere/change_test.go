package vsphere_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// remove deletes a VM, and waits until it is gone.
func remove(t *testing.T, c *vsphere.Client, id string) {
	t.Helper()
	result, err := c.DeleteServer(t.Context(), id)
	if err != nil {
		t.Fatalf("DeleteServer(%s): %v", id, err)
	}
	if _, err := follow(t.Context(), c, result.Operation); !cloud.Is(err, cloud.NotFound) {
		t.Fatalf("server %s after its deletion: %v, want NotFound", id, err)
	}
}

func TestVMOutsideTheFolderIsNotTouched(t *testing.T) {
	v := newVCenter(t)
	if _, err := v.MakeFolder(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	other := v.client(t, func(cfg *vsphere.Config) { cfg.Place.Folder = "other" })
	stranger := create(t, other, cloud.CreateServer{Name: "stranger"})
	c := v.client(t)
	if got := list(t, c); len(got) != 0 {
		t.Errorf("ListServers: %v, want none", got)
	}
	for name, id := range map[string]string{"a VM outside of the folder": stranger.ID, "a template": v.TemplateVM().Config.InstanceUuid} {
		for call, err := range callsOf(t, c, id) {
			if !cloud.Is(err, cloud.Displaced) {
				t.Errorf("%s of %s: %v, want Displaced", call, name, err)
			}
		}
	}
	if v.VM("stranger") == nil || v.TemplateVM() == nil {
		t.Error("the VM or the template is gone")
	}
}

func TestFolderThatCannotBeReadIsNotEmpty(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "hidden"})
	other := v.client(t) // has not read the VM
	if _, err := other.Capabilities(t.Context()); err != nil {
		t.Fatal(err)
	}
	// As for an account without rights: searches find nothing, and properties are missing.
	v.Front.Rewrite(func(method, body string) string {
		switch method {
		case "FindAllByUuid":
			return strings.ReplaceAll(body, created.ID, "00000000-0000-4000-8000-000000000000")
		case "RetrievePropertiesEx":
			return strings.NewReplacer("<path>childEntity</path>", "<path>parent</path>", "<pathSet>name</pathSet></propSet><objectSet><obj type=\"Folder\">", "<pathSet>parent</pathSet></propSet><objectSet><obj type=\"Folder\">").Replace(body)
		}
		return body
	})
	_, err := c.ListServers(t.Context(), cloud.ListServers{})
	wantError(t, err, cloud.Misconfigured, "may not read spec.vsphere.folder")
	_, err = other.GetServer(t.Context(), created.ID)
	wantError(t, err, cloud.Misconfigured, "may not read spec.vsphere.folder")
	defer v.Front.AnswerRequests(func(method, body string) (int, string) { // which a read of the VM itself shows
		if ref := v.VM("hidden").Self.Value; method == "RetrievePropertiesEx" && strings.Contains(body, ">"+ref+"<") {
			return incomplete(method, ref, "name", noPermission)
		}
		return 0, ""
	})()
	_, err = c.GetServer(t.Context(), created.ID)
	wantError(t, err, cloud.Misconfigured, "may not read spec.vsphere.folder")
}

func TestVMWithoutMarkIsNotDeleted(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "by-hand"})
	v.Change(v.VM("by-hand").Self, types.PropertyChange{Name: "config.extraConfig", Val: []types.BaseOptionValue(nil)})
	_, err := c.DeleteServer(t.Context(), created.ID)
	wantError(t, err, cloud.Conflict, "does not carry the operator's mark")
	result, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetLabel{Key: "owner", Value: "me"}})
	if err != nil {
		t.Fatalf("UpdateServer: %v", err)
	}
	if _, err := follow(t.Context(), c, result.Operation); err != nil {
		t.Fatalf("label: %v", err)
	}
	remove(t, c, created.ID)
}

func TestCopyOfAVMIsAConflict(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	first, second := create(t, c, cloud.CreateServer{Name: "one"}), create(t, c, cloud.CreateServer{Name: "two"})
	v.Change(v.VM("two").Self, types.PropertyChange{Name: "config.instanceUuid", Val: first.ID})
	_, err := c.GetServer(t.Context(), first.ID)
	wantError(t, err, cloud.Conflict, "2 VMs have this instance UUID")
	_, err = c.DeleteServer(t.Context(), first.ID)
	wantError(t, err, cloud.Conflict)
	_, err = c.GetServer(t.Context(), second.ID)
	wantError(t, err, cloud.NotFound)
}

func TestInaccessibleVMIsNotLost(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "unreachable"})
	list(t, c)
	v.Change(v.VM("unreachable").Self,
		types.PropertyChange{Name: "runtime.connectionState", Val: types.VirtualMachineConnectionStateInaccessible},
		types.PropertyChange{Name: "config.instanceUuid", Val: ""}, types.PropertyChange{Name: "summary.config.instanceUuid", Val: ""})
	got, err := c.GetServer(t.Context(), created.ID)
	if err != nil || got.State != cloud.StateError {
		t.Errorf("GetServer: %+v, %v, want it in error", got, err)
	}
	listed := list(t, c)
	if len(listed) != 1 || listed[0].ID != created.ID || listed[0].State != cloud.StateError {
		t.Errorf("ListServers: %+v, want it in error", listed)
	}
}

func TestRefusalsOfChanges(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "grown"})
	for fault, want := range map[string]cloud.Kind{
		"InvalidPowerState": cloud.NeedsStop, "CpuHotPlugNotSupported": cloud.NeedsStop, "TaskInProgress": cloud.Busy, "ConcurrentAccess": cloud.Busy,
		"InsufficientMemoryResourcesFault": cloud.Quota, "HostNotConnected": cloud.Unavailable, "NoPermission": cloud.Forbidden, "RestrictedByAdministrator": cloud.Forbidden, "MethodDisabled": cloud.Busy, "QuestionPending": cloud.Busy, "FileLocked": cloud.Busy, "FaultOfTomorrow": cloud.Rejected,
	} {
		restore := v.Front.Answer(func(method string) (int, string) {
			if method == "ReconfigVM_Task" {
				return vcsim.Fault(fault)
			}
			return 0, ""
		})
		_, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetCPU(8)})
		restore()
		wantError(t, err, want, "update server")
		if cloud.Uncertain(err) || strings.Contains(err.Error(), "secret.example") {
			t.Errorf("%s: %v is uncertain, or names a host", fault, err)
		}
	}
}

func TestGuestThatCannotBeAskedToShutDown(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "bare"})
	soft := cloud.Update{cloud.SetPower{State: cloud.PowerOff, Soft: true}}
	for fault, want := range map[string]cloud.Kind{"ToolsUnavailable": cloud.GuestUnavailable, "TaskInProgress": cloud.Busy} {
		restore := v.Front.Answer(func(method string) (int, string) {
			if method == "ShutdownGuest" {
				return vcsim.Fault(fault)
			}
			return 0, ""
		})
		_, err := c.UpdateServer(t.Context(), created.ID, soft)
		restore()
		wantError(t, err, want, "update server")
	}
	if sent := v.Front.Sent("PowerOffVM_Task"); sent != 0 {
		t.Errorf("the VM was powered off %d times, want 0", sent)
	}
	defer v.Front.Lose("ShutdownGuest")()
	if _, err := c.UpdateServer(t.Context(), created.ID, soft); !cloud.Uncertain(err) {
		t.Errorf("the answer is lost: got %v, want it uncertain", err)
	}
}

func TestOddLabelsAreKeptAsTheyAre(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	labels := map[string]string{
		"..": "up", ".": "here", "": "none", "a/b": "c/d", `"`: `\`, "<&>": "]]>", "x y": " ", "ключ": "значение", "\x00\n": "\x1b", "\u2028": "\ufffd", "empty": "",
	}
	created := create(t, c, cloud.CreateServer{Name: "odd", Labels: labels})
	if diff := cmp.Diff(labels, created.Labels); diff != "" {
		t.Errorf("labels of the new VM (-want +got):\n%s", diff)
	}
	page, err := c.ListServers(t.Context(), cloud.ListServers{Labels: labels})
	if err != nil || len(page.Servers) != 1 {
		t.Errorf("ListServers by these labels: %+v, %v", page.Servers, err)
	}
	result, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.RemoveLabel(".."), cloud.SetLabel{Key: "%2e%2e", Value: "%"}})
	if err != nil {
		t.Fatalf("UpdateServer: %v", err)
	}
	changed, err := follow(t.Context(), c, result.Operation)
	if err != nil {
		t.Fatal(err)
	}
	delete(labels, "..")
	labels["%2e%2e"] = "%"
	if diff := cmp.Diff(labels, changed.Labels); diff != "" {
		t.Errorf("labels of the changed VM (-want +got):\n%s", diff)
	}
	_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "invalid", Labels: map[string]string{"\xff": "a"}})
	wantError(t, err, cloud.Rejected, "not valid UTF-8")
	_, err = c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetLabel{Key: "a", Value: "\xff"}})
	wantError(t, err, cloud.Rejected, "not valid UTF-8")
}

func TestChangeOfLabelsSaysWhatItWasReadFrom(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "labelled", Labels: map[string]string{"a": "1"}})
	version := v.VM("labelled").Config.ChangeVersion
	sent := ""
	v.Front.Rewrite(func(method, body string) string {
		if method == "ReconfigVM_Task" {
			sent = body
		}
		return body
	})
	if _, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetLabel{Key: "b", Value: "2"}}); err != nil {
		t.Fatalf("UpdateServer: %v", err)
	}
	if want := "<changeVersion>" + version + "</changeVersion>"; !strings.Contains(sent, want) {
		t.Errorf("the change has no %s:\n%s", want, sent)
	}
}

func TestAnswersThatAreNotOfAVCenter(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "kept"})
	for name, test := range map[string]struct {
		status int
		body   string
		kind   cloud.Kind
	}{
		"a gateway without a vCenter":  {http.StatusBadGateway, "<html>bad gateway</html>", cloud.Unavailable},
		"a page for people":            {http.StatusOK, "<html>welcome</html>", cloud.Unreadable},
		"another API":                  {http.StatusNotFound, "{}", cloud.Unreadable},
		"a document that is cut short": {http.StatusOK, `<?xml version="1.0"?><soapenv:Envelope><soapenv:Body>`, cloud.Unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			restore := v.Front.Answer(func(string) (int, string) { return test.status, test.body })
			defer restore()
			_, err := c.GetServer(t.Context(), created.ID)
			wantError(t, err, test.kind)
			_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "never"})
			wantError(t, err, test.kind)
		})
	}
	if _, err := c.GetServer(t.Context(), created.ID); err != nil {
		t.Errorf("GetServer: %v", err)
	}
}

func TestTaskThatIsForgottenIsNotFound(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "before"})
	for _, id := range []string{"create/task-9999/" + created.ID, "delete/task-9999/" + created.ID + "/group-v1", "create/", "create/task-1", "copy/task-1/" + created.ID} {
		_, err := c.GetOperation(t.Context(), id)
		wantError(t, err, cloud.NotFound)
	}
}

func TestMemoryIsMultipleOfFourMiB(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "odd", MemoryMiB: 1022, IdempotencyKey: "key"})
	wantError(t, err, cloud.Rejected, "a multiple of 4 MiB, not 1022 MiB")
	created := create(t, c, cloud.CreateServer{Name: "even", MemoryMiB: 1020, IdempotencyKey: "key"})
	if created.MemoryMiB != 1020 {
		t.Errorf("%d MiB, want 1020", created.MemoryMiB)
	}
	_, err = c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetMemory(1021)})
	wantError(t, err, cloud.Rejected, "a multiple of 4 MiB, not 1021 MiB")
}

func TestTemplateOfATenantIsRefusedUnlessItIsOne(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t, func(cfg *vsphere.Config) { cfg.Place.TemplateFolder, cfg.Place.DefaultTemplate = "", "" })
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Fatalf("Capabilities: %v", err)
	}
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "bare"})
	wantError(t, err, cloud.Rejected, "no template is named")
	owner := v.client(t)
	create(t, owner, cloud.CreateServer{Name: "somebodys"})
	_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "copy", Template: "somebodys"})
	wantError(t, err, cloud.Rejected, `there is no template "somebodys"`)
}

func TestHostInMaintenanceIsNotListed(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	first := v.Model.Map().All("HostSystem")[0].Reference()
	name := object.NewHostSystem(v.Admin.Client, first)
	v.Change(first, types.PropertyChange{Name: "runtime.inMaintenanceMode", Val: true})
	got, err := c.ListHosts(t.Context())
	if err != nil || len(got) != 2 {
		t.Errorf("ListHosts without %s: %+v, %v, want 2", name.Reference().Value, got, err)
	}
}

func TestReadIsSentAgainAndAChangeIsNot(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "kept"})
	var failures atomic.Int32
	fail := func(method string) func() {
		failures.Store(0)
		return v.Front.Answer(func(called string) (int, string) {
			if called != method || failures.Add(1) > maxFailures {
				return 0, ""
			}
			return http.StatusBadGateway, "<html>bad gateway</html>"
		})
	}
	restore := fail("FindAllByUuid")
	_, err := c.GetServer(t.Context(), created.ID)
	restore()
	if err != nil || failures.Load() != maxFailures+1 {
		t.Errorf("GetServer: %v after %d tries, want a third one", err, failures.Load())
	}
	before := v.Front.Sent("CloneVM_Task")
	restore = fail("CloneVM_Task")
	_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "once"})
	restore()
	if sent := v.Front.Sent("CloneVM_Task") - before; sent != 1 || !cloud.Uncertain(err) {
		t.Errorf("CreateServer: %v after %d requests, want it uncertain after one", err, sent)
	}
}

// maxFailures is how many failures of a read are followed by another try.
const maxFailures = 2
