package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestDialTCPSendsNothingAndClosesAtOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	address := netip.MustParseAddrPort(listener.Addr().String())
	if err := dialTCP(t.Context(), address); err != nil {
		t.Fatalf("dial of a port that accepts: %v", err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	switch sent, err := io.ReadAll(conn); {
	case len(sent) > 0:
		t.Errorf("sent %q, want nothing", sent)
	case err != nil && !errors.Is(err, syscall.ECONNRESET):
		t.Errorf("end of the connection: %v, want it closed or reset", err)
	}
}

func TestDialTCPOfPortWithoutListenerIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(listener.Addr().String())
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if got := resultOf(dialTCP(t.Context(), address)); got != Refused {
		t.Errorf("result %s, want %s", got, Refused)
	}
}

func TestResultOf(t *testing.T) {
	failed := func(errno syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
	}
	for name, test := range map[string]struct {
		err  error
		want Result
	}{
		"a connection":                    {nil, Open},
		"refused":                         {failed(syscall.ECONNREFUSED), Refused},
		"the timeout has passed":          {fmt.Errorf("dial: %w", context.DeadlineExceeded), NoAnswer},
		"no route: no more is reported":   {failed(syscall.EHOSTUNREACH), NoAnswer},
		"no network: no more is reported": {failed(syscall.ENETUNREACH), NoAnswer},
		"a reset: no more is reported":    {failed(syscall.ECONNRESET), NoAnswer},
		"no file descriptor: no result":   {failed(syscall.EMFILE), Unknown},
		"no port of this host: no result": {failed(syscall.EADDRNOTAVAIL), Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resultOf(test.err); got != test.want {
				t.Errorf("result %s, want %s", got, test.want)
			}
		})
	}
}
