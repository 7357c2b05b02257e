package vsphere

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Config describes how to reach one vCenter, and which part of its inventory is used.
type Config struct {
	// Name is the Cloud's name; it labels metrics and logs.
	Name string
	// Endpoint is http(s)://host[:port][/path]; /sdk is the path of one without.
	Endpoint    string
	Credentials Credentials
	// CA is PEM. Where set, it alone is trusted; else the system's roots are.
	CA []byte
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
	Limits             transport.Limits
	// Timeout bounds one call with all its requests, transport.DefaultTimeout if zero.
	Timeout time.Duration
	Place   Place
	// Version is the operator's, for User-Agent; "dev" if empty.
	Version string
	// Holds keeps Retry-After and refused credentials beyond this client; may be nil.
	Holds *transport.Holds
	// Metrics may be nil.
	Metrics *transport.Metrics
	// Tracer makes the spans of requests; nil for none.
	Tracer trace.Tracer
	// Log gets one line a request at V(1), and one for each task that failed; the zero
	// Logger is silent.
	Log logr.Logger
}

// Place is the part of the inventory that a client uses. Names may be inventory paths.
// What is empty is what the vCenter has only one of.
type Place struct {
	Datacenter string
	// Folder has all VMs. It is required, and below the datacenter's VM folder.
	Folder       string
	ResourcePool string
	Datastore    string
	// TemplateFolder is Folder if empty. DefaultTemplate may be empty.
	TemplateFolder, DefaultTemplate string
	// LinkedClones is whether VMs share the disks of their template's snapshot.
	LinkedClones bool
	// Network is what the first adapter is connected to; that of the template if empty.
	Network string
	// Zones are what servers can be created in by name. Names and pools differ.
	Zones []Zone
}

// Zone is a resource pool under a name. An empty Datastore is that of the Place.
type Zone struct{ Name, ResourcePool, Datastore string }

func (c Config) withDefaults() (Config, error) {
	if c.Timeout < 0 {
		return c, errors.New("timeout: must be positive")
	}
	c.Timeout = cmp.Or(c.Timeout, transport.DefaultTimeout)
	c.Version = cmp.Or(c.Version, "dev")
	if c.Place.Folder == "" {
		return c, errors.New("folder: is empty; give the VM folder that belongs to the operator")
	}
	var err error
	c.Credentials, err = c.Credentials.cleaned()
	return c, err
}

// parseEndpoint returns the URL of the SOAP API. Its errors never quote the text,
// which may hold credentials.
func parseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case text == "" || err != nil:
		return nil, errors.New("endpoint: is not a URL; give it as https://host[:port]/sdk")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("endpoint: must begin with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("endpoint: names no host; give it as https://host[:port]/sdk")
	case u.User != nil:
		return nil, errors.New("endpoint: holds credentials; put them in the Secret instead")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("endpoint: must end with the path; leave out what follows ? or #")
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = cmp.Or(strings.TrimRight(u.Path, "/"), "/sdk")
	return u, nil
}

// agent returns the User-Agent of an operator.
func agent(version string) string { return fmt.Sprintf("private-cloud-operator/%s", version) }
