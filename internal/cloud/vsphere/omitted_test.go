package vsphere_test

import (
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

// answers is what calls answer about a VM.
type answers struct {
	// get, list and change are the kinds of the errors of GetServer, ListServers, and of calls that change
	// the VM or list its snapshots; empty for none.
	get, list, change cloud.Kind
	// state is that in the listing, StateActive if it is empty.
	state cloud.State
}

func TestPropertyThatTheVCenterDoesNotReturnIsNotMisread(t *testing.T) {
	unreadable := answers{get: cloud.Unavailable, change: cloud.Unavailable, state: cloud.StateUnknown}
	wants := map[string]answers{
		"name":                {get: cloud.Unavailable, list: cloud.Unavailable},
		"parent":              {get: cloud.Displaced, change: cloud.Displaced},
		"config.instanceUuid": unreadable,
		"config":              unreadable,
		"runtime.powerState":  {state: cloud.StateUnknown},
		"runtime":             {state: cloud.StateUnknown},
		"summary":             {},
		"guest":               {},
		"config.hardware":     {},
		"resourcePool":        {},
		"recentTask":          {},
	}
	for _, path := range vsphere.VMPaths {
		if _, ok := wants[path]; !ok {
			wants[path] = answers{}
		}
	}
	v := newZones(t)
	c := v.client(t, zoned(vsphere.Zone{Name: "a", ResourcePool: root}))
	created := create(t, c, cloud.CreateServer{Name: "db", Folder: "team-a", IdempotencyKey: someKey, Labels: map[string]string{"owner": "me"}})
	list(t, c)
	vm := v.VM("db").Self
	for path, want := range wants {
		t.Run(path, func(t *testing.T) {
			defer v.Front.Omit(vm, path)()
			got, err := c.GetServer(t.Context(), created.ID)
			if cloud.KindOf(err) != want.get || err == nil && (got.ID != created.ID || got.Name != "db") {
				t.Errorf("GetServer: %+v, %v, want the VM or %q", got, err, want.get)
			}
			page, err := c.ListServers(t.Context(), cloud.ListServers{})
			if cloud.KindOf(err) != want.list || err == nil && len(page.Servers) != 1 {
				t.Fatalf("ListServers: %v, %v, want the VM or %q", page.Servers, err, want.list)
			}
			for _, server := range page.Servers {
				if state := want.state; server.ID != created.ID || server.State != state && (state != "" || server.State != cloud.StateActive) {
					t.Errorf("ListServers: %+v, want %s, %s", server, created.ID, state)
				}
			}
			if want.change == "" {
				return
			}
			errs := callsOf(t, c, created.ID)
			_, errs["CreateServer again"] = c.CreateServer(t.Context(), cloud.CreateServer{Name: "db", Folder: "team-a", IdempotencyKey: someKey, Labels: map[string]string{"owner": "me"}})
			for call, err := range errs {
				if cloud.KindOf(err) != want.change {
					t.Errorf("%s: %v, want %s", call, err, want.change)
				}
			}
			if err := errs["CreateServer again"]; want.change == cloud.Unavailable && !cloud.Uncertain(err) {
				t.Errorf("CreateServer again: %v, want it uncertain: the VM of an earlier create exists", err)
			}
		})
	}
	if sent := v.Front.Sent("Destroy_Task") + v.Front.Sent("ReconfigVM_Task") + v.Front.Sent("PowerOffVM_Task"); sent > 0 {
		t.Errorf("%d changes were sent", sent)
	}
}

// A host that is not connected, or files that cannot be read, hide the configuration from every client.
func TestVMWithoutItsConfigurationIsNotFoundGoneByANewClient(t *testing.T) {
	v := newVCenter(t)
	created := create(t, v.client(t), cloud.CreateServer{Name: "db", IdempotencyKey: someKey})
	defer v.Front.Omit(v.VM("db").Self, "config", "summary.config")()
	for call, err := range callsOf(t, v.client(t), created.ID) {
		if !cloud.Is(err, cloud.Unavailable) {
			t.Errorf("%s: %v, want Unavailable", call, err)
		}
	}
}

func TestTemplateThatCannotBeReadIsTriedAgain(t *testing.T) {
	for _, path := range []string{"config", "config.template", "config.hardware"} {
		t.Run(path, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			template := v.TemplateVM().Self
			restore := v.Front.Omit(template, path)
			_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "db"})
			wantError(t, err, cloud.Unavailable, "cannot read the configuration of the template")
			_, err = c.Capabilities(t.Context())
			wantError(t, err, cloud.Unavailable, "cannot read the configuration of the template")
			restore()
			if _, err := c.Capabilities(t.Context()); err != nil {
				t.Errorf("Capabilities once it can be read: %v", err)
			}
			create(t, c, cloud.CreateServer{Name: "db"})
		})
	}
}
