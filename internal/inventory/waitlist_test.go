package inventory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWaitlistHoldsEachObjectWithItsLatestTime(t *testing.T) {
	begin := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		at := func() time.Time { return begin.Add(time.Duration(1+random.IntN(50)) * time.Second) }
		list, want := newWaitlist(), map[Ref]time.Time{}
		for step := range 500 {
			ref := Ref{Name: fmt.Sprint(random.IntN(10))}
			switch random.IntN(10) {
			case 0:
				list.drop(ref)
				delete(want, ref)
			case 1:
				begun, served := at(), []Ref(nil)
				for ref, since := range want {
					if !since.After(begun) {
						served = append(served, ref)
						delete(want, ref)
					}
				}
				got := list.take(begun)
				slices.SortFunc(got, Ref.compare)
				slices.SortFunc(served, Ref.compare)
				if diff := cmp.Diff(served, got); diff != "" {
					t.Fatalf("seed %d, step %d: served by a listing (-want +got):\n%s", seed, step, diff)
				}
			default:
				since := at()
				later := want[ref].Before(since)
				if later {
					want[ref] = since
				}
				if added := list.add(ref, since); added != later {
					t.Fatalf("seed %d, step %d: added = %t, want %t", seed, step, added, later)
				}
			}
			var first, last time.Time
			for _, since := range want {
				if first.IsZero() || since.Before(first) {
					first = since
				}
				last = later(last, since)
			}
			earliest, waits := list.earliest()
			latest, _ := list.latest()
			if diff := cmp.Diff([]any{first, last, len(want) > 0}, []any{earliest, latest, waits}); diff != "" {
				t.Fatalf("seed %d, step %d: earliest, latest, any (-want +got):\n%s", seed, step, diff)
			}
			if len(list.order) > 2*len(want)+32 {
				t.Fatalf("seed %d, step %d: %d places for %d objects", seed, step, len(list.order), len(want))
			}
		}
		if got := list.takeAll(); len(got) != len(want) || len(list.takeAll()) > 0 {
			t.Fatalf("seed %d: takeAll = %v, want the objects %v, once", seed, got, want)
		}
	}
}
