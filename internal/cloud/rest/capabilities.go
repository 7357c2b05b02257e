package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// listed are the names of GET /capabilities that this client knows.
var listed = cloud.NewCapabilities(
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.BulkStatus, cloud.Async, cloud.Power,
	cloud.Resize, cloud.Folders, cloud.Networks, cloud.Hosts, cloud.Events, cloud.Sessions,
	cloud.Operations, cloud.FolderNames, cloud.WithUserData, cloud.Addresses, cloud.Snapshots, cloud.Revert, cloud.SoftPowerOff, cloud.WithDisks,
	cloud.Zones, cloud.WithAntiAffinity, cloud.GuestHeartbeat, cloud.Suspend, cloud.WithInterfaces, cloud.StaticAddresses,
	cloud.WithSecurityGroups, cloud.PublicAddresses, cloud.WithAllowedAddresses, cloud.NetworkDNS, cloud.Routers, cloud.DualStack, cloud.WithRootDisk, cloud.DiskTypes, cloud.KeepDisks, cloud.Console,
)

// capabilityClient finds out what the cloud can do, and remembers it.
type capabilityClient struct {
	calls    *calls
	exchange *exchange
	pages    *pageReader
	ignored  *ignored
	stated   stated
	// probed holds what Capabilities returned last; nil before.
	probed atomic.Pointer[cloud.Capabilities]
	// probing is held by the one call that asks for capabilities on behalf of
	// those that need them.
	probing chan struct{}
}

// Capabilities asks the cloud and caches the answer, by which other calls decide
// what to send and what to refuse. A failure leaves the cache as it is. Where the
// capabilities are declared, it lists a page instead: callers take a success for a
// proof that the cloud answers and accepts the credentials.
func (c *capabilityClient) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	has, err := c.probe(ctx)
	if err == nil && c.stated.declared {
		err = c.checkDeclared(ctx, has)
	}
	if err != nil {
		return nil, err
	}
	c.probed.Store(&has)
	return has, nil
}

// stated is what the administrator states about a cloud.
type stated struct {
	uniqueNames, exclusiveNames bool
	// declared is set when capabilities are not asked for.
	declared     bool
	capabilities []cloud.Capability
}

func statedBy(cfg Config) stated {
	return stated{cfg.UniqueNames, cfg.ExclusiveNames, cfg.Declared, cfg.Capabilities}
}

// core returns the capabilities of a core cloud.
func (s stated) core() cloud.Capabilities {
	if s.uniqueNames {
		return s.of(cloud.UniqueNames)
	}
	return cloud.NewCapabilities()
}

// extended returns the capabilities of an extended cloud that has names.
func (s stated) extended(names []cloud.Capability) cloud.Capabilities {
	known := []cloud.Capability{cloud.Sizing}
	for _, name := range names {
		if listed.Has(name) {
			known = append(known, name)
		}
		if name == cloud.Power {
			known = append(known, cloud.PowerAtCreate) // a create has all fields of a change
		}
	}
	return s.of(known...)
}

func (s stated) of(names ...cloud.Capability) cloud.Capabilities {
	if s.exclusiveNames && slices.Contains(names, cloud.UniqueNames) {
		names = append(names, cloud.ExclusiveNames)
	}
	return cloud.NewCapabilities(names...)
}

func (c *capabilityClient) probe(ctx context.Context) (cloud.Capabilities, *cloud.Error) {
	switch {
	case c.stated.declared && len(c.stated.capabilities) == 0:
		return c.stated.core(), nil
	case c.stated.declared:
		return c.stated.extended(c.stated.capabilities), nil
	}
	call := &call{
		about: aboutCloud, method: http.MethodGet, route: "/capabilities", path: "/capabilities",
		limit: maxBody, op: "get capabilities",
	}
	got, err := c.calls.do(ctx, call)
	if err != nil && got != nil && got.status == http.StatusNotFound {
		return c.detectCore(ctx, got, err)
	}
	if err != nil {
		return nil, adviseDeclaration(err, got)
	}
	names, err := decodeCapabilities(call, got, c.ignored)
	if err != nil {
		return nil, adviseDeclaration(err, got)
	}
	if unknown := unknownCapabilities(got, c.ignored); len(unknown) > 0 {
		c.exchange.log.Info("ignoring capabilities that this version of the operator does not know", "names", unknown)
	}
	return c.stated.extended(names), nil
}

// checkDeclared lists a page of a cloud that has the declared capabilities.
func (c *capabilityClient) checkDeclared(ctx context.Context, has cloud.Capabilities) *cloud.Error {
	call := listing()
	if has.Has(cloud.Sizing) {
		call.query = url.Values{"limit": {"1"}}
	}
	page, err := c.pages.read(ctx, call, noServers{}, has)
	if err == nil && page.Next != "" && !has.Has(cloud.Sizing) {
		err = unreadable(call, declaredCorePages)
	}
	return err
}

// declaredCorePages is why the listing of a cloud that was declared as a core cloud cannot be used.
const declaredCorePages = "the listing has further pages, though spec.rest.capabilities declares the core profile"

// adviseDeclaration adds to err, which got caused, what to do if the cloud does not
// report capabilities at all. An outage is no reason to.
func adviseDeclaration(err *cloud.Error, got *answer) *cloud.Error {
	if got == nil || err.Err != nil {
		return err
	}
	switch got.status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusGone, http.StatusInternalServerError, http.StatusNotImplemented:
	default:
		if err.Kind != cloud.Unreadable && err.Kind != cloud.Rejected {
			return err
		}
	}
	err.Detail += "; if this cloud has no GET /capabilities, declare its capabilities in spec.rest.capabilities: [] is the core profile"
	return err
}

