package openstack

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestLoginIsThatOfTheCredentials(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string
	}{
		"username and password, project and domain of the spec": {
			func(c *Config) { c.Credentials, c.Domain = Credentials{Username: "u", Password: "p"}, "d" },
			`{"identity": {"methods": ["password"], "password": {"user": {"name": "u", "password": "p", "domain": {"name": "d"}}}},
			  "scope": {"project": {"name": "demo", "domain": {"name": "d"}}}}`,
		},
		"domains of user and project differ": {
			func(c *Config) {
				c.Credentials = Credentials{
					Username: "u", Password: "p", UserDomain: Identifier{Name: "staff"}, Project: Identifier{Name: "demo"}, ProjectDomain: Identifier{ID: "d2", Name: "ignored"},
				}
			},
			`{"identity": {"methods": ["password"], "password": {"user": {"name": "u", "password": "p", "domain": {"name": "staff"}}}},
			  "scope": {"project": {"name": "demo", "domain": {"id": "d2"}}}}`,
		},
		"ids of user and project": {
			func(c *Config) {
				c.Project = ""
				c.Credentials = Credentials{UserID: "u1", Username: "ignored", Password: "p", UserDomain: Identifier{ID: "ignored"}, Project: Identifier{ID: projectID, Name: "ignored"}}
			},
			`{"identity": {"methods": ["password"], "password": {"user": {"id": "u1", "password": "p"}}}, "scope": {"project": {"id": "` + projectID + `"}}}`,
		},
		"application credential": {
			func(c *Config) {
				c.Credentials = Credentials{ApplicationCredentialID: "a", ApplicationCredentialName: "ignored", ApplicationCredentialSecret: "s"}
			},
			`{"identity": {"methods": ["application_credential"], "application_credential": {"id": "a", "secret": "s"}}}`,
		},
		"application credential by name": {
			func(c *Config) {
				c.Credentials = Credentials{ApplicationCredentialName: "operator", ApplicationCredentialSecret: "s", Username: "u", UserDomain: Identifier{ID: "d1"}}
			},
			`{"identity": {"methods": ["application_credential"], "application_credential": {"name": "operator", "secret": "s", "user": {"name": "u", "domain": {"id": "d1"}}}}}`,
		},
		"application credential by name, of a user by id": {
			func(c *Config) {
				c.Credentials = Credentials{ApplicationCredentialName: "operator", ApplicationCredentialSecret: "s", UserID: "u1"}
			},
			`{"identity": {"methods": ["application_credential"], "application_credential": {"name": "operator", "secret": "s", "user": {"id": "u1"}}}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			if _, err := s.client(tc.change).session.auth.grant(t.Context(), "test", nil); err != nil {
				t.Fatalf("grant: %v", err)
			}
			var got, want struct{ Auth any }
			if err := json.Unmarshal([]byte(s.login), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(`{"auth": `+tc.want+`}`), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the login (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTokenIsUsedUntilItEnds(t *testing.T) {
	s := newStub(t)
	s.given, s.expires = "token-of-an-administrator", time.Now().Add(time.Second)
	s.on("GET compute/servers/"+someID, oneServer())
	withToken := func(c *Config) { c.Credentials = Credentials{Token: s.given} }
	c := s.client(withToken)
	for range 3 {
		if _, err := c.GetServer(t.Context(), someID); err != nil {
			t.Fatalf("GetServer: %v", err)
		}
	}
	if s.logins != 1 {
		t.Errorf("the token was read %d times, want once", s.logins)
	}
	s.client(withToken).Close(t.Context())
	c.Close(t.Context())
	if s.token != s.given {
		t.Error("the client revoked a token that somebody else had logged in for")
	}

	c = s.client(withToken)
	if _, err := c.GetServer(t.Context(), someID); err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	ended := s.given
	s.mu.Lock()
	s.given, s.token = "", ""
	s.mu.Unlock()
	_, err := c.GetServer(t.Context(), someID)
	if !cloud.Is(err, cloud.Unauthorized) || !strings.Contains(err.Error(), "it has ended or was revoked. Put another one into the Secret") || strings.Contains(err.Error(), ended) {
		t.Errorf("%v, want Unauthorized, what to do, and no token", err)
	}
}

func TestCredentialsAreForTheProjectOfTheFile(t *testing.T) {
	s := newStub(t)
	named := Credentials{Project: Identifier{Name: "demo"}}
	in := func(domain Identifier) Credentials { return Credentials{Project: named.Project, ProjectDomain: domain} }
	for credentials, accepted := range map[Credentials]bool{
		{}: true, named: true, {Project: Identifier{Name: "Demo"}}: true, {Project: Identifier{Name: "other"}}: false,
		{Project: Identifier{ID: projectID}}: true, {Project: Identifier{ID: projectID, Name: "renamed"}}: true, {Project: Identifier{ID: someID, Name: "demo"}}: false,
		in(Identifier{Name: "Default"}): true, in(Identifier{ID: "default"}): true, in(Identifier{ID: "default", Name: "renamed"}): true,
		in(Identifier{Name: "corp"}): false, in(Identifier{ID: "d2", Name: "Default"}): false,
	} {
		credentials.ApplicationCredentialID, credentials.ApplicationCredentialSecret = "a", "s"
		c := s.client(func(c *Config) { c.Project, c.Credentials = "", credentials })
		_, err := c.session.auth.grant(t.Context(), "test", nil)
		if accepted != (err == nil) || err != nil && (err.Kind != cloud.Misconfigured || !strings.Contains(err.Detail, `for project "demo" in domain "Default", and clouds.yaml names another one`)) {
			t.Errorf("%v in %v: %v, want accepted: %t", credentials.Project, credentials.ProjectDomain, err, accepted)
		}
	}
}

func TestServicesAreThoseOfTheInterface(t *testing.T) {
	s := newStub(t)
	endpoints := func(kind string) any {
		return map[string]any{"type": kind, "endpoints": []any{
			map[string]any{"interface": "public", "region": "R", "url": "http://public/" + kind},
			map[string]any{"interface": "internal", "region": "R", "url": "http://internal/" + kind},
		}}
	}
	s.catalog = []any{endpoints("compute"), endpoints("network"), endpoints("image")}
	tests := map[string]struct {
		change func(*Config)
		want   map[service]string
		says   string
	}{
		"public by default": {change: func(*Config) {}, want: map[service]string{compute: "http://public/compute/v2.1/", network: "http://public/network/v2.0/", image: "http://public/image/v2/"}},
		"internal": {
			change: func(c *Config) { c.Interface = InterfaceInternal },
			want:   map[service]string{compute: "http://internal/compute/v2.1/", network: "http://internal/network/v2.0/", image: "http://internal/image/v2/"},
		},
		"an interface that the catalog lacks": {change: func(c *Config) { c.Interface = InterfaceAdmin }, says: "no admin endpoint of a compute service"},
		"all services at other URLs": {
			change: func(c *Config) {
				c.Interface, c.Endpoints = InterfaceAdmin, Endpoints{Compute: "http://a:1", Network: "http://b/v2.0/", Image: "http://c/image"}
			},
			want: map[service]string{compute: "http://a:1/v2.1/", network: "http://b/v2.0/", image: "http://c/image/v2/"},
		},
		"one service at another URL": {
			change: func(c *Config) { c.Endpoints.Network = "http://b" },
			want:   map[service]string{compute: "http://public/compute/v2.1/", network: "http://b/v2.0/", image: "http://public/image/v2/"},
		},
		"a URL that is none": {change: func(c *Config) { c.Endpoints.Image = "::" }, says: "spec.openstack.endpoints or clouds.yaml has no usable URL of the image service"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := s.client(tc.change).session.auth.services.locate("test", catalogOf(t, s.catalog))
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Detail, tc.says) {
					t.Errorf("%v, want %q", err, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatalf("locate: %v", err)
			}
			delete(got, identity)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("services (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGivenEndpointsThatCannotBeUsedAreMisconfigured(t *testing.T) {
	s := newStub(t)
	for url, says := range map[string]string{
		"http://compute.example.com": "has an http URL of the compute service", "https://c/v2.1/%(project_id)s": "has no usable URL", "https://127.0.0.1": "loopback",
	} {
		c := s.client(func(c *Config) { c.Endpoints.Compute = url })
		c.session.auth.services.encrypted, c.session.auth.services.host = true, "keystone.example.com"
		if _, err := c.session.auth.services.locate("test", nil); err == nil || err.Kind != cloud.Misconfigured || !strings.Contains(err.Detail, says) {
			t.Errorf("%s: %v, want a refusal with %q", url, err, says)
		}
	}
}

func TestFileIsForTheEndpointOfTheSpec(t *testing.T) {
	for url, says := range map[string]string{
		"": "", "https://K/v3/": "", "https://k": "", "https://k:443/v3": "",
		"https://elsewhere-hidden/v3": "clouds.yaml: auth.auth_url is not spec.endpoint, which is https://k/v3",
		"http://k/v3":                 "clouds.yaml: auth.auth_url is not spec.endpoint",
		"https://k:5000/v3":           "clouds.yaml: auth.auth_url is not spec.endpoint",
		"https://k/identity":          "clouds.yaml: auth.auth_url is not spec.endpoint",
		"https://u:hidden@k/v3":       "clouds.yaml: auth.auth_url: holds credentials",
	} {
		_, err := New(Config{Endpoint: "https://k/v3", AuthURL: url, Project: "p", Credentials: Credentials{Username: "u", Password: "p"}})
		if (says == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hidden")) {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
}
