package openstack

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// The values of Config.Network that name no network.
const (
	noNetwork   = "none"
	autoNetwork = "auto"
)

// Config describes one project in one region of an OpenStack.
type Config struct {
	// Name is the Cloud's name; it labels metrics and logs.
	Name string
	// Endpoint is the URL of the identity service; /v3 is added where it is missing.
	Endpoint    string
	Credentials Credentials
	// Project and Domain are the scope of username and password. With an application
	// credential, a Project is compared with that of the credential.
	Project, Domain string
	// Region selects the services; empty for those of any region.
	Region string
	// CA is PEM. Where set, it alone is trusted; else the system's roots are.
	CA []byte
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
	// AllowHTTP allows services that are reached over http.
	AllowHTTP bool
	Limits    transport.Limits
	// Timeout bounds one call with all its requests, transport.DefaultTimeout if zero.
	Timeout time.Duration
	// Image and Flavor are those of servers without a template or a size; may be
	// empty.
	Image, Flavor string
	// AtLeast takes the smallest flavor that has a size or more, where otherwise only a
	// flavor of exactly the size fits.
	AtLeast bool
	// Network is that of servers without one: none, auto, or a name or id; none if
	// empty.
	Network string
	// Zone is the availability zone of new servers; empty leaves it to the cloud.
	Zone string
	// TagLabel is the key of the label whose value becomes a tag of a new server, by
	// which listings can be filtered; empty for none.
	TagLabel string
	// Version is the operator's, for User-Agent; "dev" if empty.
	Version string
	// Holds keeps Retry-After and refused credentials beyond this client; may be nil.
	Holds *transport.Holds
	// Metrics may be nil.
	Metrics *transport.Metrics
	// Tracer makes the spans of requests; nil for none.
	Tracer trace.Tracer
	// Log gets one line a request at V(1); the zero Logger is silent.
	Log logr.Logger
	// Base sends the requests; nil for connections of the client's own.
	Base http.RoundTripper
}

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
	if c.Network == "" {
		c.Network = noNetwork
	}
	if c.Domain == "" {
		c.Domain = "Default"
	}
	var err error
	if c.Credentials, err = c.Credentials.cleaned(); err != nil {
		return c, fmt.Errorf("the Secret: %w", err)
	}
	if c.Credentials.Username != "" && c.Project == "" {
		return c, errors.New("openstack.project: is empty; username and password need the name of a project")
	}
	return c, nil
}

// Credentials are an application credential, or a username and a password. They show
// no secret however they are printed, logged or encoded.
type Credentials struct {
	ApplicationCredentialID     string
	ApplicationCredentialSecret string
	Username                    string
	Password                    string
}

// String returns what kind of credentials these are.
func (c Credentials) String() string {
	switch {
	case c.ApplicationCredentialID != "":
		return "application credential " + transport.Redacted
	case c.Username != "":
		return "username and password " + transport.Redacted
	default:
		return "none"
	}
}

// GoString is String, for %#v.
func (c Credentials) GoString() string { return c.String() }

// Format covers the verbs that ask neither String nor GoString, such as %d.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// MarshalLog is String, for logr.
func (c Credentials) MarshalLog() any { return c.String() }

// MarshalText is String, for JSON and YAML.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Validate returns why nobody can log in with the credentials; nil if somebody may.
func (c Credentials) Validate() error {
	_, err := c.cleaned()
	return err
}

// cleaned removes the line end that files and `echo` leave in a Secret, and refuses
// credentials that cannot work.
func (c Credentials) cleaned() (Credentials, error) {
	for _, value := range []*string{&c.ApplicationCredentialID, &c.ApplicationCredentialSecret, &c.Username, &c.Password} {
		*value = strings.TrimRight(*value, "\r\n")
	}
	application := c.ApplicationCredentialID != "" || c.ApplicationCredentialSecret != ""
	password := c.Username != "" || c.Password != ""
	switch {
	case application && password:
		return c, errors.New("it holds both an application credential and a username or password; give one of the two")
	case !application && !password:
		return c, errors.New("it holds neither applicationCredentialId and applicationCredentialSecret, nor username and password")
	case application && (c.ApplicationCredentialID == "" || c.ApplicationCredentialSecret == ""):
		return c, errors.New("applicationCredentialId and applicationCredentialSecret go together: one of them is missing")
	case password && (c.Username == "" || c.Password == ""):
		return c, errors.New("username and password go together: one of them is missing")
	}
	return c, nil
}

// advice returns what to check when the credentials are refused.
func (c Credentials) advice() string {
	if c.ApplicationCredentialID != "" {
		return "the cloud refuses the application credential: check applicationCredentialId and applicationCredentialSecret in the Secret"
	}
	return "the cloud refuses the credentials: check username and password in the Secret, and project and domain in spec.openstack"
}

// parseEndpoint returns the URL of the identity service, without a trailing slash. Its
// errors never quote the text, which may hold credentials.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || text == "":
		return nil, errors.New("endpoint: is not a URL; give it as https://host[:port][/path]/v3")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("endpoint: must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("endpoint: names no host; give it as https://host[:port][/path]/v3")
	case u.User != nil:
		return nil, errors.New("endpoint: holds credentials; put them in the Secret instead")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("endpoint: must end with the path; leave out what follows ? or #")
	}
	segments := strings.Split(strings.TrimRight(u.Path, "/"), "/")
	if slices.Contains(segments, ".") || slices.Contains(segments, "..") {
		return nil, errors.New("endpoint: the path must not hold . or .. segments")
	}
	switch segments[len(segments)-1] {
	case "v3":
	case "v2.0":
		return nil, errors.New("endpoint: version 2.0 of the identity service is not supported; give the URL of version 3, which ends with /v3")
	default:
		segments = append(segments, "v3")
	}
	u.Path, u.RawPath = strings.Join(segments, "/"), ""
	u.Host = strings.ToLower(u.Host)
	return u, nil
}
