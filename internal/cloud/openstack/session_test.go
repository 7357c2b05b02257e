package openstack

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

func TestOneLoginServesAllCalls(t *testing.T) {
	s := newStub(t)
	s.on("GET compute/servers/"+someID, oneServer())
	c := s.client()
	const calls = 20
	all := func(want int) {
		t.Helper()
		var group sync.WaitGroup
		for range calls {
			group.Go(func() {
				if _, err := c.GetServer(t.Context(), someID); err != nil {
					t.Errorf("GetServer: %v", err)
				}
			})
		}
		group.Wait()
		if s.logins != want {
			t.Errorf("%d logins, want %d", s.logins, want)
		}
	}
	all(1)
	s.mu.Lock()
	s.token = "another" // the token is not accepted any more
	s.mu.Unlock()
	all(2)
}

func TestTokenIsRenewedBeforeItExpires(t *testing.T) {
	s := newStub(t)
	s.expires = time.Now().Add(2 * time.Second)
	s.on("GET compute/servers/"+someID, oneServer())
	c := s.client()
	if _, err := c.GetServer(t.Context(), someID); err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	c.session.auth.current.renewAt = time.Now()
	if _, err := c.GetServer(t.Context(), someID); err != nil || s.logins != 2 {
		t.Errorf("%v after %d logins, want 2", err, s.logins)
	}
}

func TestRefusedCredentialsAreNotTriedAgainAtOnce(t *testing.T) {
	for _, status := range []int{401, 404} { // 404 is the answer to an unknown application credential
		s := newStub(t)
		s.refuse = status
		holds := transport.NewHolds()
		for range 3 {
			c := s.client(func(c *Config) { c.Holds = holds })
			_, err := c.Capabilities(t.Context())
			if !cloud.Is(err, cloud.Unauthorized) || strings.Contains(err.Error(), passphrase) || !strings.Contains(err.Error(), "check username and password") {
				t.Errorf("%v, want Unauthorized, what to do, and no password", err)
			}
		}
		if s.logins != 1 {
			t.Errorf("%d: %d logins, want one", status, s.logins)
		}
	}
}

