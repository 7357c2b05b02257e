package behaviour_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"syscall"

	. "github.com/onsi/gomega"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// guestPort is the port of guests that readiness probes name.
const guestPort = 22

// guestPorts are the ports of guests that are open: listeners on loopback, by the address that
// the cloud shows.
var guestPorts = &openPorts{listeners: map[netip.AddrPort]net.Listener{}, dialled: map[netip.Addr]bool{}}

type openPorts struct {
	mu        sync.Mutex
	listeners map[netip.AddrPort]net.Listener
	dialled   map[netip.Addr]bool
}

// dial connects to the listener of an address. A port without one is closed.
func (p *openPorts) dial(ctx context.Context, address netip.AddrPort) error {
	p.mu.Lock()
	p.dialled[address.Addr()] = true
	listener := p.listeners[address]
	p.mu.Unlock()
	if listener == nil {
		return syscall.ECONNREFUSED
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	return conn.Close()
}

func (p *openPorts) wasDialled(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dialled[netip.MustParseAddr(address)]
}

// forget has wasDialled report only later connections to an address.
func (p *openPorts) forget(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.dialled, netip.MustParseAddr(address))
}

// openPort opens guestPort in the guest of a VM, at the latest until the case ends.
func (f *fixture) openPort(vm *pcapi.VM) (shut func()) {
	f.t.Helper()
	current, err := latest(vm)(f.t.Context())
	f.t.Expect(err).NotTo(HaveOccurred())
	f.t.Expect(current.Status.Network).NotTo(BeNil(), "the VM has an address")
	address := netip.AddrPortFrom(netip.MustParseAddr(current.Status.Network.PrimaryIP4), guestPort)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	f.t.Expect(err).NotTo(HaveOccurred())
	guestPorts.mu.Lock()
	guestPorts.listeners[address] = listener
	guestPorts.mu.Unlock()
	shut = sync.OnceFunc(func() {
		guestPorts.mu.Lock()
		delete(guestPorts.listeners, address)
		guestPorts.mu.Unlock()
		_ = listener.Close()
	})
	f.t.Cleanup(shut)
	return shut
}

// socketProbe returns a probe of guestPort that is as frequent as may be.
func socketProbe() *pcapi.VMReadinessProbe {
	return &pcapi.VMReadinessProbe{
		Address: &pcapi.VMAddressProbe{}, TCPSocket: &pcapi.VMTCPSocketProbe{Port: guestPort}, PeriodSeconds: 5, TimeoutSeconds: 1, FailureThreshold: 1,
	}
}
