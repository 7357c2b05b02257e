package vsphere_test

import (
	"net/http"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

const someKey = "11111111-2222-4333-8444-555555555555"

// envelope returns an answer of the SOAP API with this body.
func envelope(body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" ` +
		`xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>` + body +
		`</soapenv:Body></soapenv:Envelope>`
}

func TestAnswersThatAreNotTheMethodsOwnAreErrors(t *testing.T) {
	v := newVCenter(t)
	folder := ""
	calls := map[string]func(*vsphere.Client) error{
		"list": func(c *vsphere.Client) error {
			_, err := c.ListServers(t.Context(), cloud.ListServers{})
			return err
		},
		"get": func(c *vsphere.Client) error {
			_, err := c.GetServer(t.Context(), someKey)
			return err
		},
		"create": func(c *vsphere.Client) error {
			_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", Folder: folder, IdempotencyKey: someKey})
			return err
		},
	}
	const wrongType = `<RetrievePropertiesExResponse xmlns="urn:vim25"><returnval><objects><obj type="VirtualMachine">vm-1</obj><missingSet>` +
		`<path>config</path><fault><fault xsi:type="xsd:int">1</fault><localizedMessage/></fault></missingSet></objects></returnval></RetrievePropertiesExResponse>`
	for name, tc := range map[string]struct{ call, method, body string }{
		"no element in the answer to a listing": {"list", "RetrievePropertiesEx", ""},
		"a fault of another type in a listing":  {"list", "RetrievePropertiesEx", wrongType},
		"no element in the answer to a search":  {"get", "FindAllByUuid", ""},
		"no element in the answer to a look-up": {"create", "FindChild", ""},
		"no element in the answer to a folder":  {"create", "CreateFolder", ""},
		"no element in the answer to a clone":   {"create", "CloneVM_Task", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := v.client(t)
			folder = tc.method // of no other case
			if _, err := c.Capabilities(t.Context()); err != nil {
				t.Fatal(err)
			}
			restore := v.Front.Answer(func(method string) (int, string) {
				if method == tc.method {
					return http.StatusOK, envelope(tc.body)
				}
				return 0, ""
			})
			defer restore()
			err := calls[tc.call](c)
			if !cloud.Is(err, cloud.Unreadable) || cloud.Uncertain(err) != (tc.method == "CloneVM_Task") {
				t.Errorf("%v, uncertain %t", err, cloud.Uncertain(err))
			}
		})
	}
}

// A VM that the vCenter cannot read has no instance UUID for a client that has not seen
// it before.
func TestHiddenVMIsNotReportedAsNotFound(t *testing.T) {
	v := newVCenter(t)
	created := create(t, v.client(t), cloud.CreateServer{Name: "db", IdempotencyKey: someKey, Labels: map[string]string{"owner": "a"}})
	v.Change(v.VM("db").Reference(), types.PropertyChange{Name: "runtime.connectionState", Val: types.VirtualMachineConnectionStateInaccessible},
		types.PropertyChange{Name: "config.instanceUuid", Val: ""}, types.PropertyChange{Name: "summary.config.instanceUuid", Val: ""})
	c := v.client(t)
	if _, err := c.GetServer(t.Context(), created.ID); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("GetServer: %v, want Unavailable", err)
	}
	if _, err := c.DeleteServer(t.Context(), created.ID); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("DeleteServer: %v, want Unavailable", err)
	}
	if v.VM("db") == nil {
		t.Error("the VM is gone")
	}
}

// A clone that somebody makes of a VM has its extraConfig, and so its mark.
func TestCopyOfVMHasNoLabelsAndIsNotDeleted(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	create(t, c, cloud.CreateServer{Name: "db", IdempotencyKey: someKey, Labels: map[string]string{"owner": "a"}})
	finder := find.NewFinder(v.Admin.Client)
	datacenter, err := finder.Datacenter(t.Context(), "DC0")
	if err != nil {
		t.Fatal(err)
	}
	vm, err := finder.SetDatacenter(datacenter).VirtualMachine(t.Context(), "/DC0/vm/"+vcsim.Folder+"/db")
	if err != nil {
		t.Fatal(err)
	}
	into, err := finder.Folder(t.Context(), "/DC0/vm/"+vcsim.Folder)
	if err != nil {
		t.Fatal(err)
	}
	task, err := vm.Clone(t.Context(), into, "db-backup", types.VirtualMachineCloneSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := task.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	page, err := c.ListServers(t.Context(), cloud.ListServers{})
	if err != nil || len(page.Servers) != 2 {
		t.Fatalf("ListServers: %v, %v", page.Servers, err)
	}
	for _, server := range page.Servers {
		if server.Name == "db" {
			continue
		}
		if len(server.Labels) != 0 {
			t.Errorf("the copy has the labels %v", server.Labels)
		}
		if _, err := c.DeleteServer(t.Context(), server.ID); !cloud.Is(err, cloud.Conflict) {
			t.Errorf("DeleteServer of the copy: %v, want Conflict", err)
		}
	}
}
