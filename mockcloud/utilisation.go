package mockcloud

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"
)

// utilisation returns the CPU utilization of a server at a time in percent, 0-100.
// It is a pure function: clouds with the same seed agree.
type utilisation func(id string, at time.Time) int

func parseUtilisation(model string) (utilisation, error) {
	kind, arg, _ := strings.Cut(model, ":")
	switch kind {
	case "fixed":
		percent, err := strconv.Atoi(arg)
		if err != nil || percent < 0 || percent > 100 {
			return nil, fmt.Errorf("utilisation %q: fixed:N needs N of 0-100", model)
		}
		return func(string, time.Time) int { return percent }, nil
	case "sine":
		period := 10 * time.Minute
		if arg != "" {
			parsed, err := time.ParseDuration(arg)
			if err != nil || parsed <= 0 {
				return nil, fmt.Errorf("utilisation %q: sine:PERIOD needs a positive duration", model)
			}
			period = parsed
		}
		return sine(period), nil
	case "walk":
		var seed uint64
		if arg != "" {
			parsed, err := strconv.ParseUint(arg, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("utilisation %q: walk:SEED needs a number", model)
			}
			seed = parsed
		}
		return walk(seed), nil
	}
	return nil, fmt.Errorf("unknown utilisation %q: it is fixed:N, sine[:PERIOD] or walk[:SEED]", model)
}

func sine(period time.Duration) utilisation {
	return func(id string, at time.Time) int {
		phase := float64(hash(0, id, 0)%1000) / 1000
		cycles := float64(at.UnixNano()%int64(period))/float64(period) + phase
		return int(math.Round(50 + 50*math.Sin(2*math.Pi*cycles)))
	}
}

// walkStep is the time between two random levels. A hash produces the levels, so
// that no state per server is needed.
const walkStep = 5 * time.Minute

func walk(seed uint64) utilisation {
	return func(id string, at time.Time) int {
		step := at.UnixNano() / int64(walkStep)
		done := float64(at.UnixNano()%int64(walkStep)) / float64(walkStep)
		from, to := float64(hash(seed, id, step)%101), float64(hash(seed, id, step+1)%101)
		return int(math.Round(from + (to-from)*done))
	}
}

func hash(seed uint64, id string, n int64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%d", seed, id, n)
	x := h.Sum64()
	// FNV maps similar inputs to similar values.
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}