func TestLoginThatCannotBeUsedSaysWhatToDo(t *testing.T) {
	tests := map[string]struct {
		prepare func(*stub)
		change  func(*Config)
		kind    cloud.Kind
		says    string
	}{
		"no compute service": {
			prepare: func(s *stub) {
				s.catalog = []any{service1("network", "R", s.URL+"/network/"), service1("image", "R", s.URL+"/image/")}
			},
			kind: cloud.Unavailable, says: "no public endpoint of a compute service",
		},
		"no network service": {
			prepare: func(s *stub) {
				s.catalog = []any{service1("compute", "R", s.URL+"/compute/v2.1"), service1("image", "R", s.URL+"/image/")}
			},
			kind: cloud.Unavailable, says: "no public endpoint of a network service",
		},
		"several regions": {
			prepare: func(s *stub) {
				s.catalog = []any{service1("compute", "R", s.URL+"/compute/v2.1"), service1("compute", "Q", s.URL+"/compute/v2.1")}
			},
			kind: cloud.Misconfigured, says: "several regions: set spec.openstack.region to one of Q, R",
		},
		"another region": {
			change: func(c *Config) { c.Region = "Elsewhere" },
			kind:   cloud.Misconfigured, says: `no compute service in region "Elsewhere", but in RegionOne: correct spec.openstack.region`,
		},
		"an old compute service": {
			prepare: func(s *stub) { s.versions = [2]string{"2.1", "2.42"} },
			kind:    cloud.Unavailable, says: `versions "2.1" to "2.42": the operator needs microversion 2.52`,
		},
		"a compute service without microversions": {
			prepare: func(s *stub) { s.versions = [2]string{"", ""} },
			kind:    cloud.Unavailable, says: "the operator needs microversion 2.52",
		},
		"the credentials are for another project": {
			change: func(c *Config) { c.Project = "other" },
			kind:   cloud.Misconfigured, says: `spec.openstack.project is "other": change one of them`,
		},
		"a catalog with a URL that is none": {
			prepare: func(s *stub) { s.catalog = []any{service1("compute", "R", "::")} },
			kind:    cloud.Unavailable, says: "no usable URL of the compute service",
		},
		"a default image that does not exist": {
			prepare: func(s *stub) {
				s.handle("GET image/images", func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if r.URL.Query().Has("name") {
						_, _ = io.WriteString(w, `{"images": []}`)
						return
					}
					_, _ = io.WriteString(w, `{"images": [{"id": "a", "name": "fedora", "visibility": "public"}, {"id": "b", "name": "arch", "owner": "`+projectID+`"},
						{"id": "d", "name": "arch", "visibility": "public"}, {"id": "e", "name": "shared-secret", "visibility": "shared", "owner": "another"},
						{"id": "c", "name": "a-secret-0123456789ab", "owner": "`+projectID+`", "privatecloud:snapshot": "a-secret-0123456789ab"}]}`)
				})
			},
			kind: cloud.Misconfigured, says: `spec.openstack.images.default: no image that can be used is named "debian"; there are: arch, fedora`,
		},
		"two default images of other projects": {
			prepare: func(s *stub) {
				s.on("GET image/images", `{"images": [{"id": "a", "name": "debian", "visibility": "shared", "owner": "another"}, {"id": "b", "name": "debian", "visibility": "shared", "owner": "third"}]}`)
			},
			kind: cloud.Misconfigured, says: `spec.openstack.images.default: image "debian" belongs to another project, which could give its name to another image: use its id`,
		},
		"a key pair that does not exist": {
			prepare: func(s *stub) { s.on("GET compute/os-keypairs/ops", novaNotFound, http.StatusNotFound) },
			change:  func(c *Config) { c.KeyPair = "ops" },
			kind:    cloud.Misconfigured, says: `spec.openstack.keyPair: the operator's account has no key pair "ops": create it with this account`,
		},
		"a default flavor that does not exist": {
			change: func(c *Config) { c.Flavor = "huge" },
			kind:   cloud.Misconfigured, says: `no flavor is named "huge", which is spec.openstack.flavors.default of the Cloud; there are: large (4 CPUs, 8192 MiB), small (1 CPUs, 1024 MiB)`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET compute/servers", `{"servers": []}`)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			change := tc.change
			if change == nil {
				change = func(*Config) {}
			}
			_, err := s.client(change).Capabilities(t.Context())
			if cloud.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want %s with %q", err, tc.kind, tc.says)
			}
		})
	}
}

func TestMicroversionIsTheBestThatBothHave(t *testing.T) {
	for most, want := range map[string]string{"2.52": "2.52", "2.84": "2.84", "2.85": "2.85", "2.95": "2.85"} {
		s := newStub(t)
		s.versions[1] = most
		got, err := s.client().session.auth.grant(t.Context(), "test", nil)
		if err != nil || got.microversion != want {
			t.Errorf("a service up to %s: %v, %v, want %s", most, got, err, want)
		}
	}
}

func TestTokenIsNotSentOverHTTPUnlessAllowed(t *testing.T) {
	s := newStub(t)
	c := s.client()
	c.session.auth.services.encrypted = true
	if _, err := c.GetServer(t.Context(), someID); !cloud.Is(err, cloud.Unavailable) || !strings.Contains(err.Error(), "http URL") || len(s.taken()) != 0 {
		t.Errorf("%v, want a refusal of the http URL, and nothing sent", err)
	}
	s.on("GET compute/servers/"+someID, oneServer())
	c = s.client(func(c *Config) { c.AllowHTTP = true })
	c.session.auth.services.encrypted = true
	if _, err := c.GetServer(t.Context(), someID); err != nil {
		t.Errorf("GetServer: %v", err)
	}
}

