package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// exchange sends single requests, and reads the answers.
type exchange struct {
	transport *transport.Transport
	http      *http.Client
	redactor  *transport.Redactor
	// version is the operator's, for User-Agent.
	version string
	// advice is what to check when the cloud refuses the credentials.
	advice string
}

// provider returns a client of gophercloud for one request. It neither retries nor
// renews the token: the caller does, who knows what may be sent again.
func (x *exchange) provider(token string) *gophercloud.ProviderClient {
	p := &gophercloud.ProviderClient{TokenID: token, HTTPClient: *x.http}
	p.UserAgent.Prepend("private-cloud-operator/" + x.version)
	return p
}

// send sends a call once, through gophercloud, and reads the answer. The answer is
// that of a refusal too; its status is 0 if there was none.
func (x *exchange) send(ctx context.Context, call *call, g *grant) (*answer, *cloud.Error) {
	if g.services[call.service] == "" {
		return &answer{}, refuse(call.op, cloud.Unsupported, "the catalog of services has no usable endpoint of a %s service", call.service)
	}
	limit := call.limit
	if limit == 0 {
		limit = maxBody
	}
	ctx, sent := transport.TraceSent(transport.WithCall(ctx, transport.Call{
		Route: call.route, CloudWide: call.cloudWide(), MaxBody: limit, Read: call.reads(),
	}))
	target := g.services[call.service] + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	// Services log the id that they are given. The log of the transport has it too.
	id := "req-" + uuid.NewString()
	header := map[string]string{"X-Openstack-Request-Id": id, "X-Request-Id": id}
	maps.Copy(header, call.header)
	client := &gophercloud.ServiceClient{ProviderClient: x.provider(g.token), Endpoint: g.services[call.service]}
	if call.service == compute && g.microversion != "" {
		client.Type, client.Microversion = string(compute), cmp.Or(call.microversion, g.microversion)
	}
	if call.service == volume && call.microversion != "" {
		header["OpenStack-API-Version"] = "volume " + call.microversion
	}
	resp, err := client.Request(ctx, call.method, target, &gophercloud.RequestOpts{
		JSONBody: call.body, MoreHeaders: header, KeepResponseBody: true,
		OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	})
	if refused, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		e := x.classify(call, refused.Actual, refused.ResponseHeader, refused.Body, g.token)
		e.Uncertain = e.Uncertain || (sent() > 1 && call.changes())
		return &answer{status: refused.Actual, header: refused.ResponseHeader}, e
	}
	if err != nil {
		return &answer{}, x.noAnswer(ctx, call, err, sent() > 0)
	}
	defer func() { _ = resp.Body.Close() }()
	got := &answer{status: resp.StatusCode, header: resp.Header}
	return got, x.read(ctx, call, got, resp.Body)
}

// read reads the body of an answer that a service accepted.
func (x *exchange) read(ctx context.Context, call *call, got *answer, body io.Reader) *cloud.Error {
	if call.stream != nil {
		return call.stream(&brokenBody{Reader: body, classify: func(err error) *cloud.Error { return x.noAnswer(ctx, call, err, true) }})
	}
	data, err := io.ReadAll(body)
	if call.out == nil {
		return nil // the status says all
	}
	if err != nil {
		return x.noAnswer(ctx, call, err, true)
	}
	if err := json.Unmarshal(data, call.out); err != nil {
		return unreadable(call, "the answer is not the JSON that the service defines, but "+media(got.header))
	}
	return nil
}

// brokenBody is a body that reports as a cloud.Error why it cannot be read to its end.
type brokenBody struct {
	io.Reader
	classify func(error) *cloud.Error
}

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.classify(err)
	}
	return n, err
}

// noAnswer is the error of a call to which no complete answer came. sent is whether the
// cloud may have got the request.
func (x *exchange) noAnswer(ctx context.Context, call *call, err error, sent bool) *cloud.Error {
	e := x.transport.Classify(ctx, err)
	e.Op, e.Uncertain = call.op, sent && call.changes()
	return e
}
