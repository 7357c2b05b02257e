package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxLimit bounds the servers of a page.
const maxLimit = 1000

// listing is the call that lists servers, without a query.
func listing() *call {
	return &call{
		about: aboutCloud, method: http.MethodGet, route: "/servers", path: "/servers",
		limit: maxPage, op: "list servers",
	}
}

// pageReader reads pages of the listing of servers.
type pageReader struct {
	calls   *calls
	ignored *ignored
}

// read makes a call that lists servers. has is what the cloud can do.
func (p *pageReader) read(ctx context.Context, call *call, to cloud.ServerSink, has cloud.Capabilities) (result page, failed *cloud.Error) {
	call.stream = func(got *answer, in *stream) (err *cloud.Error) {
		result, err = streamPage(call, got, in, p.ignored, to, has)
		return err
	}
	got, failed := p.calls.do(ctx, call)
	if failed == nil {
		return result, nil
	}
	if got != nil && slices.Contains(withoutCall, got.status) {
		failed.Detail += "; if the cloud has no GET /servers, nothing on it can be created, changed or deleted: what exists is proved by the listing"
	}
	return page{}, failed
}

// withoutCall are the statuses of a cloud that lacks a call.
var withoutCall = []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusNotImplemented}

// listQuery is empty for a core cloud, which honours no parameters.
func listQuery(op string, has cloud.Capabilities, opts cloud.ListServers) (url.Values, *cloud.Error) {
	if opts.Limit < 0 || opts.Limit > maxLimit {
		return nil, refuse(op, cloud.Rejected, "the limit must be within 0 to %d", maxLimit)
	}
	if len(opts.Labels) > 0 {
		if err := require(op, has, cloud.Labels); err != nil {
			return nil, err
		}
	}
	if !has.Has(cloud.Sizing) {
		if opts.Marker != "" {
			return nil, refuse(op, cloud.Unsupported, "this cloud lists its servers on one page")
		}
		return nil, nil
	}
	query := url.Values{}
	if opts.Limit > 0 {
		query.Set("limit", strconv.Itoa(opts.Limit))
	}
	if opts.Marker != "" {
		query.Set("marker", opts.Marker)
	}
	for key, value := range opts.Labels {
		if key == "" || strings.Contains(key, "=") {
			return nil, refuse(op, cloud.Rejected, "the label key %s is empty or holds =", quote(key))
		}
		query.Add("label", key+"="+value)
	}
	slices.Sort(query["label"])
	return query, nil
}
