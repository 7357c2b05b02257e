package vsphere_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// guestInfo returns what the data source VMware of cloud-init reads in a VM, decoded as
// it does.
func guestInfo(t *testing.T, v *vcenter, name string) map[string]string {
	t.Helper()
	raw, decoded := map[string]string{}, map[string]string{}
	for _, option := range v.VM(name).Config.ExtraConfig {
		if o := option.GetOptionValue(); strings.HasPrefix(o.Key, "guestinfo.") {
			raw[o.Key] = fmt.Sprint(o.Value)
		}
	}
	for _, key := range []string{"guestinfo.metadata", "guestinfo.userdata"} {
		encoding := raw[key+".encoding"]
		if encoding == "" {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(raw[key])
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if encoding == "gzip+base64" {
			data = unpack(t, data)
		}
		decoded[key] = string(data)
	}
	return decoded
}

func unpack(t *testing.T, data []byte) []byte {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("unpack: %v", err)
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		t.Fatalf("unpack: %v", err)
	}
	return plain
}

func TestCloneWithUserDataHasNoOVFEnvironment(t *testing.T) {
	v := newVCenter(t)
	v.GiveVApp(v.TemplateVM())
	c := v.client(t)
	for name, test := range map[string]struct {
		data cloud.UserData
		want bool
	}{
		"with-user-data": {cloud.UserData("#cloud-config\n"), false}, // cloud-init would not read it
		"without":        {nil, true},                                // the environment may be all that configures the guest
	} {
		create(t, c, cloud.CreateServer{Name: name, UserData: test.data})
		if got := v.HasOVFEnvironment(name); got != test.want {
			t.Errorf("%s: OVF environment %t, want %t", name, got, test.want)
		}
	}
}

func TestCloneHasUserDataAndMetadataOfCloudInit(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	server := create(t, c, cloud.CreateServer{Name: "db", IdempotencyKey: someKey, UserData: cloud.UserData("#cloud-config\n")})
	fqdn := create(t, c, cloud.CreateServer{Name: "db-1.example.com", UserData: cloud.UserData("#cloud-config\n")})
	create(t, c, cloud.CreateServer{Name: "no host name", UserData: cloud.UserData("#!/bin/sh\n")})
	create(t, c, cloud.CreateServer{Name: "plain"})
	for name, want := range map[string]map[string]string{
		"db":               {"guestinfo.userdata": "#cloud-config\n", "guestinfo.metadata": `{"instance-id":"` + server.ID + `","local-hostname":"db"}`},
		"db-1.example.com": {"guestinfo.userdata": "#cloud-config\n", "guestinfo.metadata": `{"instance-id":"` + fqdn.ID + `","local-hostname":"db-1.example.com"}`},
		"no host name": {"guestinfo.userdata": "#!/bin/sh\n",
			"guestinfo.metadata": `{"instance-id":"` + v.VM("no host name").Config.InstanceUuid + `"}`},
		"plain": {},
	} {
		if diff := cmp.Diff(want, guestInfo(t, v, name)); diff != "" {
			t.Errorf("guestinfo of %s (-want +got):\n%s", name, diff)
		}
	}
}
