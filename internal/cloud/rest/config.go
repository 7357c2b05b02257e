package rest

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// Defaults for what Config leaves zero.
const (
	DefaultTimeout           = 30 * time.Second
	DefaultRequestsPerSecond = 20
	DefaultBurst             = 40
	DefaultMaxInFlight       = 16
)

// Config says how to reach one cloud.
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
	// Timeout bounds one call with all its tries, DefaultTimeout if zero.
	Timeout time.Duration
	// UniqueNames is what a cloud without GET /capabilities is taken to guarantee.
	UniqueNames bool
	// Version is the operator's, for User-Agent; "dev" if empty.
	Version string
	// Metrics may be nil.
	Metrics *Metrics
	// Log gets one line a request at V(1); the zero Logger is silent.
	Log logr.Logger
}

// Limits bound what one client asks of its cloud. Zero fields have defaults.
type Limits struct {
	// RequestsPerSecond is the sustained rate, more than 0.
	RequestsPerSecond float64
	// Burst is how many requests may exceed the rate at once, at least 1.
	Burst int
	// MaxInFlight is how many requests may be under way, 1-1000.
	MaxInFlight int
}

func (l Limits) withDefaults() (Limits, error) {
	if l.RequestsPerSecond < 0 || l.Burst < 0 || l.MaxInFlight < 0 || l.MaxInFlight > 1000 {
		return l, errors.New("limits: requestsPerSecond and burst must be positive, maxInFlight 1 to 1000")
	}
	if l.RequestsPerSecond == 0 {
		l.RequestsPerSecond = DefaultRequestsPerSecond
	}
	if l.Burst == 0 {
		l.Burst = DefaultBurst
	}
	if l.MaxInFlight == 0 {
		l.MaxInFlight = DefaultMaxInFlight
	}
	return l, nil
}

func (c Config) withDefaults() (Config, error) {
	var err error
	if c.Limits, err = c.Limits.withDefaults(); err != nil {
		return c, err
	}
	if c.Timeout < 0 {
		return c, errors.New("timeout: must be positive")
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Log.GetSink() == nil {
		c.Log = logr.Discard()
	}
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

// parseCA returns what alone is trusted; pem is not empty.
func parseCA(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca: holds no PEM certificate; put the cloud's CA under ca.crt in the Secret, beginning with -----BEGIN CERTIFICATE-----")
	}
	return pool, nil
}
