package guest_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds/openstackdialer"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/internal/testkit/sshlogin"
)

const (
	serverID  = "d739201c-0d8d-4598-bf32-1cc4b55730d8"
	networkID = "5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10"
	imageID   = "0c6a4a1e-3a53-4c3a-9f0b-6d2f0a1b7e55"
)

// novaServer is what the compute service reads of a create.
type novaServer struct {
	Name     string            `json:"name"`
	UserData string            `json:"user_data"`
	Drive    bool              `json:"config_drive"`
	Metadata map[string]string `json:"metadata"`
	Networks []struct {
		UUID    string `json:"uuid"`
		FixedIP string `json:"fixed_ip"`
	} `json:"networks"`
}

// nova serves the part of an OpenStack that a create needs, and keeps its body.
type nova struct {
	*httptest.Server
	created novaServer
}

func newNova(t *testing.T) *nova {
	t.Helper()
	n := &nova{}
	answers := http.NewServeMux()
	answer := func(pattern, format string, args ...any) {
		answers.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) })
	}
	n.Server = httptest.NewServer(answers)
	t.Cleanup(n.Close)
	answers.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Subject-Token", "a-token-of-a-session")
		w.WriteHeader(http.StatusCreated)
		entry := `{"type": %q, "endpoints": [{"interface": "public", "region": "RegionOne", "url": "%s/%s"}]}`
		fmt.Fprintf(w, `{"token": {"project": {"id": "p", "name": "demo"}, "catalog": [`+entry+","+entry+","+entry+`]}}`,
			"compute", n.URL, "compute/v2.1", "network", n.URL, "network", "image", n.URL, "image")
	})
	answers.HandleFunc("DELETE /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	answer("GET /compute/v2.1/{$}", `{"version": {"version": "2.93", "min_version": "2.1"}}`)
	answer("GET /compute/v2.1/servers", `{"servers": []}`)
	answer("GET /compute/v2.1/flavors/detail", `{"flavors": [{"id": "f1", "name": "small", "vcpus": 1, "ram": 1024, "disk": 3}]}`)
	answer("GET /image/v2/images", `{"images": [{"id": %q, "name": "debian"}]}`, imageID)
	answer("GET /compute/v2.1/servers/"+serverID, `{"server": {"id": %q, "name": "web-1", "status": "ACTIVE", "flavor": {"vcpus": 1, "ram": 1024}}}`, serverID)
	answers.HandleFunc("POST /compute/v2.1/servers", func(w http.ResponseWriter, r *http.Request) {
		body := struct {
			Server *novaServer `json:"server"`
		}{&n.created}
		if text, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(text, &body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"server": {"id": %q}}`, serverID)
	})
	return n
}

// configDrive returns the config drive as nova writes it for the server that was created.
func (n *nova) configDrive(t *testing.T) drive {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(n.created.UserData)
	if err != nil || !n.created.Drive || len(n.created.Networks) != 1 {
		t.Fatalf("a create with a config drive %t and the networks %v, user data: %v", n.created.Drive, n.created.Networks, err)
	}
	encoded := func(v map[string]any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	type object = map[string]any
	return drive{"config-2", map[string]string{
		"openstack/latest/user_data": string(data),
		"openstack/latest/meta_data.json": encoded(object{
			"uuid": serverID, "name": n.created.Name, "hostname": n.created.Name, "meta": n.created.Metadata, "availability_zone": "nova",
			"launch_index": 0, "project_id": "p", "devices": []object{}, "random_seed": "c2VlZA==",
		}),
		"openstack/latest/network_data.json": encoded(object{
			"links": []object{{"id": "tap0", "vif_id": "v", "type": "ovs", "mtu": 1450, "ethernet_mac_address": mac}},
			"networks": []object{{
				"id": "network0", "type": "ipv4", "link": "tap0", "network_id": n.created.Networks[0].UUID,
				"ip_address": n.created.Networks[0].FixedIP, "netmask": "255.255.255.0",
				"routes": []object{{"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": lan.gateway}},
			}},
			"services": []object{{"type": "dns", "address": "10.77.0.3"}},
		}),
	}}
}

func TestGuestOfOpenStack(t *testing.T) {
	needGuests(t)
	t.Parallel()
	n := newNova(t)
	client := dial(t, openstackdialer.Dialer{}, testkit.Cloud("openstack", n.URL+"/v3", func(c *pcapi.Cloud) {
		c.Spec.Type, c.Spec.REST = pcapi.CloudTypeOpenStack, nil
		c.Spec.OpenStack = &pcapi.OpenStackCloud{Project: "demo"}
		c.Spec.OpenStack.Images.Default = "debian"
	}), map[string]string{"username": "u", "password": "correct-horse-battery"})
	private, public := sshlogin.NewKey(t)
	server := create(t, client, vm("web-1", public), script, cloud.Attachment{NetworkID: networkID, Addresses: []string{lan.fixed}})
	m := machine{cpu: 1, memoryMiB: 1024, address: lan.fixed, drives: []drive{n.configDrive(t)}}
	s := boot(t, m).logIn(private)
	s.check(m, expected{source: "DataSourceConfigDrive ", instance: server.ID, hostname: "web-1", gateway: lan.gateway, answers: map[string]string{
		"cat /sys/class/net/eth0/mtu": "1450",
		"resolvectl dns eth0":         "Link 2 (eth0): 10.77.0.3",
	}})
	s.shutDown()
}
