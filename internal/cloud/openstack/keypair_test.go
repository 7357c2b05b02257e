package openstack

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// Anyone with the private key could log in to non-Windows guests.
func TestServersOfWindowsAreCreatedWithTheKeyPairOfTheCloud(t *testing.T) {
	for osType, want := range map[string]bool{"windows": true, "linux": false, "": false} {
		s := newStub(t)
		s.on("GET image/images", images(imageJSON(otherID, `"name": "debian"`, `"visibility": "public"`, `"image_type": ""`, `"instance_uuid": ""`, `"privatecloud:snapshot": ""`, `"os_type": "`+osType+`"`)))
		s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, http.StatusAccepted)
		c := s.client(func(c *Config) { c.KeyPair = "ops" })
		if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); err != nil {
			t.Fatal(err)
		}
		if sent := s.taken(); want != slices.ContainsFunc(sent, func(request string) bool {
			return strings.HasPrefix(request, "POST compute/servers ") && strings.Contains(request, `"key_name":"ops"`)
		}) {
			t.Errorf("%q: sent %q, want the key pair: %t", osType, sent, want)
		}
		if !want {
			continue
		}
		s.on("POST compute/servers", `{"badRequest": {"code": 400, "message": "Invalid key_name provided."}}`, http.StatusBadRequest)
		_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"})
		if !cloud.Is(err, cloud.Misconfigured) || !strings.Contains(err.Error(), "spec.openstack.keyPair: Invalid key_name provided.") {
			t.Errorf("a key pair that was deleted: %v, want Misconfigured", err)
		}
	}
}

// Otherwise the guest would have a password that nobody can read.
func TestServerIsNotCreatedWhileItsImageCannotBeRead(t *testing.T) {
	for keyPair, want := range map[string]bool{"ops": true, "": false} {
		s := newStub(t)
		s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, http.StatusAccepted)
		c := s.client(func(c *Config) { c.KeyPair = keyPair })
		if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); err != nil {
			t.Fatal(err)
		}
		c.images.needs.kept = nil
		s.on("GET image/images/"+otherID, "", http.StatusServiceUnavailable)
		if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); cloud.Is(err, cloud.Unavailable) != want {
			t.Errorf("with the key pair %q: %v, want an error: %t", keyPair, err, want)
		}
	}
}
