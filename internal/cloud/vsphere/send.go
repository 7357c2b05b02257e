package vsphere

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// apiVersion is the oldest version of the API whose calls are used: vSphere 6.7.
const apiVersion = "6.7"

// sender sends requests to the vCenter, whatever the session.
type sender struct {
	transport *transport.Transport
	faults    *faults
	soap      *soap.Client
	jar       *jar
	volume    volume
}

func newSender(t *transport.Transport, faults *faults, cfg Config, endpoint *url.URL) *sender {
	s := &sender{transport: t, faults: faults, jar: &jar{}}
	s.jar.clear()
	s.soap = s.over(soap.NewClient(endpoint, cfg.InsecureSkipVerify))
	s.soap.Namespace, s.soap.Version = "urn:vim25", apiVersion
	s.soap.UserAgent = agent(cfg.Version)
	return s
}

// over makes a SOAP client of govmomi use the transport chain.
func (s *sender) over(c *soap.Client) *soap.Client {
	c.Client = *s.transport.Client()
	c.Transport = readable(c.Transport)
	c.Jar = s.jar
	return c
}

// send sends a request once.
func (s *sender) send(ctx context.Context, req, res soap.HasFault) error {
	return s.sendAs(ctx, transport.Call{}, req, res)
}

// poll sends once a request that the vCenter answers when there is something to report.
func (s *sender) poll(ctx context.Context, req, res soap.HasFault) error {
	return s.sendAs(ctx, transport.Call{LongPoll: true}, req, res)
}

func (s *sender) sendAs(ctx context.Context, call transport.Call, req, res soap.HasFault) error {
	body := reflect.ValueOf(res).Elem()
	body.SetZero() // a fault of an earlier answer would stay
	call.Route = routeOf(req)
	call.CloudWide, _ = ctx.Value(cloudWideKey{}).(bool)
	call.MaxBody = s.volume.maxBody
	most := s.volume.ask(req)
	ctx, sent := transport.TraceSent(transport.WithCall(ctx, call))
	err := s.exchange(ctx, req, res)
	s.volume.learn(req, most, err)
	switch {
	case err == nil:
		return nil
	case faultOf(err) != nil && sent() <= 1:
		return err
	case faultOf(err) == nil && soap.IsSoapFault(err):
		return err // a fault of a type that govmomi does not know
	}
	return &exchangeError{error: err, sent: sent() > 0}
}

// routeOf returns the name of the method that a request calls.
func routeOf(req soap.HasFault) string {
	return strings.TrimSuffix(reflect.TypeOf(req).Elem().Name(), "Body")
}

// exchange sends a request. An answer that is not the method's own is an error: govmomi
// panics at some of them, and returns none at others.
func (s *sender) exchange(ctx context.Context, req, res soap.HasFault) (err error) {
	foreign := &cloud.Error{Kind: cloud.Unreadable, Detail: "the answer is not the vCenter's own: check spec.endpoint and the proxies before it"}
	defer func() {
		if recover() != nil {
			err = foreign
		}
	}()
	if err := s.soap.RoundTrip(ctx, req, res); err != nil {
		return err
	}
	if answer := reflect.ValueOf(res).Elem().FieldByName("Res"); answer.Kind() == reflect.Pointer && answer.IsNil() {
		return foreign
	}
	return nil
}

// roundTripper is a function that is a soap.RoundTripper.
type roundTripper func(ctx context.Context, req, res soap.HasFault) error

func (f roundTripper) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	return f(ctx, req, res)
}

// readable fails answers that are not of the SOAP API, which govmomi would not classify.
func readable(next http.RoundTripper) http.RoundTripper {
	return httpRoundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		status := resp.StatusCode
		kind := resp.Header.Get("Content-Type")
		other := strings.Contains(kind, "html") || strings.Contains(kind, "json")
		if !other && (status == http.StatusOK || status == http.StatusInternalServerError) {
			return resp, nil
		}
		_ = resp.Body.Close()
		refusal := &cloud.Error{
			Kind: cloud.Unreadable, Code: strconv.Itoa(status),
			Detail: fmt.Sprintf("the answer, with HTTP status %d, is not of a vCenter's SOAP API: check whether spec.endpoint ends with /sdk", status),
		}
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			refusal.Kind = cloud.Unavailable
			refusal.Detail = fmt.Sprintf("the vCenter, or something in front of it, answers with HTTP status %d", status)
			refusal.RetryAfter = transport.RetryAfter(resp.Header, status == http.StatusTooManyRequests)
		}
		return nil, refusal
	})
}

// httpRoundTripper is a function that is an http.RoundTripper.
type httpRoundTripper func(*http.Request) (*http.Response, error)

func (f httpRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type cloudWideKey struct{}

// cloudWide returns a context for calls about the vCenter as a whole.
func cloudWide(ctx context.Context) context.Context {
	return context.WithValue(ctx, cloudWideKey{}, true)
}
