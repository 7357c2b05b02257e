package transport

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestNewRefusesUnusableConfig(t *testing.T) {
	t.Parallel()
	const limits = "limits: requestsPerSecond and burst must be positive, maxInFlight 1 to 1000"
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"negative rate":               {Config{Limits: Limits{RequestsPerSecond: -1}}, limits},
		"negative burst":              {Config{Limits: Limits{Burst: -1}}, limits},
		"too many requests in flight": {Config{Limits: Limits{MaxInFlight: 1001}}, limits},
		"a CA that is not PEM":        {Config{CA: []byte("x")}, "ca: holds no PEM certificate; put the cloud's CA under ca.crt in the Secret, beginning with -----BEGIN CERTIFICATE-----"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(test.cfg)
			if err == nil || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

func TestLimitsHaveDefaults(t *testing.T) {
	t.Parallel()
	got, err := Limits{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBaseTrustsTheGivenCAOnly(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(ok))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, test := range map[string]struct {
		change func(*Config)
		want   cloud.Kind
	}{
		"its CA: trusted":                      {func(cfg *Config) { cfg.CA = ca }, ""},
		"no CA: not trusted":                   {func(*Config) {}, cloud.Untrusted},
		"no CA, but no verification: accepted": {func(cfg *Config) { cfg.InsecureSkipVerify = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTransport(t, nil, func(cfg *Config) { cfg.Base = nil }, test.change)
			t.Cleanup(c.CloseIdleConnections)
			_, _, err := fetch(t.Context(), c.Client(), http.MethodGet, server.URL)
			var got cloud.Kind
			if err != nil {
				got = c.Classify(t.Context(), err).Kind
			}
			if got != test.want {
				t.Errorf("%v of kind %q, want %q", err, got, test.want)
			}
		})
	}
}

type idleCloser struct {
	http.RoundTripper
	closed int
}

func (c *idleCloser) CloseIdleConnections() { c.closed++ }

func TestCloseIdleConnectionsReachesBase(t *testing.T) {
	t.Parallel()
	base := &idleCloser{}
	c := newTransport(t, nil, func(cfg *Config) { cfg.Base = base })
	c.CloseIdleConnections()
	c.Client().CloseIdleConnections()
	if base.closed != 2 {
		t.Errorf("closed %d times, want by the transport and by its client", base.closed)
	}
}
