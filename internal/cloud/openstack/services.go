package openstack

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/privatecloud/operator/internal/cloud"
)

// versions are the services of a project, with the path of the version that is added to a
// base URL without one.
var versions = map[service]string{compute: "v2.1", network: "v2.0", image: "v2", volume: "v3"}

// catalogTypes are the types of a service in catalogs.
var catalogTypes = map[service][]string{
	compute: {"compute"}, network: {"network"}, image: {"image"}, volume: {"block-storage", "volumev3", "block-store"},
}

// versioned matches a path that ends with a version that the services have, or with one and
// the id of a project.
var versioned = regexp.MustCompile(`/v[23](\.\d+)?(/[0-9a-zA-Z_-]+)?$`)

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
	// catalogInterface selects the endpoints of the catalog.
	catalogInterface Interface
	// overrides are URLs that are used in place of those of the catalog.
	overrides Endpoints
	// allowHTTP allows services that are reached over http.
	allowHTTP bool
}

// locate returns the base URLs of the services, each with a slash at its end. Without a usable block storage service, which not
// every cloud has, that one is missing.
func (l locator) locate(op string, catalog []tokens.CatalogEntry) (map[service]string, *cloud.Error) {
	located := map[service]string{identity: l.endpoint + "/"}
	for _, kind := range []service{compute, network, image, volume} {
		base, err := l.base(op, catalog, kind)
		switch {
		case err == nil:
			located[kind] = base
		case kind != volume || l.overrides.of(kind) != "":
			return nil, err
		}
	}
	return located, nil
}

// base returns the base URL of a service.
func (l locator) base(op string, catalog []tokens.CatalogEntry, kind service) (string, *cloud.Error) {
	base, source, fault := l.overrides.of(kind), "spec.openstack.endpoints or clouds.yaml", cloud.Misconfigured
	if base == "" {
		var failed *cloud.Error
		if base, failed = l.find(op, catalog, kind); failed != nil {
			return "", failed
		}
		source, fault = "the catalog of services", cloud.Unavailable
	}
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.User != nil {
		return "", refuse(op, fault, "%s has no usable URL of the %s service", source, kind)
	}
	if l.encrypted && u.Scheme == "http" && !l.allowHTTP {
		return "", refuse(op, fault,
			"%s has an http URL of the %s service: the token is sent over https only, unless spec.insecureAllowHTTP is true", source, kind)
	}
	if isLocal(u.Hostname()) && !isLocal(l.host) {
		return "", refuse(op, fault,
			"%s has a loopback or link-local URL of the %s service, and the endpoint is not such: the token is not sent there; correct that URL", source, kind)
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if !versioned.MatchString(path) {
		path += "/" + versions[kind]
	}
	return u.Scheme + "://" + u.Host + path + "/", nil
}

// find returns the URL of a service in the catalog, of the first type of it that has one.
func (l locator) find(op string, catalog []tokens.CatalogEntry, kind service) (base string, err *cloud.Error) {
	for _, named := range catalogTypes[kind] {
		if base, err = l.findType(op, catalog, kind, named); err == nil {
			return base, nil
		}
	}
	return "", err
}

// findType returns the URL of a service that has a type in the catalog.
func (l locator) findType(op string, catalog []tokens.CatalogEntry, kind service, named string) (string, *cloud.Error) {
	var base string
	var regions []string
	for _, entry := range catalog {
		if entry.Type != named {
			continue
		}
		for _, endpoint := range entry.Endpoints {
			if endpoint.Interface != string(l.catalogInterface) {
				continue
			}
			regions = append(regions, endpoint.Region)
			if base == "" && (l.region == "" || endpoint.Region == l.region || endpoint.RegionID == l.region) {
				base = endpoint.URL
			}
		}
	}
	slices.Sort(regions)
	regions = slices.Compact(regions)
	switch {
	case len(regions) == 0:
		return "", refuse(op, cloud.Unavailable, "the catalog of services has no %s endpoint of a %s service: the operator needs compute, network and image", l.catalogInterface, kind)
	case l.region == "" && len(regions) > 1:
		return "", refuse(op, cloud.Misconfigured, "the catalog of services has several regions: set spec.openstack.region to one of %s", listText(regions))
	case base == "":
		return "", refuse(op, cloud.Misconfigured, "the catalog of services has no %s service in region %s, but in %s: correct spec.openstack.region",
			kind, quote(l.region), listText(regions))
	}
	return base, nil
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
