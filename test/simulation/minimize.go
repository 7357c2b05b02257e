package simulation

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// minimize returns a shorter trace that still fails. It tries at most this many traces.
func minimize(trace []string, tries int, fails func([]string) bool) []string {
	try := func(trace []string) bool {
		tries--
		return tries >= 0 && fails(trace)
	}
	return withoutParts(withoutProcesses(withoutParts(trace, try), try), try)
}

// withoutParts leaves out parts of a trace: halves first, then smaller ones, as delta debugging does.
func withoutParts(trace []string, fails func([]string) bool) []string {
	for size := len(trace) / 2; size > 0; {
		shorter := false
		for from := 0; from < len(trace); {
			candidate := slices.Concat(trace[:from], trace[min(from+size, len(trace)):])
			if fails(candidate) {
				trace, shorter = candidate, true
			} else {
				from += size
			}
		}
		if !shorter || size > len(trace) {
			size /= 2
		}
	}
	return trace
}

// withoutProcesses leaves out all decisions about a process, and gives those after it the names that
// they have without it.
func withoutProcesses(trace []string, fails func([]string) bool) []string {
	for n := 1; ; {
		candidate := withoutProcess(trace, n)
		switch {
		case len(candidate) == len(trace):
			return trace
		case fails(candidate):
			trace = candidate
		default:
			n++
		}
	}
}

var processName = regexp.MustCompile(`manager-(\d+)`)

// withoutProcess leaves out the process of this number. The first one is there from the start, so that
// the second one takes its place. It returns the same trace if there is no such process.
func withoutProcess(trace []string, number int) []string {
	started, all := 1, []string(nil)
	for _, name := range trace {
		if name == startAnother {
			started++
			if started == max(number, 2) {
				continue
			}
		}
		if processName.FindString(name) == fmt.Sprintf("manager-%d", number) {
			continue
		}
		all = append(all, processName.ReplaceAllStringFunc(name, func(process string) string {
			n, _ := strconv.Atoi(processName.FindStringSubmatch(process)[1])
			if n > number {
				n--
			}
			return fmt.Sprintf("manager-%d", n)
		}))
	}
	if started < max(number, 2) {
		return trace
	}
	return all
}
