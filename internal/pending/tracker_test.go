package pending

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var start = time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)

func TestUnknownSince(t *testing.T) {
	began := start
	tests := []struct {
		name string
		do   func(*Tracker)
		want time.Time
	}{
		{name: "no record: another process may have sent a create until the claim was observed", do: func(*Tracker) {}, want: began},
		{name: "two creates: the last one counts", do: func(c *Tracker) { c.Unknown("a", began.Add(time.Minute)); c.Unknown("a", began.Add(time.Hour)) }, want: began.Add(time.Hour)},
		{name: "an answered create that is not on record yet counts: a listing may lag behind it", do: func(c *Tracker) { c.Created("a", "s1", began.Add(time.Minute)) }, want: began.Add(time.Minute)},
		{name: "a create of another object does not count", do: func(c *Tracker) { c.Unknown("b", began.Add(time.Hour)) }, want: began},
		{name: "a forgotten create does not count", do: func(c *Tracker) { c.Unknown("a", began.Add(time.Hour)); c.Forget("a") }, want: began},
		{name: "a refused create cannot take effect", do: func(c *Tracker) { c.Refused("a") }},
		{name: "a create sent after a refused one counts", do: func(c *Tracker) { c.Refused("a"); c.Unknown("a", began.Add(time.Hour)) }, want: began.Add(time.Hour)},
		{name: "a clock that was set back: the observation of the claim counts", do: func(c *Tracker) { c.Unknown("a", began.Add(-time.Hour)) }, want: began},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := NewTracker()
			tc.do(c)
			if got := c.UnknownSince("a", began); !got.Equal(tc.want) {
				t.Errorf("unknown since %v, want %v", got, tc.want)
			}
		})
	}
}

func TestClaimedSinceReturnsTheFirstObservation(t *testing.T) {
	c := NewTracker()
	for _, now := range []time.Time{start, start.Add(time.Hour)} {
		if got := c.ClaimedSince("a", "", now); !got.Equal(start) {
			t.Errorf("at %v: claimed since %v, want %v", now, got, start)
		}
	}
	c.Forget("a")
	if got := c.ClaimedSince("a", "", start.Add(time.Hour)); !got.Equal(start.Add(time.Hour)) {
		t.Errorf("after it was forgotten: claimed since %v, want the next observation", got)
	}
}

func TestAClaimThatAnotherManagerRenewsIsObservedAnewAndLeavesItsCreateOpen(t *testing.T) {
	c := NewTracker()
	later := start.Add(time.Hour)
	c.ClaimedSince("a", "", start)
	c.Refused("a")
	c.Renewed("a", "own")
	if got := c.ClaimedSince("a", "own", later); !got.Equal(start) || !c.AllRefused("a") {
		t.Errorf("after a renewal of its own: claimed since %v, all refused is %v, want %v and true", got, c.AllRefused("a"), start)
	}
	if got := c.ClaimedSince("a", "another", later); !got.Equal(later) || c.AllRefused("a") {
		t.Errorf("after a renewal of another manager: claimed since %v, all refused is %v, want %v and false", got, c.AllRefused("a"), later)
	}
}

func TestRecordedKeepsAnswersToDeletionsAndChanges(t *testing.T) {
	c := NewTracker()
	c.Created("a", "s1", start)
	c.Recorded("a")
	if c.Len() != 0 {
		t.Errorf("%d records after the id was recorded, want none", c.Len())
	}
	c.Removed("a", start, Gone)
	c.Removed("a", start.Add(time.Minute), Unclear)
	c.Recorded("a")
	if at, deleting := c.RemovedAt("a"); !at.Equal(start.Add(time.Minute)) || !deleting {
		t.Errorf("removed at %v, deleting %t, want the last answer and that one said so", at, deleting)
	}
	c.Changed("a", 2, start)
	if before := c.Changed("a", 2, start.Add(time.Minute)); !before.Equal(start) {
		t.Errorf("the same change was answered before at %v, want %v", before, start)
	}
	if before := c.Changed("a", 4, start.Add(time.Minute)); !before.IsZero() {
		t.Errorf("another change was answered before at %v, want never", before)
	}
	c.Recorded("a")
	if before := c.Changed("a", 4, start.Add(time.Hour)); !before.Equal(start.Add(time.Minute)) {
		t.Error("the last change was forgotten when the id was recorded")
	}
	c.Forget("a")
	if c.Len() != 0 {
		t.Errorf("%d records after the object is gone, want none", c.Len())
	}
}

