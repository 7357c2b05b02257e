package openstack

import (
	"cmp"
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
	Endpoint string
	// AuthURL is the URL of the identity service in a clouds.yaml, which must be that of
	// Endpoint; empty if there is none.
	AuthURL     string
	Credentials Credentials
	// Project is the name or id that the project must have; empty for any. A password
	// without a project is for this one.
	Project string
	// Domain is the name of the domain of user and project where the credentials have none;
	// Default if empty.
	Domain string
	// Region selects the services; empty for those of any region.
	Region string
	// Interface selects the endpoints of the catalog; InterfacePublic if empty.
	Interface Interface
	// Endpoints are URLs of services that are used in place of those of the catalog.
	Endpoints Endpoints
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
	// Flavors are patterns of the names of flavors, in which * stands for any characters. Other flavors but the default one
	// are not used; none for all.
	Flavors []string
	// AtLeast takes the smallest flavor that has a size or more, where otherwise only a
	// flavor of exactly the size fits.
	AtLeast bool
	// Network is that of servers without one: none, auto, or a name or id; none if
	// empty.
	Network string
	// SecurityGroups are the names of those of new servers without any; empty leaves them to the cloud.
	SecurityGroups []string
	// AllowedAddresses are the addresses and ranges that servers may be allowed to use beside their own.
	AllowedAddresses []string
	// Zone is the availability zone of new servers; empty leaves it to the cloud.
	Zone string
	// KeyPair is the name of the key pair of new servers with Windows, one of the account; empty for none.
	KeyPair string
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
	if c.Interface == "" {
		c.Interface = InterfacePublic
	}
	var err error
	if c.Credentials, err = c.Credentials.cleaned(); err != nil {
		return c, fmt.Errorf("the Secret: %w", err)
	}
	login := &c.Credentials
	if login.Password != "" && login.Project == (Identifier{}) {
		login.Project.Name = c.Project
	}
	if login.Username != "" && login.UserDomain == (Identifier{}) {
		login.UserDomain.Name = c.Domain
	}
	if login.Password != "" && login.ProjectDomain == (Identifier{}) {
		login.ProjectDomain.Name = c.Domain
	}
	if login.Password != "" && login.Project == (Identifier{}) {
		return c, errors.New("openstack.project: is empty; a user name and a password need a project")
	}
	return c, nil
}

// Interface is a kind of endpoint in the catalog of services.
type Interface string

// The interfaces that a catalog has.
const (
	InterfacePublic   Interface = "public"
	InterfaceInternal Interface = "internal"
	InterfaceAdmin    Interface = "admin"
)

// Endpoints are URLs of services, each empty for that of the catalog.
type Endpoints struct {
	Compute, Network, Image, BlockStorage string
}

// of returns the URL of a service, empty for that of the catalog.
func (e Endpoints) of(kind service) string {
	return map[service]string{compute: e.Compute, network: e.Network, image: e.Image, volume: e.BlockStorage}[kind]
}

// checkAuthURL returns an error if a clouds.yaml is for another identity service than endpoint.
func (c Config) checkAuthURL(endpoint *url.URL) error {
	if c.AuthURL == "" {
		return nil
	}
	other, err := parseEndpoint(c.AuthURL)
	if err != nil {
		return fmt.Errorf("clouds.yaml: auth.auth_url: %s", strings.TrimPrefix(err.Error(), "endpoint: "))
	}
	if other.Scheme != endpoint.Scheme || other.Hostname() != endpoint.Hostname() || portOf(other) != portOf(endpoint) || other.Path != endpoint.Path {
		return fmt.Errorf("clouds.yaml: auth.auth_url is not spec.endpoint, which is %s: change one of them", endpoint)
	}
	return nil
}

// portOf returns the port of a URL, also where it is that of the scheme.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
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
