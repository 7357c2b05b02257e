package vcsim

import (
	"context"
	"net"
	"net/http/httptest"
	"time"

	"github.com/vmware/govmomi/simulator"
)

// Options are the settings of a simulator. The zero value is for tests in one process.
type Options struct {
	// Listen is the host:port of the SOAP API; empty for a free port.
	Listen string
	// CloneTime is how long the task of a clone runs. It holds for all simulators of the
	// process.
	CloneTime time.Duration
}

// StartWith is Start with options.
func StartWith(ctx context.Context, o Options) (*Server, error) {
	address := o.Listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s, err := serve(ctx, listener)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	if o.CloneTime > 0 {
		s.SlowClones(o.CloneTime)
	}
	return s, nil
}

// listen serves the front on a listener.
func (s *Server) listen(listener net.Listener) {
	s.before = httptest.NewUnstartedServer(s.Front)
	_ = s.before.Listener.Close()
	s.before.Listener = listener
	s.before.Start()
	s.URL = s.before.URL + "/sdk"
}

// SlowClones makes the tasks of clones run for a time. It changes variables of the
// simulator: call it before the first clone.
func (s *Server) SlowClones(taking time.Duration) {
	making.Lock()
	defer making.Unlock()
	// Without LockHandoff: 0, the template could not be read while it is cloned.
	simulator.TaskDelay.MethodDelay = map[string]int{"CloneVm": int(taking.Milliseconds()), "LockHandoff": 0}
	s.Front.set(func() { s.Front.starting = newStarting() })
}
