package vsphere

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"sync"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// session sends requests with a session of the vCenter, which it opens when there is
// none, and again when the vCenter has ended it.
type session struct {
	client      *Client
	credentials *Credentials
	login       *transport.Login
	soap        *soap.Client
	jar         *jar
	volume      volume

	mu sync.Mutex
	// vim is nil until the vCenter has been asked for its managed objects.
	vim *vim25.Client
	// logins counts sessions that were opened. open is whether the last one is not known
	// to have ended, and ended is closed when it is.
	logins int
	open   bool
	ended  chan struct{}
	closed bool
}

func newSession(c *Client, cfg Config, endpoint *url.URL, login *transport.Login) *session {
	s := &session{client: c, credentials: &cfg.Credentials, login: login, jar: &jar{}, ended: make(chan struct{})}
	s.jar.clear()
	s.soap = s.over(soap.NewClient(endpoint, cfg.InsecureSkipVerify))
	s.soap.Namespace, s.soap.Version = "urn:vim25", apiVersion
	s.soap.UserAgent = agent(cfg.Version)
	return s
}

// apiVersion is the oldest version of the API whose calls are used: vSphere 6.7.
const apiVersion = "6.7"

// over makes a SOAP client of govmomi use the transport chain.
func (s *session) over(c *soap.Client) *soap.Client {
	c.Client = *s.client.transport.Client()
	c.Transport = readable(c.Transport)
	c.Jar = s.jar
	return c
}

type cloudWideKey struct{}

// cloudWide returns a context for calls about the vCenter as a whole.
func cloudWide(ctx context.Context) context.Context {
	return context.WithValue(ctx, cloudWideKey{}, true)
}

// errEnded is why a context ends with the session.
var errEnded = errors.New("the session has ended")

// untilEnded returns a context that ends with ctx, or when the session is known to have
// ended.
func (s *session) untilEnded(ctx context.Context) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-ended:
			cancel(errEnded)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// connect returns a client with a session.
func (s *session) connect(ctx context.Context) (*vim25.Client, error) {
	if _, err := s.ensure(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vim, nil
}

// RoundTrip sends a request. If the vCenter answers that the session has ended, which
// proves that it did nothing, the request is sent again with another session.
func (s *session) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	for try := 1; ; try++ {
		login, err := s.ensure(ctx)
		if err != nil {
			return err
		}
		if err = s.try(ctx, req, res); try == maxLooks || !notAuthenticated(err) && !unread(res) {
			return err
		}
		if err := s.renew(ctx, login); err != nil {
			return err
		}
	}
}

// unread reports whether the properties in an answer are missing because the session
// has ended: the property collector answers so instead of failing.
func unread(res soap.HasFault) bool {
	var objects []types.ObjectContent
	switch body := res.(type) {
	case *methods.RetrievePropertiesExBody:
		if body.Res != nil && body.Res.Returnval != nil {
			objects = body.Res.Returnval.Objects
		}
	case *methods.ContinueRetrievePropertiesExBody:
		if body.Res != nil {
			objects = body.Res.Returnval.Objects
		}
	case *methods.RetrievePropertiesBody:
		if body.Res != nil {
			objects = body.Res.Returnval
		}
	}
	for _, object := range objects {
		for _, missing := range object.MissingSet {
			if _, ended := missing.Fault.Fault.(*types.NotAuthenticated); ended {
				return true
			}
		}
	}
	return false
}

// opened returns how many sessions were opened.
func (s *session) opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// sure calls look, whose result may be empty because the session has ended: the
// property collector then finds nothing, and does not fail. If it is, and the session
// had ended, look is called again.
func (s *session) sure(ctx context.Context, look func() (empty bool, err error)) error {
	for try := 1; ; try++ {
		before := s.opened()
		empty, err := look()
		if !empty || try == maxLooks {
			return err
		}
		vim, failure := s.connect(ctx)
		if failure == nil {
			_, failure = methods.GetCurrentTime(ctx, vim) // logs in if the session has ended
		}
		if failure != nil {
			return failure
		}
		if s.opened() == before {
			return err
		}
	}
}

// maxLooks bounds how often something is asked for whose answer may be that of an ended session.
const maxLooks = 3

// exchangeError is a request that failed without a fault that says what happened.
type exchangeError struct {
	error
	// sent is whether the request may have reached the vCenter.
	sent bool
}

func (e *exchangeError) Unwrap() error { return e.error }

// send sends a request once, whatever the session.
func (s *session) send(ctx context.Context, req, res soap.HasFault) error {
	return s.sendAs(ctx, transport.Call{}, req, res)
}

// poll sends once, whatever the session, a request that the vCenter answers when there
// is something to report.
func (s *session) poll(ctx context.Context, req, res soap.HasFault) error {
	return s.sendAs(ctx, transport.Call{LongPoll: true}, req, res)
}

func (s *session) sendAs(ctx context.Context, call transport.Call, req, res soap.HasFault) error {
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

// exchange sends a request. An answer that is not the method's own is an error: govmomi
// panics at some of them, and returns none at others.
func (s *session) exchange(ctx context.Context, req, res soap.HasFault) (err error) {
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

// ensure returns which login the session is of, logging in if there is none.
func (s *session) ensure(ctx context.Context) (int, error) {
	s.mu.Lock()
	open, closed, logins := s.open, s.closed, s.logins
	s.mu.Unlock()
	switch {
	case closed:
		return 0, refuse("", cloud.Unavailable, "the client is closed; another has replaced it")
	case open:
		return logins, nil
	}
	if err := s.renew(ctx, logins); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins, nil
}

// renew opens a session, unless another call has done so since the given login.
func (s *session) renew(ctx context.Context, ended int) error {
	end, err := s.login.Begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.mu.Lock()
	done, closed := s.logins != ended && s.open, s.closed
	if s.open && !done {
		close(s.ended)
		s.open, s.ended = false, make(chan struct{})
	}
	s.mu.Unlock()
	switch {
	case closed:
		return refuse("", cloud.Unavailable, "the client is closed; another has replaced it")
	case done:
		return nil
	}
	if refusal := s.login.Refused(); refusal != nil {
		return refusal
	}
	ctx, cancel := uncanceled(ctx)
	defer cancel()
	if err := s.logIn(cloudWide(ctx)); err != nil {
		return err
	}
	s.login.Accept()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins++
	s.open = true
	return nil
}

// uncanceled returns a context with the values and the deadline of ctx that is not
// canceled with it. A login that is canceled may leave a session that nobody ends; the
// context of a watch is canceled when its session ends, which is when it logs in.
func uncanceled(ctx context.Context) (context.Context, context.CancelFunc) {
	detached := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(detached, deadline)
	}
	return detached, func() {}
}

// close ends the session, if there is one. There is no further login.
func (s *session) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	open, vim := s.open, s.vim
	s.open = false
	s.mu.Unlock()
	if open {
		_, _ = methods.Logout(ctx, roundTripper(s.send), &types.Logout{This: *vim.ServiceContent.SessionManager})
	}
}

// roundTripper is a function that is a soap.RoundTripper.
type roundTripper func(ctx context.Context, req, res soap.HasFault) error

func (f roundTripper) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	return f(ctx, req, res)
}
