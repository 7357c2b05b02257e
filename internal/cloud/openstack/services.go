package openstack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/utils"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// service is a kind of service of OpenStack.
type service string

const (
	identity service = "identity"
	compute  service = "compute"
	network  service = "network"
	image    service = "image"
)

// versions are the services that a project needs, with the path of the version that is
// added to a base URL without one.
var versions = map[service]string{compute: "v2.1", network: "v2.0", image: "v2"}

const (
	// leastMicroversion of the compute service has tags in creates.
	leastMicroversion = 52
	// bestMicroversion is used where the compute service has it.
	bestMicroversion = 79
)

// versioned matches a path that ends with a version, or with one and the id of a project.
var versioned = regexp.MustCompile(`/v\d+(\.\d+)?(/[0-9a-zA-Z_-]+)?$`)

// locate returns the base URLs of the services, each with a slash at its end.
func (c *Client) locate(op string, catalog []tokens.CatalogEntry) (map[service]string, *cloud.Error) {
	located := map[service]string{identity: c.endpoint + "/"}
	for _, kind := range []service{compute, network, image} {
		base, regions := find(catalog, kind, c.cfg.Region)
		if c.cfg.Region == "" && len(regions) > 1 {
			return nil, refuse(op, cloud.Misconfigured, "the catalog of services has several regions: set spec.openstack.region to one of %s", regionsText(regions))
		}
		if base == "" {
			return nil, missing(op, kind, c.cfg.Region, regions)
		}
		u, err := url.Parse(base)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.User != nil {
			return nil, refuse(op, cloud.Unavailable, "the catalog of services has no usable URL of the %s service", kind)
		}
		if c.encrypted && u.Scheme == "http" && !c.cfg.AllowHTTP {
			return nil, refuse(op, cloud.Unavailable,
				"the catalog of services has an http URL of the %s service: the token is sent over https only, unless spec.insecureAllowHTTP is true", kind)
		}
		if isLocal(u.Hostname()) && !isLocal(c.host) {
			return nil, refuse(op, cloud.Unavailable,
				"the catalog of services has a loopback or link-local URL of the %s service, and the endpoint is not such: the token is not sent there; correct the endpoint in the catalog", kind)
		}
		path := strings.TrimRight(u.EscapedPath(), "/")
		if !versioned.MatchString(path) {
			path += "/" + versions[kind]
		}
		located[kind] = u.Scheme + "://" + u.Host + path + "/"
	}
	return located, nil
}

// find returns the public URL of a service in a region, empty if there is none, and the
// regions that the service is in.
func find(catalog []tokens.CatalogEntry, kind service, region string) (base string, regions []string) {
	for _, entry := range catalog {
		if entry.Type != string(kind) {
			continue
		}
		for _, endpoint := range entry.Endpoints {
			if endpoint.Interface != "public" {
				continue
			}
			regions = append(regions, endpoint.Region)
			if base == "" && (region == "" || endpoint.Region == region || endpoint.RegionID == region) {
				base = endpoint.URL
			}
		}
	}
	slices.Sort(regions)
	return base, slices.Compact(regions)
}

// missing says that a service is not there, and what to do.
func missing(op string, kind service, region string, regions []string) *cloud.Error {
	if len(regions) == 0 {
		return refuse(op, cloud.Unavailable, "the catalog of services has no public endpoint of a %s service: the operator needs compute, network and image", kind)
	}
	return refuse(op, cloud.Misconfigured, "the catalog of services has no %s service in region %s, but in %s: correct spec.openstack.region",
		kind, quote(region), regionsText(regions))
}

// regionsText lists some regions.
func regionsText(regions []string) string {
	const most = 8
	if len(regions) > most {
		regions = append(regions[:most:most], "…")
	}
	return transport.Truncate(transport.Printable(strings.Join(regions, ", ")), maxReason)
}

// negotiate returns the microversion to use with the compute service.
func (c *Client) negotiate(ctx context.Context, g *grant) (string, *cloud.Error) {
	var root struct {
		Version struct {
			Version string `json:"version"`
			Min     string `json:"min_version"`
		} `json:"version"`
	}
	base, projectless := g.services[compute], *g
	// Below the version there is the id of the project in some catalogs.
	if at := regexp.MustCompile(`/v\d+(\.\d+)?/`).FindStringIndex(base); at != nil {
		base = base[:at[1]]
	}
	projectless.services = map[service]string{compute: base}
	call := &call{
		about: aboutSession, service: compute, method: http.MethodGet, route: "compute/", op: "ask for the version of the compute service", out: &root,
	}
	if _, err := c.exchange(ctx, call, &projectless); err != nil {
		err.Detail = "asking for the version of the compute service: " + err.Detail
		return "", err
	}
	major, most, err := utils.ParseMicroversion(root.Version.Version)
	_, least, _ := utils.ParseMicroversion(root.Version.Min)
	if err != nil || major != 2 || most < leastMicroversion || least > bestMicroversion {
		return "", refuse(call.op, cloud.Unavailable, "the compute service has the versions %s to %s: the operator needs microversion 2.%d or later",
			quote(root.Version.Min), quote(root.Version.Version), leastMicroversion)
	}
	return fmt.Sprintf("2.%d", min(most, bestMicroversion)), nil
}