func TestTokenIsSentToLocalServicesOfALocalEndpointOnly(t *testing.T) {
	tests := map[string]bool{
		"compute.example.com": false, "nova.other-domain.example": false, "localhost.example.com": false, "192.0.2.7": false, "10.0.0.7": false, "[fd00::7]": false, "host-7": false, "7.example": false,
		"localhost": true, "LOCALHOST.": true, "nova.localhost": true, "127.0.0.1": true, "127.8.8.8": true, "[::1]": true, "[::ffff:127.0.0.1]": true,
		"169.254.169.254": true, "[fe80::1]": true, "[::ffff:169.254.169.254]": true, "0.0.0.0": true, "0.0.0.1": true, "[::]": true,
		"127.1": true, "2130706433": true, "0x7f000001": true, "0x7f.1": true, "127.0.0.1.": true,
	}
	for host, local := range tests {
		s := newStub(t)
		s.catalog = []any{service1("compute", "R", "https://"+host+":8774/v2.1"), service1("network", "R", "https://n:9696/"), service1("image", "R", "https://i/image")}
		for endpoint, accepted := range map[string]bool{"keystone.example.com": !local, "127.0.0.1": true, "localhost": true} {
			c := s.client()
			c.session.auth.services.host = endpoint
			opened, err := c.session.auth.services.locate("test", catalogOf(t, s.catalog))
			switch {
			case accepted && (err != nil || opened[compute] == ""):
				t.Errorf("%s, endpoint at %s: %v, want it accepted", host, endpoint, err)
			case !accepted && (err == nil || err.Kind != cloud.Unavailable || !strings.Contains(err.Error(), "loopback or link-local URL of the compute service")):
				t.Errorf("%s, endpoint at %s: %v, want it refused", host, endpoint, err)
			}
		}
	}
}

func TestCloseRevokesTheToken(t *testing.T) {
	s := newStub(t)
	s.on("GET compute/servers/"+someID, oneServer())
	c := s.client()
	if _, err := c.GetServer(t.Context(), someID); err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	c.Close(t.Context())
	c.Close(t.Context())
	if s.token != "" {
		t.Errorf("the token %q is still valid", s.token)
	}
	if _, err := c.GetServer(t.Context(), someID); !cloud.Is(err, cloud.Unavailable) || s.logins != 1 {
		t.Errorf("%v after %d logins, want Unavailable without another", err, s.logins)
	}
}

func TestServicesAreLocatedByVersion(t *testing.T) {
	for base, want := range map[string]string{
		"http://c/v2.1":                   "http://c/v2.1/",
		"http://c/compute/v2.1/":          "http://c/compute/v2.1/",
		"http://c:8774/v2.1/" + projectID: "http://c:8774/v2.1/" + projectID + "/",
		"http://c/compute":                "http://c/compute/v2.1/",
		"http://c":                        "http://c/v2.1/",
	} {
		s := newStub(t)
		s.catalog = []any{service1("compute", "R", base), service1("network", "R", "http://n:9696/"), service1("image", "R", "http://i/image")}
		c := s.client()
		opened, err := c.session.auth.services.locate("test", catalogOf(t, s.catalog))
		if err != nil || opened[compute] != want || opened[network] != "http://n:9696/v2.0/" || opened[image] != "http://i/image/v2/" {
			t.Errorf("%s: %v, %v, want %s", base, opened, err, want)
		}
	}
}

func TestLoginThatWasRefusedLeavesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &auth{login: &transport.NewHolds().Of("test", "http://cloud.test").Login}
		former := &grant{token: "a"}
		s.opened(former, nil)
		s.opened(nil, refuse("log in", cloud.Unauthorized, "no"))
		time.Sleep(transport.RefusalHolds)
		if got, err := s.usable(former); got != nil || err != nil {
			t.Errorf("usable: %v, %v, want a new login", got, err)
		}
	})
}

func TestServiceThatRefusesFreshTokensCausesNoLoginForEachCall(t *testing.T) {
	s := newStub(t)
	s.on("GET network/networks", ``, 401)
	s.on("GET compute/servers/"+someID, oneServer())
	c := s.client()
	refused := func(calls, logins int) {
		t.Helper()
		for range calls {
			if _, err := c.ListNetworks(t.Context()); !cloud.Is(err, cloud.Unauthorized) || !strings.Contains(err.Error(), "has just issued") {
				t.Errorf("ListNetworks: %v, want Unauthorized because of a fresh token", err)
			}
		}
		if s.logins != logins {
			t.Errorf("%d logins, want %d", s.logins, logins)
		}
	}
	refused(5, 2)
	if _, err := c.GetServer(t.Context(), someID); err != nil {
		t.Errorf("GetServer: %v, though compute accepts the token", err)
	}
	s.mu.Lock()
	s.token = "another" // compute refuses the token that it accepted
	s.mu.Unlock()
	c.session.auth.distrustedUntil = time.Now()
	if _, err := c.GetServer(t.Context(), someID); err != nil || s.logins != 3 {
		t.Errorf("%v after %d logins, want another one after the hold", err, s.logins)
	}
	refused(5, 4)
}
