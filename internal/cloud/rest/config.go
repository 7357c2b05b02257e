package rest

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Config describes how to reach one cloud.
type Config struct {
	// Name is the Cloud's name; it labels metrics and logs.
	Name string
	// Endpoint is http(s)://host[:port][/base/path].
	Endpoint string
	// Credentials are a token, or a username and password; none if zero.
	Credentials Credentials
	// CA is PEM. Where set, it alone is trusted; else the system's roots are.
	CA []byte
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
	Limits             Limits
	// Timeout bounds one call with all its tries, transport.DefaultTimeout if zero.
	Timeout time.Duration
	// UniqueNames is the guarantee of a cloud that has no GET /capabilities to ask.
	UniqueNames bool
	// ExclusiveNames states that nobody else creates servers with the names that VMs
	// of this cluster use.
	ExclusiveNames bool
	// Declared is whether Capabilities are those of the cloud, which then is not
	// asked for them. None are those of the core profile.
	Declared     bool
	Capabilities []cloud.Capability
	// Version is the operator's, for User-Agent; "dev" if empty.
	Version string
	// Holds keeps Retry-After and refused passwords beyond this client; may be nil.
	Holds *transport.Holds
	// Metrics may be nil.
	Metrics *transport.Metrics
	// Tracer makes the spans of requests; nil for none.
	Tracer trace.Tracer
	// Log gets one line a request at V(1), and one for each that failed; the zero
	// Logger is silent.
	Log logr.Logger
}

// Limits bound what one client asks of its cloud. Zero fields have defaults.
type Limits = transport.Limits

func (c Config) withDefaults() (Config, error) {
	if c.Timeout < 0 {
		return c, errors.New("timeout: must be positive")
	}
	if c.Timeout == 0 {
		c.Timeout = transport.DefaultTimeout
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	var err error
	c.Credentials, err = c.Credentials.cleaned()
	return c, err
}

// parseEndpoint returns the endpoint without a trailing slash. Its errors never
// quote the text, which may hold credentials.
func parseEndpoint(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("endpoint: is empty; give it as https://host[:port][/base/path]")
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("endpoint: is not a URL; give it as https://host[:port][/base/path]")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("endpoint: must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("endpoint: names no host; give it as https://host[:port][/base/path]")
	case u.User != nil:
		return nil, errors.New("endpoint: holds credentials; put them in the Secret instead")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("endpoint: must end with the path; leave out what follows ? or #")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("endpoint: port %s is not within 1 to 65535", port)
		}
	}
	segments := strings.Split(u.Path, "/")
	if slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return nil, errors.New("endpoint: the path must not hold . or .. segments")
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}
