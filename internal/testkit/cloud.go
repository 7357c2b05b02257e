package testkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

// CloudServer is a mock cloud whose REST API answers at an address of 127.0.0.1.
// Tests control it by its methods.
type CloudServer struct {
	*mockcloud.Cloud

	// URL is the endpoint of the cloud. It stays the same when the cloud is
	// disconnected and connected again.
	URL string

	configure []func(*httptest.Server)
	server    *httptest.Server
	address   string
}

// ServeCloud starts a mock cloud on a free port. The server is changed by
// configure before it starts; it serves HTTPS if it has a TLS configuration then.
// Close it.
func ServeCloud(options mockcloud.Options, configure ...func(*httptest.Server)) (*CloudServer, error) {
	cloud, err := mockcloud.New(options)
	if err != nil {
		return nil, fmt.Errorf("making a mock cloud: %w", err)
	}
	c := &CloudServer{Cloud: cloud, configure: configure, address: "127.0.0.1:0"}
	if err := c.Connect(); err != nil {
		return nil, errors.Join(err, cloud.Close())
	}
	c.URL, c.address = c.server.URL, c.server.Listener.Addr().String()
	return c, nil
}

// Connect makes the cloud answer at its address again after Disconnect.
func (c *CloudServer) Connect() error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", c.address)
	if err != nil {
		return fmt.Errorf("listening for calls of a mock cloud: %w", err)
	}
	c.server = httptest.NewUnstartedServer(c.Handler())
	if err := c.server.Listener.Close(); err != nil {
		return fmt.Errorf("closing an unused listener: %w", err)
	}
	c.server.Listener = listener
	for _, change := range c.configure {
		change(c.server)
	}
	if c.server.TLS != nil {
		c.server.StartTLS()
	} else {
		c.server.Start()
	}
	return nil
}

// Disconnect takes the cloud off the network: connections to its address are
// refused. The cloud keeps its state. A client may connect until the listener is closed,
// and stay connected with a stream, so connections are closed until none is left.
func (c *CloudServer) Disconnect() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.server.Close()
	}()
	for {
		c.server.CloseClientConnections()
		select {
		case <-closed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// CloseClientConnections closes the connections that clients have open.
func (c *CloudServer) CloseClientConnections() { c.server.CloseClientConnections() }

// Close ends the cloud and its server. The cloud is first, since it releases
// the calls that it holds.
func (c *CloudServer) Close() error {
	err := c.Cloud.Close()
	c.Disconnect()
	return err
}

// FreeAddress returns an address of 127.0.0.1 at which nothing listens. Its port is below those that
// Linux gives to outgoing connections, which would take it before the caller listens.
func FreeAddress() (*net.TCPAddr, error) {
	var err error
	for range 100 {
		address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 20000 + rand.IntN(12000)}
		var listener net.Listener
		if listener, err = net.ListenTCP("tcp", address); err == nil {
			return address, listener.Close()
		}
	}
	return nil, fmt.Errorf("finding a free port: %w", err)
}
