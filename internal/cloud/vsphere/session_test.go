package vsphere_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/vmware/govmomi/sts/simulator" // adds the single sign-on to the simulator

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

func TestEndedSessionIsOpenedOnceForAllCalls(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "steady"})
	for range 3 {
		before := v.Front.Sent("Login")
		if err := v.EndSessions(t.Context()); err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for range 16 {
			calls.Go(func() {
				if _, err := c.GetServer(t.Context(), created.ID); err != nil {
					t.Errorf("GetServer: %v", err)
				}
			})
		}
		calls.Wait()
		if logins := v.Front.Sent("Login") - before; logins != 1 {
			t.Errorf("%d logins for 16 calls after the session ended, want 1", logins)
		}
	}
}

func TestSessionThatEndsAgainBeforeTheAnswerIsOpenedAgain(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "steady"})
	for name, call := range map[string]func() error{
		"ListServers": func() error {
			_, err := c.ListServers(t.Context(), cloud.ListServers{})
			return err
		},
		"GetServer": func() error {
			_, err := c.GetServer(t.Context(), created.ID)
			return err
		},
	} {
		before, ends := v.Front.Sent("Login"), 2
		restore := v.Front.Answer(func(method string) (int, string) {
			if ends > 0 && (method == "RetrievePropertiesEx" || method == "FindAllByUuid") {
				ends--
				if err := v.EndSessions(t.Context()); err != nil {
					t.Error(err)
				}
			}
			return 0, ""
		})
		err := call()
		restore()
		if logins := v.Front.Sent("Login") - before; err != nil || logins != 2 {
			t.Errorf("%s: %v after %d logins, want it answered after 2", name, err, logins)
		}
	}
}

func TestWatchWhoseSessionEndsLeavesNoSession(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "steady"})
	w := watchServers(t, c)
	before := v.Front.Sent("Login")
	var once sync.Once
	restore := v.Front.Answer(func(method string) (int, string) {
		switch method {
		case "RetrievePropertiesEx":
			once.Do(func() {
				if err := v.EndSessions(t.Context()); err != nil {
					t.Error(err)
				}
			})
		case "Login": // the context of the watch is canceled meanwhile
			select {
			case <-time.After(200 * time.Millisecond):
			case <-t.Context().Done():
			}
		}
		return 0, ""
	})
	v.set(t, "steady", "summary.overallStatus", "yellow")
	select {
	case err := <-w.ended:
		wantError(t, err, cloud.Unavailable, "the session has ended")
	case <-time.After(patience):
		t.Fatal("the watch did not end with its session")
	}
	restore()
	if _, err := c.GetServer(t.Context(), created.ID); err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	if logins := v.Front.Sent("Login") - before; logins != 1 {
		t.Errorf("%d logins after the session ended, want 1: the others left sessions", logins)
	}
}

func TestNoCallTakesAnEndedSessionForAnEmptyVCenter(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "steady"})
	for name, call := range map[string]func() error{
		"Capabilities": func() error {
			_, err := c.Capabilities(t.Context())
			return err
		},
		"ListServers": func() error {
			page, err := c.ListServers(t.Context(), cloud.ListServers{})
			if len(page.Servers) != 1 {
				t.Errorf("ListServers: %d servers, want 1", len(page.Servers))
			}
			return err
		},
		"ListHosts": func() error {
			found, err := c.ListHosts(t.Context())
			if len(found) != 3 {
				t.Errorf("ListHosts: %d hosts, want 3", len(found))
			}
			return err
		},
		"ListNetworks": func() error {
			found, err := c.ListNetworks(t.Context())
			if len(found) != 2 {
				t.Errorf("ListNetworks: %d networks, want 2", len(found))
			}
			return err
		},
		"GetNetwork": func() error {
			_, err := c.GetNetwork(t.Context(), v.PortGroups()["VM Network"])
			return err
		},
		"GetServer": func() error {
			_, err := c.GetServer(t.Context(), created.ID)
			return err
		},
		"CreateServer, which reads the templates again": func() error {
			_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "steady-2", Template: "unknown"})
			if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), `there is "small"`) {
				return fmt.Errorf("%w, want the templates that there are", err)
			}
			return nil
		},
		"GetOperation": func() error {
			result, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetCPU(4)})
			if err != nil {
				return err
			}
			if err := v.EndSessions(t.Context()); err != nil {
				return err
			}
			_, err = c.GetOperation(t.Context(), result.Operation)
			return err
		},
	} {
		if err := v.EndSessions(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := call(); err != nil {
			t.Errorf("%s after the session ended: %v", name, err)
		}
	}
}

