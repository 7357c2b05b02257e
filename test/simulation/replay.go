package simulation

import "slices"

// replay makes the choices of a trace, in their order. Those that cannot be made are left out.
type replay struct{ names []string }

func (r *replay) choose(choices []choice) *choice {
	for len(r.names) > 0 {
		name := r.names[0]
		r.names = r.names[1:]
		if i := slices.IndexFunc(choices, func(c choice) bool { return c.name == name }); i >= 0 {
			return &choices[i]
		}
	}
	return nil
}

// minimize returns a shorter trace that still fails, by leaving out parts of it: halves first, then
// smaller ones, as delta debugging does. It tries at most this many traces.
func minimize(trace []string, tries int, fails func([]string) bool) []string {
	for size := len(trace) / 2; size > 0; {
		shorter := false
		for from := 0; from < len(trace) && tries > 0; tries-- {
			candidate := slices.Concat(trace[:from], trace[min(from+size, len(trace)):])
			if fails(candidate) {
				trace, shorter = candidate, true
			} else {
				from += size
			}
		}
		if tries == 0 {
			break
		}
		if !shorter || size > len(trace) {
			size /= 2
		}
	}
	return trace
}
