package simulation

import "slices"

const (
	// goOn stands in a trace for all that can happen without a fault, one after the other.
	goOn = "go on"
	// patience bounds the steps that are made before a choice of a trace.
	patience = 100
)

// replay makes the choices of a trace, in their order. While the next one cannot be made, what can
// happen without a fault does, so that a trace need not have every call. A choice that cannot be
// made even then is left out.
type replay struct {
	names []string
	// trace is what was done: goOn instead of choices that were left out.
	trace   []string
	leftOut int
	// steps counts those before the next choice.
	steps int
}

func (r *replay) choose(choices []choice) *choice {
	for len(r.names) > 0 {
		name := r.names[0]
		if i := slices.IndexFunc(choices, func(c choice) bool { return c.name == name }); i >= 0 {
			r.next(name)
			return &choices[i]
		}
		if first := &choices[0]; first.class <= finish && r.steps < patience {
			r.steps++
			return first
		}
		if name != goOn {
			r.leftOut++
		}
		r.next(goOn)
	}
	return nil
}

// next moves to the next choice of the trace.
func (r *replay) next(done string) {
	r.trace = append(r.trace, done)
	r.names, r.steps = r.names[1:], 0
}
