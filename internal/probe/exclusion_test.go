package probe

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func excluding(texts ...string) *Exclusion {
	e := NewExclusion()
	e.Set(Owner{Kind: "Node", Name: "n1"}, prefixes(texts...)...)
	e.MarkComplete()
	return e
}

func TestExcludedAddressesAreNotAllowed(t *testing.T) {
	const everything = "0.0.0.0/0,::/0"
	e := excluding("10.0.0.5/32", "10.244.1.0/24", "10.250.0.9/16", "2a00::5/128", "fd00:244::/64", "::ffff:192.168.0.5/128", "::ffff:172.16.0.0/108")
	e.Set(Owner{Kind: "Node", Name: "n2"}, append(prefixes("10.0.0.6/32"), netip.Prefix{})...)
	for address, want := range map[string]bool{
		"10.0.0.4":        true,
		"10.0.0.5":        false,
		"10.0.0.6":        false,
		"10.243.255.255":  true,
		"10.244.1.0":      false,
		"10.244.1.255":    false,
		"10.244.2.0":      true,
		"10.250.77.1":     false,
		"192.168.0.5":     false,
		"192.168.0.6":     true,
		"172.16.3.4":      false,
		"172.32.3.4":      true,
		"2a00::5":         false,
		"2a00::6":         true,
		"fd00:244::1":     false,
		"fd00:244:0:1::1": true,
		"::ffff:10.0.0.4": false,
	} {
		t.Run(address, func(t *testing.T) {
			if got := mustParse(t, everything).Except(e).Allows(netip.MustParseAddr(address)); got != want {
				t.Errorf("allowed: %t, want %t", got, want)
			}
		})
	}
	for _, address := range []string{"::ffff:10.0.0.5", "2a00::5%eth0"} {
		if !e.Contains(netip.MustParseAddr(address)) {
			t.Errorf("%s is not excluded", address)
		}
	}
	if e.Contains(netip.Addr{}) {
		t.Error("no address is excluded")
	}
}

func TestExclusionOfOneOwnerLeavesThoseOfOthers(t *testing.T) {
	e, first, second := NewExclusion(), Owner{Kind: "Node", Name: "n1"}, Owner{Kind: "Node", Name: "n2"}
	changes := 0
	e.subscribe(func() { changes++ })
	wants := func(what, address string, excluded bool, changed int) {
		t.Helper()
		if got := e.Contains(netip.MustParseAddr(address)); got != excluded || changes != changed {
			t.Errorf("%s: %s is excluded: %t after %d changes, want %t after %d", what, address, got, changes, excluded, changed)
		}
	}
	e.Set(first, prefixes("10.0.0.5/32", "10.0.0.5/32", "10.1.0.0/16")...)
	e.Set(second, prefixes("10.0.0.5/32")...)
	wants("two have it", "10.0.0.5", true, 2)
	e.Set(first, prefixes("10.1.0.0/16", "10.0.0.5/32")...)
	wants("the same in another order", "10.0.0.5", true, 2)
	e.Set(first, prefixes("10.2.0.0/16")...)
	wants("the second has it still", "10.0.0.5", true, 3)
	wants("the first has another network", "10.1.0.1", false, 3)
	wants("the first has another network", "10.2.0.1", true, 3)
	e.Set(second)
	wants("nobody has it any more", "10.0.0.5", false, 4)
	if !e.Overlaps("Node", netip.MustParsePrefix("10.2.3.0/24")) || e.Overlaps("Node", netip.MustParsePrefix("10.3.0.0/16")) || e.Overlaps("other", netip.MustParsePrefix("10.2.0.0/16")) {
		t.Error("Overlaps, want it of 10.2.0.0/16 of Nodes alone")
	}
	e.Set(first)
	if len(e.of) != 0 || len(e.networks) != 0 || e.lengths != ([2][129]int{}) {
		t.Errorf("left: %v, %v", e.of, e.networks)
	}
}

