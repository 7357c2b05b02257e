package openstack

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// versions are the services that a project needs, with the path of the version that is
// added to a base URL without one.
var versions = map[service]string{compute: "v2.1", network: "v2.0", image: "v2"}

// versioned matches a path that ends with a version, or with one and the id of a project.
var versioned = regexp.MustCompile(`/v\d+(\.\d+)?(/[0-9a-zA-Z_-]+)?$`)

// locator finds the services of a region in the catalog of a login, and refuses those to
// which the token must not be sent.
type locator struct {
	// endpoint is the identity service's, without a trailing slash.
	endpoint string
	// encrypted is whether endpoint is reached over https.
	encrypted bool
	// host is that of endpoint.
	host string
	// region is empty for services of any region.
	region string
	// allowHTTP allows services that are reached over http.
	allowHTTP bool
}

// locate returns the base URLs of the services, each with a slash at its end.
func (l locator) locate(op string, catalog []tokens.CatalogEntry) (map[service]string, *cloud.Error) {
	located := map[service]string{identity: l.endpoint + "/"}
	for _, kind := range []service{compute, network, image} {
		base, regions := find(catalog, kind, l.region)
		if l.region == "" && len(regions) > 1 {
			return nil, refuse(op, cloud.Misconfigured, "the catalog of services has several regions: set spec.openstack.region to one of %s", regionsText(regions))
		}
		if base == "" {
			return nil, missing(op, kind, l.region, regions)
		}
		u, err := url.Parse(base)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.User != nil {
			return nil, refuse(op, cloud.Unavailable, "the catalog of services has no usable URL of the %s service", kind)
		}
		if l.encrypted && u.Scheme == "http" && !l.allowHTTP {
			return nil, refuse(op, cloud.Unavailable,
				"the catalog of services has an http URL of the %s service: the token is sent over https only, unless spec.insecureAllowHTTP is true", kind)
		}
		if isLocal(u.Hostname()) && !isLocal(l.host) {
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

// thisHost is a range that reaches this host on some systems.
var thisHost = netip.MustParsePrefix("0.0.0.0/8")

// isLocal reports whether a host of a URL is the operator's own or one of its link, as far as
// the URL itself says: loopback, link-local and unspecified addresses, and localhost. A number
// that is no address counts as one, because some resolvers read 127.1 as 127.0.0.1.
func isLocal(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		last := host[strings.LastIndexByte(host, '.')+1:]
		return strings.HasPrefix(last, "0x") || last != "" && strings.Trim(last, "0123456789") == ""
	}
	address = address.Unmap()
	return address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsUnspecified() || thisHost.Contains(address)
}
