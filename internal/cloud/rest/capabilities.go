package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// listed are the names of GET /capabilities that this client knows.
var listed = cloud.NewCapabilities(
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.BulkStatus, cloud.Async, cloud.Power,
	cloud.Resize, cloud.Folders, cloud.Networks, cloud.Hosts, cloud.Events, cloud.Sessions,
)

// Capabilities asks the cloud and caches the answer, by which other calls decide
// what to send and what to refuse. A failure leaves the cache as it is.
func (c *Client) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	has, err := c.probe(ctx)
	if err != nil {
		return nil, err
	}
	c.probed.Store(&has)
	return has, nil
}

func (c *Client) probe(ctx context.Context) (cloud.Capabilities, *cloud.Error) {
	call := &call{
		about: aboutCloud, method: http.MethodGet, route: "/capabilities", path: "/capabilities",
		limit: maxBody, op: "get capabilities",
	}
	got, err := c.do(ctx, call)
	if err != nil && got != nil && got.status == http.StatusNotFound {
		return c.detectCore(ctx, got, err)
	}
	if err != nil {
		return nil, err
	}
	var w wireCapabilities
	if err := decode(call, got, &w); err != nil {
		return nil, err
	}
	if w.Capabilities == nil {
		return nil, unreadable(call, "the answer holds no list of capabilities")
	}
	names := []cloud.Capability{cloud.Sizing}
	for _, name := range w.Capabilities {
		if listed.Has(cloud.Capability(name)) {
			names = append(names, cloud.Capability(name))
		}
	}
	return cloud.NewCapabilities(names...), nil
}

// detectCore tells a core cloud from an extended one that is unavailable now. The
// listing of a core cloud is a bare array. This is checked unless the 404 is
// certainly the cloud's own: if a proxy's 404 made an extended cloud count as a
// core one, creates would be sent without their idempotency keys.
func (c *Client) detectCore(ctx context.Context, got *answer, missing *cloud.Error) (cloud.Capabilities, *cloud.Error) {
	if got.problem().Code != "notFound" || c.cachedCapabilities().Has(cloud.Sizing) {
		call := listing()
		call.op = missing.Op
		got, err := c.do(ctx, call)
		if err != nil {
			return nil, err
		}
		page, err := decodePage(call, got)
		if err != nil {
			return nil, err
		}
		if page.extended {
			return nil, missing
		}
	}
	if c.uniqueNames {
		return cloud.NewCapabilities(cloud.UniqueNames), nil
	}
	return cloud.NewCapabilities(), nil
}

// cachedCapabilities returns what the cloud can do, nothing before it was asked.
func (c *Client) cachedCapabilities() cloud.Capabilities {
	if has := c.probed.Load(); has != nil {
		return *has
	}
	return nil
}

// capabilitiesFor returns what the cloud can do for the call op, and asks the
// cloud where the cache is empty: what to send, and whether it may be sent again,
// depends on it.
func (c *Client) capabilitiesFor(ctx context.Context, op string) (cloud.Capabilities, *cloud.Error) {
	if has := c.probed.Load(); has != nil {
		return *has, nil
	}
	select {
	case c.probing <- struct{}{}:
		defer func() { <-c.probing }()
	case <-ctx.Done():
		return nil, c.noAnswer(ctx, &call{op: op}, ctx.Err(), false)
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