// decodeCapabilities returns the names that the cloud gave.
func decodeCapabilities(call *call, got *answer, into *ignored) ([]cloud.Capability, *cloud.Error) {
	var names []cloud.Capability
	found := false
	servers := false
	err := object(call, got, func(name, value []byte) {
		if string(name) != "capabilities" {
			servers = servers || string(name) == "servers" && len(value) > 0 && value[0] == '['
			return
		}
		names = nil
		found = values(value, func(value []byte) {
			switch {
			case !isText(value):
				into.add("capabilities", "an entry that is not a string")
			case listed.Has(cloud.Capability(unquoted(value))):
				names = append(names, cloud.Capability(unquote(value)))
			}
		})
	})
	switch {
	case found:
	case servers || listsServers(got.document()):
		err = unreadable(call, "GET /capabilities was answered with a list of servers, not with capabilities")
	case err == nil:
		err = unreadable(call, "the answer holds no list of capabilities")
	case values(got.document(), func([]byte) {}):
		err = unreadable(call, `GET /capabilities was answered with a bare list, not with an object that has the list "capabilities"`)
	}
	if err != nil {
		return nil, err
	}
	return cloud.NewCapabilities(names...), nil
}

// unknownCapabilities returns the names of the answer that this client does not know, at most
// maxIgnored, for the log. Those that are almost known are also put into.
func unknownCapabilities(got *answer, into *ignored) (names []string) {
	fields(got.document(), func(field, value []byte) {
		if string(field) != "capabilities" {
			return
		}
		names = nil
		unknown := 0
		values(value, func(value []byte) {
			if !isText(value) || listed.Has(cloud.Capability(unquoted(value))) {
				return
			}
			unknown++
			if unknown > maxUnknown {
				return
			}
			name := transport.Printable(unquote(value))
			if known, almost := plainCapabilities[plainCapability(name)]; almost {
				into.add("capabilities", fmt.Sprintf("a name that is almost %s: names are compared exactly", known))
			}
			if got.scrub != nil {
				name = got.scrub(name)
			}
			name = transport.Truncate(name, 64)
			if len(names) < maxIgnored && !slices.Contains(names, name) {
				names = append(names, name)
			}
		})
	})
	return names
}

// maxUnknown bounds how many names of an answer are looked at that the client does not know.
const maxUnknown = 100

var (
	betweenWords = strings.NewReplacer("-", "", "_", "", " ", "")
	// plainCapabilities has the listed capabilities by their plain names.
	plainCapabilities = func() map[string]cloud.Capability {
		all := map[string]cloud.Capability{}
		for _, known := range listed {
			all[plainCapability(string(known))] = known
		}
		return all
	}()
)

// plainCapability returns a name in lower case, without what some APIs put between words.
func plainCapability(name string) string {
	return betweenWords.Replace(strings.ToLower(name))
}

// listsServers reports whether body is a list of objects with ids, as a core cloud lists servers.
func listsServers(body []byte) bool {
	found := false
	values(body, func(value []byte) {
		fields(value, func(name, _ []byte) { found = found || string(name) == "id" })
	})
	return found
}

// detectCore distinguishes a core cloud from an extended one that is unavailable. The
// listing of a core cloud is a bare array. This is checked unless the 404 is
// certainly the cloud's own: if a proxy's 404 made an extended cloud count as a
// core one, creates would be sent without their idempotency keys.
func (c *capabilityClient) detectCore(ctx context.Context, got *answer, missing *cloud.Error) (cloud.Capabilities, *cloud.Error) {
	if got.problem().Code != "notFound" || c.cached().Has(cloud.Sizing) {
		call := listing()
		call.op = missing.Op
		page, err := c.pages.read(ctx, call, noServers{}, nil)
		if err != nil {
			return nil, err
		}
		if page.extended {
			return nil, adviseDeclaration(missing, got)
		}
	}
	return c.stated.core(), nil
}

// cached returns what the cloud can do, nothing before it was asked.
func (c *capabilityClient) cached() cloud.Capabilities {
	if has := c.probed.Load(); has != nil {
		return *has
	}
	return nil
}

// neededBy returns what the cloud can do for the call op, and asks the
// cloud where the cache is empty: what to send, and whether it may be sent again,
// depends on it.
func (c *capabilityClient) neededBy(ctx context.Context, op string) (cloud.Capabilities, *cloud.Error) {
	if has := c.probed.Load(); has != nil {
		return *has, nil
	}
	select {
	case c.probing <- struct{}{}:
		defer func() { <-c.probing }()
	case <-ctx.Done():
		return nil, c.exchange.noAnswer(ctx, &call{op: op}, ctx.Err(), false)
	}
	if has := c.probed.Load(); has != nil {
		return *has, nil
	}
	has, err := c.probe(ctx)
	if err != nil {
		err.Op, err.Detail = op, "asking for the cloud's capabilities: "+err.Detail
		return nil, err
	}
	c.probed.Store(&has)
	return has, nil
}

// forget empties the cache: the next call that needs capabilities asks for them.
func (c *capabilityClient) forget() { c.probed.Store(nil) }

// require refuses a call that needs capabilities which the cloud does not have.
func require(op string, has cloud.Capabilities, needs ...cloud.Capability) *cloud.Error {
	var missing []string
	for _, need := range cloud.NewCapabilities(needs...) {
		if !has.Has(need) {
			missing = append(missing, string(need))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refuse(op, cloud.Unsupported, "%s", fmt.Sprintf("this cloud lacks %s", strings.Join(missing, ", ")))
}
