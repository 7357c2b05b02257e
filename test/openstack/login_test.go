package openstack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
)

// Every kind of login that docs/openstack.md lists works with a real identity service.
func TestLoginsWithClouds(t *testing.T) {
	t.Parallel()
	p, other := newProject(t), newProject(t)
	id, secret := newCredential(t, p, "of-a-file")
	a := admin()
	token, named := tokenOf(t, p, user), p.name+"-of-a-file"
	inDomain := `user_domain_name: Default, project_domain_id: default`
	tests := map[string]struct {
		auth, more string
		says       string
	}{
		"application credential":               {auth: fmt.Sprintf(`application_credential_id: %q, application_credential_secret: %q`, id, secret), more: "auth_type: v3applicationcredential"},
		"application credential by name":       {auth: fmt.Sprintf(`application_credential_name: %q, application_credential_secret: %q, username: %s, user_domain_id: default`, named, secret, user)},
		"application credential of a user id":  {auth: fmt.Sprintf(`application_credential_name: %q, application_credential_secret: %q, user_id: %q`, named, secret, a.userID)},
		"user and project by name":             {auth: fmt.Sprintf(`username: %s, password: %s, project_name: %q, %s`, user, password, p.name, inDomain)},
		"user and project by id":               {auth: fmt.Sprintf(`user_id: %q, password: %s, project_id: %q`, a.userID, password, p.id)},
		"user and project with ids and names":  {auth: fmt.Sprintf(`username: %s, password: %s, project_id: %q, project_name: %q, %s`, user, password, p.id, p.name, inDomain)},
		"token":                                {auth: fmt.Sprintf(`token: %q`, token), more: "auth_type: v3token"},
		"token of the named project":           {auth: fmt.Sprintf(`token: %q, project_name: %q`, token, p.name)},
		"token of another project":             {auth: fmt.Sprintf(`token: %q, project_id: %q`, token, other.id), says: "and clouds.yaml names"},
		"token that is none":                   {auth: `token: "gAAAAABnone"`, says: "the cloud refuses the token: it has ended or was revoked"},
		"user of a domain that does not exist": {auth: fmt.Sprintf(`username: %s, password: %s, project_name: %q, user_domain_name: none`, user, password, p.name), says: "the cloud refuses the credentials"},
		"internal endpoints":                   {auth: fmt.Sprintf(`token: %q`, token), more: "interface: internal"},
		"admin endpoints":                      {auth: fmt.Sprintf(`token: %q`, token), more: "endpoint_type: adminURL"},
		"endpoints of the file": {
			auth: fmt.Sprintf(`token: %q`, token),
			more: fmt.Sprintf(`compute_endpoint_override: %q, network_endpoint_override: %q, image_endpoint_override: %q`,
				a.services["compute"], strings.TrimSuffix(a.services["network"], "/v2.0"), a.services["image"]),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			file, err := openstack.ParseFile([]byte(strings.TrimSuffix(fmt.Sprintf("clouds: {test: {auth: {%s}, %s", tc.auth, tc.more), ", ")+"}}"), "")
			if err != nil {
				t.Fatalf("ParseFile: %v", err)
			}
			c := newClient(t, p, &wire{}, func(c *openstack.Config) {
				c.Project, c.Credentials, c.Interface, c.Endpoints = "", file.Credentials, file.Interface, file.Endpoints
			})
			_, err = c.Capabilities(t.Context())
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("Capabilities: %v", err)
			case tc.says != "" && (!cloud.Is(err, cloud.Unauthorized, cloud.Misconfigured) || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
	if status, _, _, err := a.as(token).request(http.MethodGet, a.services["compute"]+"/servers", nil, "application/json"); err != nil || status != http.StatusOK {
		t.Errorf("the token after its clients were closed: %d, %v, want that it is still valid", status, err)
	}
}
