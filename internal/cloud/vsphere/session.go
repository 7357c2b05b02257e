package vsphere

import (
	"context"
	"errors"
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
	sender *sender
	// account logs in, and login says who may try to.
	account *account
	login   *transport.Login

	mu sync.Mutex
	// logins counts sessions that were opened. open is whether the last one is not known
	// to have ended, and ended is closed when it is.
	logins int
	open   bool
	ended  chan struct{}
	closed bool
}

func newSession(sends *sender, credentials Credentials, login *transport.Login, faults *faults) *session {
	s := &session{sender: sends, login: login, ended: make(chan struct{})}
	s.account = &account{sender: sends, credentials: &credentials, login: login, faults: faults, session: s}
	return s
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
	return s.account.known(), nil
}

// RoundTrip sends a request. If the vCenter answers that the session has ended, which
// proves that it did nothing, the request is sent again with another session.
func (s *session) RoundTrip(ctx context.Context, req, res soap.HasFault) error {
	for try := 1; ; try++ {
		login, err := s.ensure(ctx)
		if err != nil {
			return err
		}
		if err = s.sender.try(ctx, req, res); try == maxLooks || !notAuthenticated(err) && !unread(res) {
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
	if err := s.account.logIn(cloudWide(ctx)); err != nil {
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
	open := s.open
	s.open = false
	s.mu.Unlock()
	if open {
		_, _ = methods.Logout(ctx, roundTripper(s.sender.send), &types.Logout{This: *s.account.known().ServiceContent.SessionManager})
	}
}
