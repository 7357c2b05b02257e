package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// Dial opens a connection to an address and closes it at once. It returns an error if there was
// none before ctx ended.
type Dial func(ctx context.Context, address netip.AddrPort) error

// dialTCP sends and reads nothing. It resets the connection, so that no socket of this host waits
// for the other end to close it.
func dialTCP(ctx context.Context, address netip.AddrPort) error {
	dialer := net.Dialer{KeepAlive: -1}
	conn, err := dialer.DialContext(ctx, "tcp", address.String())
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it, the socket only waits
	}
	_ = conn.Close() // the connection was there, whatever its end says
	return nil
}

// Result is what is known of a port.
type Result uint8

const (
	// Unknown is that it was not dialled yet.
	Unknown Result = iota
	// Open is that it accepts connections.
	Open
	// Refused is that its host refused the connection.
	Refused
	// NoAnswer is that there was no connection within the timeout, for any other reason.
	NoAnswer
	// Unsteady is that it was lost after too many changes. No dial ends so.
	Unsteady
)

// lacks are errors for want of something on this host, which say nothing about a port.
var lacks = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}

// resultOf returns what the error of a Dial says about the port; Unknown if nothing.
func resultOf(err error) Result {
	switch {
	case err == nil:
		return Open
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case slices.ContainsFunc(lacks, func(lack error) bool { return errors.Is(err, lack) }):
		return Unknown
	}
	return NoAnswer
}

// String returns the label of the result in metrics.
func (r Result) String() string {
	switch r {
	case Open:
		return "open"
	case Refused:
		return "refused"
	case NoAnswer:
		return "no_answer"
	case Unsteady:
		return "unsteady"
	default:
		return "error"
	}
}
