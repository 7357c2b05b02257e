package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestNewRefusesUnusableConfig(t *testing.T) {
	t.Parallel()
	const good = "https://cloud.example"
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"no endpoint":                           {Config{}, "endpoint: is empty; give it as https://host[:port][/base/path]"},
		"no scheme":                             {Config{Endpoint: "cloud.example"}, "endpoint: must begin with https:// or http://"},
		"another scheme":                        {Config{Endpoint: "ftp://cloud.example"}, "endpoint: must begin with https:// or http://"},
		"no host":                               {Config{Endpoint: "https:///v1"}, "endpoint: names no host; give it as https://host[:port][/base/path]"},
		"a port alone":                          {Config{Endpoint: "https://:8443"}, "endpoint: names no host; give it as https://host[:port][/base/path]"},
		"a port out of range":                   {Config{Endpoint: good + ":70000"}, "endpoint: port 70000 is not within 1 to 65535"},
		"not a URL: its password is not quoted": {Config{Endpoint: "https://u:hunter2@[::1"}, "endpoint: is not a URL; give it as https://host[:port][/base/path]"},
		"credentials in it":                     {Config{Endpoint: "https://u:hunter2@cloud.example"}, "endpoint: holds credentials; put them in the Secret instead"},
		"a query":                               {Config{Endpoint: good + "/v1?x=y"}, "endpoint: must end with the path; leave out what follows ? or #"},
		"a path with .. segments":               {Config{Endpoint: good + "/v1/%2e%2e/admin"}, "endpoint: the path must not hold . or .. segments"},
		"a CA that is not PEM":                  {Config{Endpoint: good, CA: []byte("x")}, "ca: holds no PEM certificate; put the cloud's CA under ca.crt in the Secret, beginning with -----BEGIN CERTIFICATE-----"},
		"two kinds of credentials":              {Config{Endpoint: good, Credentials: Credentials{Token: "t", Username: "u", Password: "p"}}, "credentials: hold both a token and a username or password; keep one of the two in the Secret"},
		"a username alone":                      {Config{Endpoint: good, Credentials: Credentials{Username: "u"}}, "credentials: need both username and password in the Secret"},
		"a token of two lines":                  {Config{Endpoint: good, Credentials: Credentials{Token: "a\nX-Evil: b"}}, "credentials: the token holds spaces, line breaks or characters other than ASCII; check the key token of the Secret"},
		"a negative rate":                       {Config{Endpoint: good, Limits: Limits{RequestsPerSecond: -1}}, "limits: requestsPerSecond and burst must be positive, maxInFlight 1 to 1000"},
		"a negative timeout":                    {Config{Endpoint: good, Timeout: -1}, "timeout: must be positive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(test.cfg)
			wantText(t, err, test.want)
		})
	}
}

func TestEndpointKeepsItsBasePath(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ endpoint, want string }{
		"capitals: the host is lower case":       {"https://Cloud.Example", "https://cloud.example"},
		"slash at the end: removed":              {"https://cloud.example/", "https://cloud.example"},
		"port and path with an escape: kept":     {"https://cloud.example:8443/a%2Fb/", "https://cloud.example:8443/a%2Fb"},
		"IPv6 address with its usual port: kept": {"http://[::1]:80/v1", "http://[::1]:80/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, newClient(t, test.endpoint).exchange.endpoint); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.endpoint, diff)
			}
		})
	}
}

// `kubectl create secret --from-file` and echo leave a line end in a Secret.
func TestCredentialsLoseLineEnds(t *testing.T) {
	t.Parallel()
	got, err := Credentials{Username: "user\n", Password: " pass \r\n"}.cleaned()
	if err != nil {
		t.Fatal(err)
	}
	type plain Credentials
	if diff := cmp.Diff(plain{Username: "user", Password: " pass "}, plain(got)); diff != "" {
		t.Errorf("cleaned (-want +got):\n%s", diff)
	}
}

func TestCredentialsShowNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, c := range map[string]Credentials{
		"token": {Token: secret}, "username and password": {Username: "u-" + secret, Password: secret},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			encoded, err := json.Marshal(map[string]any{"c": c, "p": &c})
			if err != nil {
				t.Fatal(err)
			}
			var logged strings.Builder
			log := funcr.New(func(prefix, args string) { logged.WriteString(prefix + args) }, funcr.Options{})
			log.Info("x", "value", c, "pointer", &c, "inside", Config{Credentials: c})
			shown := []string{
				string(encoded), logged.String(), c.String(), c.GoString(), fmt.Sprint(c, &c), errors.New(c.String()).Error(),
				fmt.Sprintf("%v %+v %#v %s %q %d %x", c, c, c, c, c, c, c), fmt.Sprintf("%v %+v %#v", Config{Credentials: c}, &Config{Credentials: c}, Config{Credentials: c}),
			}
			for _, text := range shown {
				if strings.Contains(text, secret) {
					t.Errorf("a secret shows in %q", text)
				}
			}
		})
	}
}