func TestCreatedIDReturnsIDOfCreate(t *testing.T) {
	type answer struct {
		ID    string
		Known bool
	}
	c := NewTracker()
	made := func() answer {
		id, known := c.CreatedID("a")
		return answer{id, known}
	}
	c.Unknown("a", start)
	want := func(when string, want answer) {
		t.Helper()
		if got := made(); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	want("before the answer", answer{})
	c.Created("a", "s1", start)
	want("after the answer", answer{"s1", true})
	c.DeletedSince("a", start)
	c.Refused("a")
	c.Forget("a")
	want("after the id is recorded", answer{})
	if c.Len() != 0 {
		t.Errorf("%d records, want none", c.Len())
	}
}

func TestDeletedSinceReturnsTheFirstObservation(t *testing.T) {
	m := NewTracker()
	for _, now := range []time.Time{start, start.Add(time.Hour)} {
		if got := m.DeletedSince("a", now); !got.Equal(start) {
			t.Errorf("at %v: deleted since %v, want %v", now, got, start)
		}
	}
}

// TestTrackerConcurrently finds data races; run it with -race.
func TestTrackerConcurrently(*testing.T) {
	m := NewTracker()
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			uid := types.UID(fmt.Sprint(n % 2))
			for range 200 {
				m.Unknown(uid, start)
				m.Created(uid, "s1", start)
				m.CreatedID(uid)
				m.UnknownSince(uid, start)
				m.DeletedSince(uid, start)
				m.Refused(uid)
				m.Forget(uid)
			}
		})
	}
	group.Wait()
}

func TestDeletionThatFailedIsRemembered(t *testing.T) {
	c := NewTracker()
	c.Removed("a", start, Gone)
	c.Kept("a", start.Add(time.Minute))
	c.Recorded("a")
	if at := c.KeptAt("a"); !at.Equal(start.Add(time.Minute)) {
		t.Errorf("failed at %v, want a minute after the start", at)
	}
	if _, deleting := c.RemovedAt("a"); deleting {
		t.Error("a resource whose deletion failed counts as being deleted")
	}
}

func TestOperationIsKeptUntilItEnds(t *testing.T) {
	c := NewTracker()
	began := Operation{ID: "op", Kind: OperationCreate, Since: start, Only: true}
	c.Began("a", began)
	c.Created("a", "s1", start)
	c.Recorded("a")
	if got, ok := c.Operation("a"); !ok || got != began {
		t.Errorf("after the id was recorded: %+v, %v; want %+v", got, ok, began)
	}
	c.Ended("a", "")
	if _, ok := c.Operation("a"); ok || c.Len() != 0 {
		t.Errorf("after it ended: known %v, %d records; want neither", ok, c.Len())
	}
}

func TestOperationThatEndedIsKnownAsLongAsTheStatusShowsIt(t *testing.T) {
	c := NewTracker()
	c.Ended("a", "op")
	for _, recorded := range []string{"op", "op"} {
		if !c.HasEnded("a", recorded) {
			t.Errorf("the operation %q that ended is not known as ended", recorded)
		}
	}
	if c.HasEnded("a", "op2") || c.HasEnded("a", "op") || c.Len() != 0 {
		t.Errorf("after the status shows another operation, that one counts as ended, or the first one is still known: %d records", c.Len())
	}
	if c.HasEnded("a", "") {
		t.Error("no operation counts as one that ended")
	}
}

