package vsphere_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// callsOf makes the calls that are about one VM, and returns their errors.
func callsOf(t *testing.T, c *vsphere.Client, id string) map[string]error {
	t.Helper()
	errs := map[string]error{}
	_, errs["GetServer"] = c.GetServer(t.Context(), id)
	_, errs["UpdateServer"] = c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetCPU(2)})
	_, errs["DeleteServer"] = c.DeleteServer(t.Context(), id)
	_, errs["ListSnapshots"] = c.ListSnapshots(t.Context(), id)
	_, errs["CreateSnapshot"] = c.CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: id, Name: "before"})
	errs["DeleteSnapshot"] = c.DeleteSnapshot(t.Context(), id, "snapshot-1")
	_, errs["RevertServer"] = c.RevertServer(t.Context(), cloud.RevertServer{ServerID: id, SnapshotID: "snapshot-1"})
	return errs
}

func TestVMThatIsMovedOrConvertedIsFoundByItsUUIDAndLeftAlone(t *testing.T) {
	type step func(t *testing.T, v *vcenter)
	move := func(t *testing.T, v *vcenter, into types.ManagedObjectReference) {
		t.Helper()
		v.Move(v.VM("db"), into)
	}
	convert := func(template bool) step {
		return func(_ *testing.T, v *vcenter) { v.Convert(v.VM("db"), template) }
	}
	var home types.ManagedObjectReference
	back := func(t *testing.T, v *vcenter) { t.Helper(); move(t, v, home) }
	for name, tc := range map[string]struct {
		away, back step
		says       string
	}{
		"converted to a template": {convert(true), convert(false), `was converted to a template, "/DC0/vm/op/team-a/db"`},
		"moved to another folder": {func(t *testing.T, v *vcenter) {
			t.Helper()
			other, err := v.MakeFolder(t.Context(), "archive")
			if err != nil {
				t.Fatal(err)
			}
			move(t, v, other.Reference())
		}, back, `is "/DC0/vm/archive/db" now, outside of spec.vsphere.folder`},
		"moved to another datacenter": {func(t *testing.T, v *vcenter) {
			t.Helper()
			other, err := v.MakeDatacenter(t.Context(), "DC1")
			if err != nil {
				t.Fatal(err)
			}
			move(t, v, other)
		}, back, `is "/DC1/vm/db" now, outside of spec.vsphere.folder`},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			req := cloud.CreateServer{Name: "db", Folder: "team-a", IdempotencyKey: someKey, Labels: map[string]string{"owner": "me"}, PowerState: cloud.PowerOff}
			created := create(t, c, req)
			home = *v.VM("db").Parent
			tc.away(t, v)
			for who, client := range map[string]*vsphere.Client{"the client that made it": c, "another client": v.client(t)} {
				for call, err := range callsOf(t, client, created.ID) {
					if !cloud.Is(err, cloud.Displaced) || !strings.Contains(err.Error(), tc.says) {
						t.Errorf("%s by %s: %v, want Displaced and %q", call, who, err, tc.says)
					}
				}
				if _, err := client.CreateServer(t.Context(), req); !cloud.Is(err, cloud.Displaced) {
					t.Errorf("the create again, by %s: %v, want Displaced", who, err)
				}
				if got := list(t, client); len(got) != 0 {
					t.Errorf("ListServers by %s: %v, want none", who, got)
				}
			}
			if v.VM("db") == nil || v.Front.Sent("Destroy_Task") > 0 || v.Front.Sent("CloneVM_Task") != 1 {
				t.Errorf("%d deletions and %d clones were sent, want none and 1", v.Front.Sent("Destroy_Task"), v.Front.Sent("CloneVM_Task"))
			}
			tc.back(t, v)
			if got, err := c.GetServer(t.Context(), created.ID); err != nil || got.Name != "db" {
				t.Errorf("GetServer once it is back: %+v, %v", got, err)
			}
			remove(t, c, created.ID)
		})
	}
}

func TestVMIsFoundByAUUIDInAnotherSpelling(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "db", IdempotencyKey: "a1b2c3d4-2222-4333-8444-5555555555ff"})
	for _, id := range []string{strings.ToUpper(created.ID), "{" + strings.ToUpper(created.ID) + "}", strings.ReplaceAll(created.ID, "-", "")} {
		if got, err := c.GetServer(t.Context(), id); err != nil || got.ID != created.ID {
			t.Errorf("GetServer(%s): %q, %v, want %s", id, got.ID, err, created.ID)
		}
	}
}

// To an account without rights on a VM, a search shows nothing, and a read of the VM itself a fault.
func TestVMThatTheAccountMayNotReadAnyMoreIsNotGone(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "db", IdempotencyKey: someKey})
	ref := v.VM("db").Self.Value
	v.Front.Rewrite(func(method, body string) string {
		if method == "FindAllByUuid" {
			return strings.ReplaceAll(body, created.ID, "00000000-0000-4000-8000-000000000000")
		}
		return body
	})
	restore := v.Front.AnswerRequests(func(method, body string) (int, string) {
		if method == "RetrievePropertiesEx" && strings.Contains(body, ">"+ref+"<") {
			return incomplete(method, ref, "name", noPermission)
		}
		return 0, ""
	})
	errs := callsOf(t, c, created.ID)
	for _, call := range slices.Sorted(maps.Keys(errs)) {
		if err := errs[call]; !cloud.Is(err, cloud.Displaced) || !strings.Contains(err.Error(), "may not read it") {
			t.Errorf("%s: %v, want Displaced, since the account may not read the VM", call, err)
		}
	}
	restore()
	if _, err := c.GetServer(t.Context(), created.ID); err != nil {
		t.Errorf("GetServer once it can be read: %v", err)
	}
}

func TestSearchByUUIDThatFailsProvesNothing(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "db", IdempotencyKey: someKey})
	for fault, want := range map[string]cloud.Kind{"NoPermission": cloud.Forbidden, "HostCommunication": cloud.Unavailable, "": cloud.Unavailable} {
		restore := v.Front.Answer(func(method string) (int, string) {
			switch {
			case method != "FindAllByUuid":
				return 0, ""
			case fault == "":
				return http.StatusBadGateway, "<html>bad gateway</html>"
			}
			return vcsim.Fault(fault)
		})
		for call, err := range callsOf(t, c, created.ID) {
			if !cloud.Is(err, want) {
				t.Errorf("%s with %q: %v, want %s", call, fault, err, want)
			}
		}
		restore()
	}
	if v.VM("db") == nil {
		t.Error("the VM is gone")
	}
}
