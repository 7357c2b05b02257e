// Package diagnostics serves what the operator knows and no Kubernetes object holds, to
// whoever may forward a port to its pods. It only reads, at a loopback address.
//
//	server.go   the address, and the HTTP server
//	handler.go  paths, and who is refused
//	clouds.go   what is known of a Cloud
//	servers.go  the servers that no object manages
//	wire/       the answers as JSON
package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"
)

const (
	// headerTimeout is how long the header of a request may take to arrive.
	headerTimeout = 5 * time.Second
	// answerTimeout is how long an answer may take, which may list all servers of a cloud.
	answerTimeout = time.Minute
	// idleTimeout is how long a connection may be without a request.
	idleTimeout = time.Minute
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 16 << 10
	// stopTimeout is how long requests under way may take when the manager stops.
	stopTimeout = time.Second
)

// Off is the address that turns the endpoint off.
const Off = "0"

// CheckAddress returns what is wrong with an address to serve at: it must be Off, or have the
// loopback address of this machine and a port.
func CheckAddress(address string) error {
	if address == Off || address == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address and port: set one such as 127.0.0.1:8082, or 0 for none", address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is no port: set one of 1-65535", port)
	}
	if !loopback(host) {
		return fmt.Errorf("%q is no loopback address: the endpoint asks nobody who they are, so serve it at 127.0.0.1 or [::1]", host)
	}
	return nil
}

// loopback reports whether a host is this machine, by an address or the name localhost.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Server serves a handler while the manager runs, whether it leads or not.
type Server struct {
	address string
	handler http.Handler
}

// NewServer returns a server at an address that CheckAddress accepts and is not Off.
func NewServer(address string, handler http.Handler) *Server {
	return &Server{address: address, handler: handler}
}

// NeedLeaderElection reports that a standby serves as well: it says that it does not lead.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	if err := CheckAddress(s.address); err != nil {
		return fmt.Errorf("read --diagnostics-bind-address: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("serve diagnostics: %w", err)
	}
	server := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close()
		}
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve diagnostics: %w", err)
	}
	<-stopped
	return nil
}
