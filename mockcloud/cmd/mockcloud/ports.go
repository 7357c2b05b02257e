package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

// off is the value of an address that disables its port.
const off = "0"

// port is a listener with its HTTP server.
type port struct {
	net.Listener
	server *http.Server
	// cert and key are the files of the certificate; empty for HTTP.
	cert, key string
}

// ports are those of the process. Admin and handover are nil if they are disabled.
type ports struct{ api, admin, handover *port }

// listen opens the ports. It returns an error, and no open port, if one of them
// cannot be opened.
func listen(ctx context.Context, c config, cloud *mockcloud.Cloud) (all ports, err error) {
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	if all.api, err = open(ctx, c.addr, cloud.Handler(), cloud.DropStreams); err != nil {
		return all, err
	}
	all.api.cert, all.api.key = c.tlsCert, c.tlsKey
	if all.admin, err = open(ctx, c.adminAddr, cloud.AdminHandler(), cloud.DropStreams); err != nil {
		return all, err
	}
	all.handover, err = open(ctx, c.handoverAddr, cloud.HandoverHandler(), cloud.DropStreams)
	return all, err
}

// open opens a port. endStreams ends the calls that do not end by themselves: shutDown
// waits for them.
func open(ctx context.Context, address string, handler http.Handler, endStreams func()) (*port, error) {
	if address == off {
		return nil, nil //nolint:nilnil // a port that is disabled
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(endStreams)
	return &port{Listener: listener, server: server}, nil
}

// list returns the ports that are open.
func (p ports) list() []*port {
	var list []*port
	for _, one := range []*port{p.api, p.admin, p.handover} {
		if one != nil {
			list = append(list, one)
		}
	}
	return list
}

func (p ports) close() {
	for _, one := range p.list() {
		_ = one.Close()
	}
}

// serve serves all ports. The channel receives the first error.
func (p ports) serve() <-chan error {
	served := make(chan error, len(p.list()))
	for _, one := range p.list() {
		go func() {
			if one.cert != "" {
				served <- one.server.ServeTLS(one.Listener, one.cert, one.key)
				return
			}
			served <- one.server.Serve(one.Listener)
		}()
	}
	return served
}

// shutDown stops the servers after the calls in progress. The admin port is last, so
// that held calls can be released meanwhile.
func (p ports) shutDown(ctx context.Context) error {
	var errs []error
	for _, one := range p.list() {
		err := one.server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = one.server.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// url returns the URL of a port; empty if it is disabled.
func (p *port) url() string {
	switch {
	case p == nil:
		return ""
	case p.cert != "":
		return "https://" + p.Addr().String()
	}
	return "http://" + p.Addr().String()
}
