package openstack

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestUserDataIsSentInBase64WithConfigDrive(t *testing.T) {
	for name, test := range map[string]struct {
		data  cloud.UserData
		want  any
		drive any
	}{
		"none: neither":                      {},
		"a cloud-config":                     {cloud.UserData("#cloud-config\n"), "I2Nsb3VkLWNvbmZpZwo=", true},
		"what is base64 itself: encoded too": {cloud.UserData("I2Nsb3VkLWNvbmZpZwo="), base64.StdEncoding.EncodeToString([]byte("I2Nsb3VkLWNvbmZpZwo=")), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
			if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", UserData: test.data}); err != nil {
				t.Fatalf("CreateServer: %v", err)
			}
			var body struct {
				Server map[string]any `json:"server"`
			}
			if err := json.Unmarshal([]byte(s.body("POST compute/servers ")), &body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{test.want, test.drive}, []any{body.Server["user_data"], body.Server["config_drive"]}); diff != "" {
				t.Errorf("user_data and config_drive (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUserDataIsBoundedInBase64(t *testing.T) {
	s := newStub(t)
	s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
	_, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", UserData: make([]byte, 49150)})
	if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "the user data has 65536 bytes as it is sent, and this cloud takes 65535") {
		t.Errorf("49150 bytes: %v", err)
	}
	if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", UserData: make([]byte, 49149)}); err != nil {
		t.Errorf("49149 bytes: %v", err)
	}
}

// body returns that of the last request that begins with prefix.
func (s *stub) body(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, request := range slices.Backward(s.sent) {
		if body, ok := strings.CutPrefix(request, prefix); ok {
			return body
		}
	}
	s.t.Fatalf("there was no request %s", prefix)
	return ""
}
