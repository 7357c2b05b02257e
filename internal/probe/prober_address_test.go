package probe

import (
	"fmt"
	"testing"
	"time"
)

func TestAnotherAddressHasAnotherResult(t *testing.T) {
	inBubble(t, func(b *bench) {
		first, second := at("10.0.0.5:22"), at("10.0.0.5:80")
		b.guests.set(first.Address, ignore)
		b.Watch(key("a"), first, Unknown)
		b.pass(time.Second) // it is being dialled
		b.Watch(key("a"), second, Unknown)
		b.pass(0)
		b.wantState("a", State{second.Address, Open})
		b.pass(30 * time.Second)
		b.wantState("a", State{second.Address, Open})
		b.wantChanges("a")
		if n := len(b.guests.dialled(first.Address)); n != 1 {
			b.Errorf("%d dials of an address that the VM does not have, want the one of before", n)
		}
	})
}

func TestAnotherAddressDoesNotAllowMoreChanges(t *testing.T) {
	inBubble(t, func(b *bench) {
		open, refused := at("10.0.0.5:22"), at("10.0.0.6:22")
		b.guests.set(refused.Address, refuse)
		recorded := Unknown
		for range 3 * burst {
			for _, target := range []Target{open, refused} {
				target.FailureThreshold = 1
				b.Watch(key("a"), target, recorded)
				b.pass(11 * time.Second)
				recorded = b.State("a").Result
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if n, most := len(b.changed), 2*(burst+1)+1; n > most {
			b.Errorf("%d changes of a guest that has two addresses in turns, want %d at most", n, most)
		}
	})
}

func TestAddressesOutsideTheNetworksAreNotDialled(t *testing.T) {
	inBubble(t, func(b *bench) {
		for i, address := range []string{"11.0.0.5:22", "127.0.0.1:22", "169.254.169.254:80", "[::1]:22", "[fe80::5]:22", "224.0.0.1:22", "0.0.0.0:22"} {
			b.Watch(key(fmt.Sprint(i)), at(address), Unknown)
		}
		b.Watch(key("moved"), at("10.0.0.5:22"), Unknown)
		b.pass(0)
		b.Watch(key("moved"), at("11.0.0.6:22"), Open)
		b.wantState("moved", State{})
		b.pass(time.Minute)
		for address, dials := range b.guests.dials {
			if address.String() != "10.0.0.5:22" || len(dials) != 1 {
				b.Errorf("dialled %s after %v, want it only while the VM had an address in the networks", address, dials)
			}
		}
	})
}
