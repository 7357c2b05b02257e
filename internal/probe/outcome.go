package probe

import "time"

// A port that opens and closes all the time would have its VM written, and an event recorded,
// at each change. burst changes may follow each other, and one more every interval; the loss of
// an open port does not count, since it is always reported: at most twice as many in total.
const (
	burst    = 4
	interval = 5 * time.Minute
)

// outcome is what is reported of a port, which a few results that differ do not change.
type outcome struct {
	reported Result
	// differing is how many failures in a row differ from what is reported.
	differing int
	// spent is when the last of the changes that were made would have been due, at one an interval.
	spent time.Time
}

// add adds a result, and reports whether what is reported changes. The first result does so at
// once. A success does so at once, too, and a failure after as many in a row as threshold says,
// also if another failure is reported: a port that fails in turns in two ways does not flap.
// After too many changes neither does so, but for the loss of an open port: it is Unsteady until
// another change is possible, and it is open then, or has failed threshold times in a row.
func (o *outcome) add(result Result, threshold int, now time.Time) (changed bool) {
	switch {
	case result == Unknown:
		return false
	case result == o.reported, result == Open:
		o.differing = 0
	case o.reported != Unknown:
		o.differing++
	}
	if result == o.reported || o.differing > 0 && o.differing < threshold {
		return false
	}
	switch may := o.may(now); {
	case o.reported == Unknown:
	case o.reported == Open && !may:
		result = Unsteady
	case o.reported == Open:
	case !may:
		return false
	default:
		o.spent = later(o.spent, now).Add(interval)
	}
	o.reported, o.differing = result, 0
	return true
}

// may reports whether there may be another change now.
func (o *outcome) may(now time.Time) bool { return !o.spent.After(now.Add((burst - 1) * interval)) }
