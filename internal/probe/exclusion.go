package probe

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// Owner is whose addresses an Exclusion has.
type Owner struct {
	Kind, Name string
}

// Exclusion is the addresses and networks that are not dialled, although they are in the
// Networks: those of the platform. It is safe for concurrent use. Nothing is dialled before it is
// complete.
type Exclusion struct {
	complete chan struct{}

	mu sync.RWMutex
	// of has what each owner has. An address is a network of its own.
	of map[Owner][]netip.Prefix
	// networks are those of all owners, with the number of owners. lengths is the number of
	// networks of each length: of IPv4, and of IPv6.
	networks    map[netip.Prefix]int
	lengths     [2][129]int
	subscribers []func()
}

// NewExclusion returns an Exclusion of nothing, which is not complete.
func NewExclusion() *Exclusion {
	return &Exclusion{complete: make(chan struct{}), of: map[Owner][]netip.Prefix{}, networks: map[netip.Prefix]int{}}
}

// Single returns an address as a network.
func Single(address netip.Addr) netip.Prefix { return netip.PrefixFrom(address, address.BitLen()) }

// Set replaces the networks of an owner. Networks that are not valid are ignored.
func (e *Exclusion) Set(owner Owner, networks ...netip.Prefix) {
	networks = normal(networks)
	e.mu.Lock()
	was := e.of[owner]
	if slices.Equal(was, networks) {
		e.mu.Unlock()
		return
	}
	if len(networks) == 0 {
		delete(e.of, owner)
	} else {
		e.of[owner] = networks
	}
	for _, network := range networks {
		e.count(network, 1)
	}
	for _, network := range was {
		e.count(network, -1)
	}
	subscribers := e.subscribers
	e.mu.Unlock()
	for _, fn := range subscribers {
		fn()
	}
}

// count adds to the number of owners of a network. The caller holds the lock.
func (e *Exclusion) count(network netip.Prefix, n int) {
	lengths := &e.lengths[family(network.Addr())]
	if e.networks[network] == 0 {
		lengths[network.Bits()]++
	}
	if e.networks[network] += n; e.networks[network] == 0 {
		delete(e.networks, network)
		lengths[network.Bits()]--
	}
}

// Contains reports whether an address is excluded. It takes one look-up for each length of the
// networks, however many there are.
func (e *Exclusion) Contains(address netip.Addr) bool {
	if e == nil || !address.IsValid() {
		return false
	}
	address = address.Unmap().WithZone("")
	e.mu.RLock()
	defer e.mu.RUnlock()
	lengths := &e.lengths[family(address)]
	for bits := range address.BitLen() + 1 {
		if lengths[bits] == 0 {
			continue
		}
		if network, err := address.Prefix(bits); err == nil && e.networks[network] > 0 {
			return true
		}
	}
	return false
}

// Overlaps reports whether an owner of a kind has an address in a network.
func (e *Exclusion) Overlaps(kind string, network netip.Prefix) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for owner := range maps.Keys(e.of) {
		if owner.Kind == kind && slices.ContainsFunc(e.of[owner], network.Overlaps) {
			return true
		}
	}
	return false
}

// MarkComplete allows connections to the addresses that are not excluded.
func (e *Exclusion) MarkComplete() {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.complete:
	default:
		close(e.complete)
	}
}

// subscribe registers fn, which is called after each change.
func (e *Exclusion) subscribe(fn func()) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subscribers = append(e.subscribers, fn)
}

// completed returns a channel that is closed once the Exclusion is complete.
func (e *Exclusion) completed() <-chan struct{} {
	if e == nil {
		return always
	}
	return e.complete
}

// always is closed.
var always = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// normal returns networks in the form in which they are compared, sorted, each once.
func normal(networks []netip.Prefix) []netip.Prefix {
	var all []netip.Prefix
	for _, network := range networks {
		if address, bits := network.Addr(), network.Bits(); address.Is4In6() && bits >= 96 {
			network = netip.PrefixFrom(address.Unmap(), bits-96)
		}
		if network.IsValid() {
			all = append(all, network.Masked())
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}

func family(address netip.Addr) int {
	if address.Is4() {
		return 0
	}
	return 1
}