// TestNoNetworksAllowWhatIsExcluded tries random networks and exclusions, and compares each with a
// search of all networks.
func TestNoNetworksAllowWhatIsExcluded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	address := func() netip.Addr {
		if random.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte{10, byte(random.IntN(2)), byte(random.IntN(4)), byte(random.IntN(256))})
		}
		return netip.AddrFrom16([16]byte{0xfd, 14: byte(random.IntN(4)), 15: byte(random.IntN(256))})
	}
	network := func() netip.Prefix {
		a := address()
		return netip.PrefixFrom(a, a.BitLen()-random.IntN(a.BitLen()/2)).Masked()
	}
	for range 2000 {
		networks, e, all := Networks{}, NewExclusion(), map[Owner][]netip.Prefix{}
		for range 1 + random.IntN(3) {
			networks.prefixes = append(networks.prefixes, network())
		}
		for range random.IntN(12) {
			owner := Owner{Name: fmt.Sprint(random.IntN(4))}
			all[owner] = nil
			for range random.IntN(4) {
				all[owner] = append(all[owner], network())
			}
			e.Set(owner, all[owner]...)
		}
		for range 20 {
			a := address()
			excluded := false
			for _, of := range all {
				excluded = excluded || anyContains(of, a)
			}
			if got, want := networks.Except(e).Allows(a), anyContains(networks.prefixes, a) && !excluded; got != want {
				t.Fatalf("networks %v without %v allow %s: %t, want %t", networks.prefixes, all, a, got, want)
			}
		}
	}
}

func TestExclusionIsUsedConcurrently(t *testing.T) {
	e := NewExclusion()
	var all sync.WaitGroup
	for i := range 8 {
		owner := Owner{Name: fmt.Sprint(i)}
		all.Go(func() {
			for n := range 200 {
				e.Set(owner, Single(netip.AddrFrom4([4]byte{10, byte(i), 0, byte(n)})))
				e.Contains(netip.AddrFrom4([4]byte{10, byte(i + 1), 0, byte(n)}))
				e.Overlaps("", netip.MustParsePrefix("10.0.0.0/8"))
				e.subscribe(func() {})
			}
			e.Set(owner)
			e.MarkComplete()
		})
	}
	all.Wait()
	if len(e.networks) != 0 {
		t.Errorf("left: %v", e.networks)
	}
}

func TestProberWithoutExclusionDials(t *testing.T) {
	if networks := mustParse(t, "10.0.0.0/8"); !networks.Complete() || !networks.Allows(netip.MustParseAddr("10.0.0.5")) {
		t.Error("networks without an exclusion wait for one")
	}
}

// exclude excludes these addresses, and no others.
func (b *bench) exclude(e *Exclusion, addresses ...string) {
	b.Helper()
	e.Set(Owner{Kind: "Node", Name: "n1"}, prefixes(addresses...)...)
	b.pass(0)
}

func (b *bench) wantExcluded(targets, excluded float64) {
	b.Helper()
	if t, x := testutil.ToFloat64(b.metrics.targets), testutil.ToFloat64(b.metrics.excluded); t != targets || x != excluded {
		b.Errorf("%v targets and %v excluded ones, want %v and %v", t, x, targets, excluded)
	}
}

func TestNothingIsDialledBeforeTheExclusionIsComplete(t *testing.T) {
	inBubbleExcept(t, func(b *bench, e *Exclusion) {
		b.Watch(key("guest"), at("10.0.0.5:22"), Unknown)
		b.Watch(key("node"), at("10.0.0.6:22"), Open)
		b.Watch(key("free"), at("10.0.0.7:22"), Unknown)
		b.pass(time.Hour)
		b.exclude(e, "10.0.0.6/32")
		if n := len(b.guests.dials); n != 0 {
			b.Errorf("%d addresses were dialled", n)
		}
		b.wantChanges()
		e.MarkComplete()
		b.pass(time.Minute)
		b.wantState("guest", State{at("10.0.0.5:22").Address, Open})
		b.wantState("node", State{})
		if n := len(b.guests.dialled(at("10.0.0.6:22").Address)); n != 0 {
			b.Errorf("%d dials of a Node", n)
		}
		slices.Sort(b.changed)
		b.wantChanges("free", "guest", "node")
		b.wantExcluded(2, 1)
	})
}

func TestProberEndsBeforeTheExclusionIsComplete(t *testing.T) {
	inBubbleExcept(t, func(b *bench, _ *Exclusion) { b.pass(0) })
}

