package vsphere_test

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
)

func TestMissingPartsOfTheInventoryAreNamed(t *testing.T) {
	v := newVCenter(t)
	for name, test := range map[string]struct {
		place func(*vsphere.Place)
		says  []string
	}{
		"datacenter":                   {func(p *vsphere.Place) { p.Datacenter = "DC9" }, []string{`spec.vsphere.datacenter "DC9" does not exist`, `there is "DC0"`}},
		"folder":                       {func(p *vsphere.Place) { p.Folder = "nowhere" }, []string{`spec.vsphere.folder "nowhere" does not exist`, `there is "op"`}},
		"folder outside":               {func(p *vsphere.Place) { p.Folder = "/DC0/host" }, []string{"is not below /DC0/vm"}},
		"pool":                         {func(p *vsphere.Place) { p.ResourcePool = "tiny" }, []string{`spec.vsphere.resourcePool "tiny" does not exist`, "/DC0/host/DC0_C0/Resources"}},
		"datastore":                    {func(p *vsphere.Place) { p.Datastore = "tape" }, []string{`spec.vsphere.datastore "tape" does not exist`, `"LocalDS_0"`}},
		"network":                      {func(p *vsphere.Place) { p.Network = "string" }, []string{`spec.vsphere.networks.default "string" does not exist`, `"VM Network"`}},
		"folder of templates":          {func(p *vsphere.Place) { p.TemplateFolder = "nowhere" }, []string{`spec.vsphere.templates.folder "nowhere" does not exist`}},
		"template":                     {func(p *vsphere.Place) { p.DefaultTemplate = "large" }, []string{`spec.vsphere.templates.default "large" is no template`, `there is "small"`}},
		"snapshot of a linked clone":   {func(p *vsphere.Place) { p.LinkedClones = true }, []string{`"small" has no snapshot`, "cloneMode to Full"}},
		"no templates where there are": {func(p *vsphere.Place) { p.TemplateFolder = "" }, []string{`"small" is no template`, "sees none"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := v.client(t, func(cfg *vsphere.Config) { test.place(&cfg.Place) })
			_, err := c.Capabilities(t.Context())
			wantError(t, err, cloud.Misconfigured, test.says...)
		})
	}
}

func TestWhatThereIsOnlyOneOfNeedsNoName(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t, func(cfg *vsphere.Config) {
		cfg.Place.Datacenter, cfg.Place.ResourcePool, cfg.Place.Datastore = "", "", ""
	})
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Errorf("Capabilities: %v", err)
	}
}

func TestBrokenConnectionIsNoMissingPart(t *testing.T) {
	v := newVCenter(t)
	for _, method := range []string{"RetrieveServiceContent", "Login", "RetrievePropertiesEx"} {
		c, before := v.client(t), v.Front.Sent(method)
		restore := v.Front.Lose(method)
		_, err := c.Capabilities(t.Context())
		restore()
		wantError(t, err, cloud.Unavailable, "connection")
		if cloud.Uncertain(err) {
			t.Errorf("%s: %v is uncertain, and changes nothing", method, err)
		}
		if v.Front.Sent(method) == before {
			t.Errorf("%s was not sent", method)
		}
		if _, err := c.Capabilities(t.Context()); err != nil {
			t.Errorf("%s: Capabilities afterwards: %v", method, err)
		}
	}
}

func TestRemovedFolderIsFoundOut(t *testing.T) {
	v := newVCenter(t)
	folder, err := v.MakeFolder(t.Context(), "brief")
	if err != nil {
		t.Fatal(err)
	}
	c := v.client(t, func(cfg *vsphere.Config) { cfg.Place.Folder = "brief" })
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Fatalf("Capabilities: %v", err)
	}
	task, err := folder.Destroy(t.Context())
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.ListServers(t.Context(), cloud.ListServers{})
	wantError(t, err, cloud.Misconfigured, `spec.vsphere.folder "brief" does not exist`)
}

func TestLinkedCloneSharesTheSnapshot(t *testing.T) {
	v := newVCenter(t)
	snapshot := types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: "snapshot-1"}
	v.TemplateVM().Snapshot = &types.VirtualMachineSnapshotInfo{CurrentSnapshot: &snapshot}
	c := v.client(t, func(cfg *vsphere.Config) { cfg.Place.LinkedClones, cfg.Place.Network = true, "VM Network" })
	var sent string
	v.Front.Rewrite(func(method, body string) string {
		if method == "CloneVM_Task" {
			sent = body
		}
		return body
	})
	create(t, c, cloud.CreateServer{Name: "linked"})
	for _, part := range []string{"createNewChildDiskBacking", `<snapshot type="VirtualMachineSnapshot">snapshot-1<`, "<deviceName>VM Network<", "<operation>edit<"} {
		if !strings.Contains(sent, part) {
			t.Errorf("the clone has no %q:\n%s", part, sent)
		}
	}
}

// wantError checks the kind of an error, and what it says.
func wantError(t *testing.T, err error, kind cloud.Kind, says ...string) {
	t.Helper()
	if !cloud.Is(err, kind) {
		t.Fatalf("%v (%s), want %s", err, cloud.KindOf(err), kind)
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("message %q, want %q in it", err, part)
		}
	}
}

// create creates a VM, and returns it once it is there.
func create(t *testing.T, c *vsphere.Client, req cloud.CreateServer) cloud.Server {
	t.Helper()
	result, err := c.CreateServer(t.Context(), req)
	if err != nil {
		t.Fatalf("CreateServer(%s): %v", req.Name, err)
	}
	server, err := follow(t.Context(), c, result.Operation)
	if err != nil {
		t.Fatalf("create %s: %v", req.Name, err)
	}
	return server
}
