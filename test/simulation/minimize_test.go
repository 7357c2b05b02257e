package simulation

import (
	"fmt"
	"slices"
	"testing"
)

func TestMinimizeLeavesOutWhatIsNotNeeded(t *testing.T) {
	trace := []string{
		"kill manager-1", startAnother, "pause manager-2", "wait 20s", startAnother, "deliver manager-3 VM", "wait 20s", startAnother, "kill manager-4", "kill manager-3",
	}
	// It fails if a process is killed after a delivery to it, and it is not the first one.
	fails := func(trace []string) bool {
		for started := 2; started <= 3; started++ {
			process, starts, delivered := fmt.Sprintf("manager-%d", started), 1, false
			for _, name := range trace {
				switch {
				case name == startAnother:
					starts++
				case name == "deliver "+process+" VM":
					delivered = starts >= started
				case name == "kill "+process && delivered:
					return true
				}
			}
		}
		return false
	}
	want := []string{startAnother, "deliver manager-2 VM", "kill manager-2"}
	if got := minimize(trace, 1000, fails); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := minimize(trace, 0, fails); !slices.Equal(got, trace) {
		t.Errorf("without a try, the trace is %q", got)
	}
}