func TestRefusalIsThatOfOneGeneration(t *testing.T) {
	c := NewTracker()
	c.Refuse("a", Refusal{Generation: 2, Reason: "no"})
	c.Recorded("a")
	for generation, want := range map[int64]string{1: "", 2: "no", 3: ""} {
		if reason, ok := c.RefusalOf("a", generation); ok != (want != "") || reason != want {
			t.Errorf("generation %d: %q, %v; want %q", generation, reason, ok, want)
		}
	}
}

func TestTheFirstDeletionOfAnIDSaysWhenItsResourceWasCreated(t *testing.T) {
	c := NewTracker()
	c.Deletes("a", "s1", time.Time{})
	if c.CreatedLater("a", "s1", start.Add(time.Hour)) {
		t.Error("later than an unknown time")
	}
	c.Deletes("a", "s1", start)
	c.Deletes("a", "s1", start.Add(time.Hour))
	for _, tc := range []struct {
		name, id string
		made     time.Time
		want     bool
	}{
		{"created an hour later", "s1", start.Add(time.Hour), true},
		{"created at that time", "s1", start, false},
		{"in the same second", "s1", start.Add(time.Second - 1), false},
		{"at an unknown time", "s1", time.Time{}, false},
		{"of another id", "s2", start.Add(time.Hour), false},
	} {
		if got := c.CreatedLater("a", tc.id, tc.made); got != tc.want {
			t.Errorf("%s: later is %t, want %t", tc.name, got, tc.want)
		}
	}
}

func TestListingProvesADeletionOnlyOfWhatWasSaidOrListed(t *testing.T) {
	begun := start.Add(time.Second)
	listed := func(c *Tracker) { c.Listed("a", begun) }
	answered := func(answer Answer) func(*Tracker) {
		return func(c *Tracker) { c.Removed("a", begun.Add(time.Second), answer) }
	}
	read := func(deleting bool) func(*Tracker) { return func(c *Tracker) { c.Read("a", deleting) } }
	failed := func(c *Tracker) { c.Kept("a", begun.Add(2*time.Second)) }
	later := func(c *Tracker) { c.Listed("a", begun.Add(time.Minute)) }
	for name, tc := range map[string]struct {
		does []func(*Tracker)
		want bool
	}{
		"nothing is known":                                    {nil, false},
		"listed, and nothing answered":                        {[]func(*Tracker){listed}, false},
		"listed, and the answer unclear":                      {[]func(*Tracker){listed, answered(Unclear)}, false},
		"gone":                                                {[]func(*Tracker){answered(Gone)}, true},
		"gone, then unclear":                                  {[]func(*Tracker){answered(Gone), answered(Unclear)}, true},
		"gone, then read":                                     {[]func(*Tracker){answered(Gone), read(false)}, false},
		"gone, then read, and listed before":                  {[]func(*Tracker){listed, answered(Gone), read(false)}, true},
		"accepted":                                            {[]func(*Tracker){answered(Accepted)}, false},
		"listed, then accepted":                               {[]func(*Tracker){listed, answered(Accepted)}, true},
		"listed, accepted, read":                              {[]func(*Tracker){listed, answered(Accepted), read(false)}, true},
		"listed, accepted, read being deleted":                {[]func(*Tracker){listed, answered(Accepted), read(true)}, false},
		"the same, and the older listing again":               {[]func(*Tracker){listed, answered(Accepted), read(true), listed}, false},
		"the same, and listed since":                          {[]func(*Tracker){listed, answered(Accepted), read(true), later, read(true)}, true},
		"listed, accepted, failed":                            {[]func(*Tracker){listed, answered(Accepted), failed}, false},
		"listed, accepted, failed, accepted, and listed then": {[]func(*Tracker){listed, answered(Accepted), failed, answered(Accepted), listed}, false},
		"the same, and listed later":                          {[]func(*Tracker){listed, answered(Accepted), failed, answered(Accepted), later}, true},
	} {
		c := NewTracker()
		for _, do := range tc.does {
			do(c)
			c.Recorded("a")
		}
		if got := c.ListingProves("a"); got != tc.want {
			t.Errorf("%s: a listing proves it: %t, want %t", name, got, tc.want)
		}
	}
}