func TestAddressThatIsExcludedLaterIsNotDialledAnyMore(t *testing.T) {
	inBubbleExcept(t, func(b *bench, e *Exclusion) {
		e.MarkComplete()
		target, other := at("10.0.0.5:22"), at("10.0.0.9:22")
		target.Period = time.Hour
		b.Watch(key("a"), target, Unknown)
		b.Watch(key("other"), other, Open)
		b.pass(11 * time.Second)
		b.wantChanges("a")

		b.exclude(e, "10.0.0.0/29")
		b.wantChanges("a") // before it is due
		b.wantState("a", State{})
		b.Watch(key("a"), target, Unknown) // as the reconcile does that follows
		b.wantExcluded(1, 1)
		b.pass(5 * time.Hour)
		if n := len(b.guests.dialled(target.Address)); n != 1 {
			b.Errorf("%d dials, want the one of before", n)
		}
		b.wantChanges()

		b.exclude(e)
		b.wantChanges("a")
		b.wantExcluded(1, 0)
		b.Watch(key("a"), target, Unknown)
		b.pass(0)
		b.wantState("a", State{target.Address, Open})
		b.wantChanges("a")
	})
}

func TestResultOfAddressThatIsExcludedMeanwhileIsDropped(t *testing.T) {
	inBubbleExcept(t, func(b *bench, e *Exclusion) {
		e.MarkComplete()
		target := at("10.0.0.5:22")
		b.guests.set(target.Address, ignore)
		b.Watch(key("a"), target, Unknown)
		b.pass(time.Second) // it is being dialled
		b.exclude(e, "10.0.0.5/32")
		b.wantChanges("a")
		b.pass(time.Minute)
		b.wantState("a", State{})
		b.wantChanges()
		b.Forget("a")
		b.wantExcluded(0, 0)
		b.exclude(e)
		b.wantChanges()
		if len(b.excluded) > 0 || len(b.schedule.lanes) > 0 {
			b.Errorf("forgotten targets are kept: %v, %v", b.excluded, b.schedule.lanes)
		}
	})
}

// TestEachDialLooksAtTheExclusion has no change announced, as in the moment before it is.
func TestEachDialLooksAtTheExclusion(t *testing.T) {
	inBubbleExcept(t, func(b *bench, e *Exclusion) {
		e.subscribers = nil
		e.MarkComplete()
		target := at("10.0.0.5:22")
		b.Watch(key("a"), target, Unknown)
		b.pass(0)
		b.wantChanges("a")
		b.exclude(e, "10.0.0.5/32")
		b.pass(time.Minute)
		b.wantChanges("a")
		b.wantExcluded(0, 1)
		if n := len(b.guests.dialled(target.Address)); n != 1 {
			b.Errorf("%d dials, want the one of before", n)
		}
	})
}

func TestAddressOutsideOfTheNetworksIsNotCountedAsExcluded(t *testing.T) {
	inBubbleExcept(t, func(b *bench, e *Exclusion) {
		e.MarkComplete()
		b.Watch(key("a"), at("11.0.0.5:22"), Unknown)
		b.wantExcluded(0, 0)
		b.Watch(key("a"), at("10.0.0.5:22"), Unknown)
		b.exclude(e, "10.0.0.5/32")
		b.wantExcluded(0, 1)
		b.Watch(key("a"), at("11.0.0.5:22"), Unknown)
		b.wantExcluded(0, 0)
	})
}

// BenchmarkAllows looks an address up beside those of up to 5,000 Nodes with two addresses and two
// networks of Pods each.
func BenchmarkAllows(b *testing.B) {
	for _, n := range []int{5, 5_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := NewExclusion()
			for i := range n {
				x, y := byte(i>>8), byte(i)
				e.Set(Owner{Kind: "Node", Name: fmt.Sprint(i)},
					Single(netip.AddrFrom4([4]byte{10, 1, x, y})), Single(netip.AddrFrom16([16]byte{0xfd, 14: x, 15: y})))
				e.Set(Owner{Kind: "Pods", Name: fmt.Sprint(i)},
					netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128 | x, y, 0}), 24), netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 1, 6: x, 7: y}), 64))
			}
			networks, address := mustParse(b, "10.0.0.0/8,fd00::/8").Except(e), netip.MustParseAddr("10.9.9.9")
			for b.Loop() {
				if !networks.Allows(address) {
					b.Fatal("not allowed")
				}
			}
		})
	}
}
