package simulation

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/cloud"
)

// statistics are about all runs together.
type statistics struct {
	began            time.Time
	runs, operations int
	// faults counts by the names of faultKinds, and checked by invariant.
	faults, checked map[string]int
	// states are the hashes of the states that were observed.
	states map[uint64]bool
}

func newStatistics(states map[uint64]bool) *statistics {
	return &statistics{began: time.Now(), faults: map[string]int{}, checked: map[string]int{}, states: states}
}

// faultKinds are what is counted, and faultOf is which of them a decision is, by the first word of its name.
var (
	faultKinds = []string{"failed calls", "outages", "lost answers", "late requests", "kills", "pauses", "stops", "edits", "changes by hand"}
	faultOf    = map[string]string{
		string(unavailable) + ":": "failed calls", string(throttled) + ":": "failed calls", string(busy) + ":": "failed calls",
		string(full) + ":": "failed calls", string(gateway) + ":": "failed calls", string(lagging) + ":": "failed calls",
		"outage:": "outages",
		"lose":    "lost answers", "delay": "late requests", "kill": "kills", "pause": "pauses", "stop": "stops", "user:": "edits", "by": "changes by hand", "somebody": "changes by hand",
	}
)

// add counts a run.
func (s *statistics) add(w *world) {
	s.runs, s.operations = s.runs+1, s.operations+w.operations
	for _, name := range w.chosen {
		word, _, _ := strings.Cut(name, " ")
		s.faults[faultOf[word]]++
	}
	for invariant, n := range w.checked {
		s.checked[invariant] += n
	}
}

// String returns a line about what was done so far.
func (s *statistics) String() string {
	took := time.Since(s.began)
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %d operations, %.0f a second, %d runs", took.Round(time.Second), s.operations, float64(s.operations)/took.Seconds(), s.runs)
	if len(s.states) > 0 {
		fmt.Fprintf(&text, ", %d states", len(s.states))
	}
	for _, kind := range faultKinds {
		fmt.Fprintf(&text, ", %d %s", s.faults[kind], kind)
	}
	return text.String()
}

// summary returns what was done, and how often each invariant was checked.
func (s *statistics) summary() string {
	var text strings.Builder
	text.WriteString(s.String())
	for _, invariant := range invariants {
		fmt.Fprintf(&text, "\nchecked %8d times: %s", s.checked[invariant], invariant)
	}
	return text.String()
}

// observer records the states of a run.
type observer struct {
	states map[uint64]bool
	// hashes are those of objects, which do not change once they are stored.
	hashes map[client.Object]uint64
}

func newObserver(states map[uint64]bool) *observer {
	return &observer{states: states, hashes: map[client.Object]uint64{}}
}

var (
	hashSeed  = maphash.MakeSeed()
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT[^"]*`)
)

// observe records the state: the objects and the servers, without times.
func (o *observer) observe(w *world) {
	var sum uint64
	for _, gvk := range kinds {
		for _, object := range w.api.objects[gvk] {
			sum += o.hash(object)
		}
	}
	for _, s := range w.cloud.Servers() {
		sum += hashServer(s)
	}
	o.states[sum] = true
}

func (o *observer) hash(object client.Object) uint64 {
	if h, known := o.hashes[object]; known {
		return h
	}
	values := []any{fmt.Sprintf("%T", object), object.GetName(), object.GetFinalizers(), object.GetDeletionTimestamp() != nil}
	for _, name := range []string{"Spec", "Status"} {
		if f := field(object, name); f.IsValid() {
			values = append(values, f.Interface())
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	h := maphash.Bytes(hashSeed, timestamp.ReplaceAll(text, nil))
	o.hashes[object] = h
	return h
}

func hashServer(s cloud.Server) uint64 {
	return maphash.String(hashSeed, fmt.Sprint(s.ID, s.Name, s.State, s.CPU, s.MemoryMiB, s.Labels))
}
