package probe

// outcome is what is reported of a port, which a few results that differ do not change.
type outcome struct {
	reported Result
	// differing is how many failures in a row differ from what is reported.
	differing int
}

// add adds a result, and reports whether what is reported changes. A success changes it at once,
// and so does the first result. A failure changes it after as many in a row as threshold says,
// also if another failure is reported: a port that fails in turns in two ways does not flap.
func (o *outcome) add(result Result, threshold int) (changed bool) {
	switch {
	case result == Unknown:
		return false
	case result == o.reported:
		o.differing = 0
		return false
	case result != Open && o.reported != Unknown:
		o.differing++
		if o.differing < threshold {
			return false
		}
	}
	*o = outcome{reported: result}
	return true
}
