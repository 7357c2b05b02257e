package vsphere_test

import (
	"testing"

	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// vcenter is a simulator that ends with the test.
type vcenter struct{ *vcsim.Server }

func newVCenter(t *testing.T) *vcenter {
	t.Helper()
	server, err := vcsim.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if shared := server.SharedAddresses(); len(shared) > 0 {
			t.Errorf("VMs have the same MAC addresses: %v", shared)
		}
		server.Close()
	})
	return &vcenter{server}
}

// config returns that of a client of the simulator, changed.
func (v *vcenter) config(change ...func(*vsphere.Config)) vsphere.Config {
	cfg := vsphere.Config{
		Name: "vcsim", Endpoint: v.URL, Credentials: vsphere.Credentials{Username: "user", Password: "pass"},
		Limits: transport.Limits{RequestsPerSecond: 10000, Burst: 10000, MaxInFlight: 64},
		Place: vsphere.Place{
			Datacenter: "DC0", Folder: vcsim.Folder, ResourcePool: "/DC0/host/DC0_C0/Resources", Datastore: "LocalDS_0",
			TemplateFolder: "/DC0/vm", DefaultTemplate: vcsim.Template,
		},
	}
	for _, apply := range change {
		apply(&cfg)
	}
	return cfg
}

// client returns a client that is closed with the test.
func (v *vcenter) client(t *testing.T, change ...func(*vsphere.Config)) *vsphere.Client {
	t.Helper()
	c, err := vsphere.New(v.config(change...))
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(func() { c.Close(t.Context()) })
	c.SetTaskAge(0) // a look after the end of a task shows it
	return c
}
