package inventory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

// known is what an overlay knows, without what only makes it fast.
func known(o *overlay) map[string]overlayEntry {
	entries := map[string]overlayEntry{}
	for id, e := range o.entries {
		entries[id] = *e
	}
	return entries
}

// An overlay learns the same of a snapshot from the servers that changed as from all.
func TestAmendKnowsWhatPublishKnows(t *testing.T) {
	const settleTime = 20 * time.Second
	states := []cloud.State{cloud.StateActive, cloud.StateBuilding, cloud.StateDeleting}
	begin := time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		now, snap := begin, newSnapshot(begin)
		whole, part := newOverlay("c"), newOverlay("c")
		both := func(do func(*overlay)) { do(whole); do(part) }
		anyServer := func() cloud.Server {
			id := random.IntN(8)
			s := cloud.Server{ID: fmt.Sprint(id), State: states[random.IntN(3)], CreatedAt: begin, UpdatedAt: now}
			if id > 0 {
				s.Labels = map[string]string{UIDLabel: fmt.Sprint("uid", id), ClusterLabel: "c"}
			}
			return s
		}
		for step := range 200 {
			now = now.Add(time.Duration(random.IntN(3000)) * time.Millisecond)
			s, created := anyServer(), random.IntN(2) == 0
			var published, amended published
			switch random.IntN(6) {
			case 0:
				both(func(o *overlay) { o.discard(s.ID); o.track(s.ID, snap.state(s.ID), now) })
			case 1, 2:
				both(func(o *overlay) { o.record("uid", s, now, created); o.track(s.ID, snap.state(s.ID), now) })
			case 3:
				both(func(o *overlay) { o.deleted(s.ID, now, settleTime) })
				published = whole.publish(snap, settleTime, now)
				amended = part.amend(snap, []string{s.ID}, settleTime, now)
			case 4:
				next, _ := snap.amended(changes{s.ID: newListed(&s)})
				next.current = later(snap.current, now.Add(-time.Duration(random.IntN(2000))*time.Millisecond))
				snap = next
				published = whole.publish(snap, settleTime, now)
				amended = part.amend(snap, []string{s.ID}, settleTime, now)
			case 5: // a listing, or a comparison: all is compared
				next, _ := snap.amended(changes{s.ID: nil})
				next.Begun, next.current = now, now
				snap = next
				published, amended = whole.publish(snap, settleTime, now), part.publish(snap, settleTime, now)
			}
			hidden := slices.ContainsFunc([]string{"0", "1", "2", "3", "4", "5", "6", "7"}, func(id string) bool { return whole.recorded(id) != nil })
			awaited := false
			for _, e := range whole.entries {
				awaited = awaited || now.Before(e.deadline)
			}
			slices.Sort(published.superseded)
			slices.Sort(amended.superseded)
			want := []any{known(whole), published.superseded, published.progress, hidden, awaited}
			got := []any{known(part), amended.superseded, amended.progress, part.hidesAny(), part.awaitsAny(now)}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(overlayEntry{}, listed{}, owner{}), cmpopts.EquateComparable(unique.Handle[cloud.Disks]{}, unique.Handle[string]{}, unique.Handle[traits]{})); diff != "" {
				t.Fatalf("seed %d, step %d: entries, superseded, progress, hides any, awaits any (-want +got):\n%s", seed, step, diff)
			}
		}
	}
}