func TestListingWhoseTokenIsLostIsBegunAnew(t *testing.T) {
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	for i := range 3 {
		create(t, c, cloud.CreateServer{Name: fmt.Sprintf("vm-%d", i)})
	}
	page, err := c.ListServers(t.Context(), cloud.ListServers{Limit: 2})
	if err != nil {
		t.Fatalf("ListServers: %v", err)
	}
	restore := v.Front.Answer(func(method string) (int, string) {
		if method == "ContinueRetrievePropertiesEx" {
			return vcsim.Fault("InvalidArgument")
		}
		return 0, ""
	})
	_, err = c.ListServers(t.Context(), cloud.ListServers{Limit: 2, Marker: page.Next})
	restore()
	wantError(t, err, cloud.Unavailable, "it is begun again")
	if got := len(list(t, c)); got != 3 {
		t.Errorf("%d servers, want 3", got)
	}
}

func TestRefusedPasswordIsNotTriedByTheNextClient(t *testing.T) {
	v := newVCenter(t)
	v.Front.Answer(func(method string) (int, string) {
		if method == "Login" {
			return vcsim.Fault("InvalidLogin")
		}
		return 0, ""
	})
	holds := transport.NewHolds()
	for range 3 {
		c := v.client(t, func(cfg *vsphere.Config) { cfg.Holds = holds })
		_, err := c.Capabilities(t.Context())
		wantError(t, err, cloud.Unauthorized, "logging in: the vCenter refuses the credentials (InvalidLogin)", "check the Secret")
	}
	if logins := v.Front.Sent("Login"); logins != 1 {
		t.Errorf("logged in %d times with three clients, want once", logins)
	}
	holds.Forget("vcsim")
	c := v.client(t, func(cfg *vsphere.Config) { cfg.Holds = holds })
	if _, err := c.Capabilities(t.Context()); !cloud.Is(err, cloud.Unauthorized) || v.Front.Sent("Login") != 2 {
		t.Errorf("%v, %d logins after the Cloud was forgotten, want 2", err, v.Front.Sent("Login"))
	}
}

func TestCloseEndsTheSession(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Fatalf("Capabilities: %v", err)
	}
	c.Close(t.Context())
	c.Close(t.Context())
	if got := v.Front.Sent("Logout"); got != 1 {
		t.Errorf("logged out %d times, want once", got)
	}
	before := v.Front.Sent("")
	_, err := c.ListServers(t.Context(), cloud.ListServers{})
	wantError(t, err, cloud.Unavailable, "the client is closed")
	if got := v.Front.Sent(""); got != before {
		t.Errorf("a closed client sent %d requests", got-before)
	}
}

func TestTokenOpensASession(t *testing.T) {
	v := newVCenter(t)
	token := `<saml2:Assertion xmlns:saml2="urn:oasis:names:tc:SAML:2.0:assertion"><saml2:Subject><saml2:NameID>operator</saml2:NameID></saml2:Subject></saml2:Assertion>`
	c := v.client(t, func(cfg *vsphere.Config) { cfg.Credentials = vsphere.Credentials{Token: token} })
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Errorf("Capabilities: %v", err)
	}
	if v.Front.Sent("LoginByToken") != 1 || v.Front.Sent("Login") != 0 {
		t.Errorf("%d logins by token, %d by password", v.Front.Sent("LoginByToken"), v.Front.Sent("Login"))
	}
}

func TestCertificateOpensASession(t *testing.T) {
	v := newVCenter(t)
	certificate, key := selfSigned(t)
	c := v.client(t, func(cfg *vsphere.Config) {
		cfg.Credentials = vsphere.Credentials{Certificate: certificate, Key: key}
	})
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Errorf("Capabilities: %v", err)
	}
	if v.Front.Sent("RequestSecurityToken") != 2 || v.Front.Sent("LoginByToken") != 1 {
		t.Errorf("%d tokens were asked for, %d logins by token, want 2, of which one on another path, and 1", v.Front.Sent("RequestSecurityToken"), v.Front.Sent("LoginByToken"))
	}
}

// selfSigned returns a certificate and its key in PEM.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
}

func TestCredentialsShowNoSecret(t *testing.T) {
	for _, c := range []vsphere.Credentials{{Username: "u", Password: "hunter2"}, {Token: "<hunter2/>"}, {Certificate: []byte("hunter2"), Key: []byte("hunter2")}} {
		if text := fmt.Sprintf("%v %+v %#v %s %d", c, c, c, c, c); strings.Contains(text, "hunter2") {
			t.Errorf("a secret shows in %q", text)
		}
	}
}
