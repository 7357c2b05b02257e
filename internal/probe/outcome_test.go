package probe

import (
	"slices"
	"testing"
	"time"
)

func TestOutcome(t *testing.T) {
	const threshold = 3
	for name, test := range map[string]struct {
		recorded Result
		results  []Result
		// want are the results that are reported, one for each change.
		want []Result
	}{
		"the first success":                             {Unknown, []Result{Open, Open}, []Result{Open}},
		"the first failure":                             {Unknown, []Result{Refused, Refused}, []Result{Refused}},
		"a success after failures":                      {Refused, []Result{Refused, Open}, []Result{Open}},
		"a success that is on record":                   {Open, []Result{Open}, nil},
		"fewer failures than the threshold":             {Open, []Result{Refused, NoAnswer, Open, Refused, Refused, Open}, nil},
		"as many as the threshold":                      {Open, []Result{Refused, Refused, Refused}, []Result{Refused}},
		"as many in two ways: the last":                 {Open, []Result{Refused, Refused, NoAnswer}, []Result{NoAnswer}},
		"failures in turns: the first stays":            {Unknown, []Result{Refused, NoAnswer, Refused, NoAnswer, Refused, NoAnswer}, []Result{Refused}},
		"another failure for long":                      {Refused, []Result{NoAnswer, NoAnswer, NoAnswer, NoAnswer}, []Result{NoAnswer}},
		"no result: as before":                          {Open, []Result{Refused, Refused, Unknown, Unknown}, nil},
		"no result between failures: they are in a row": {Open, []Result{Refused, Refused, Unknown, Refused}, []Result{Refused}},
		"no result at first: nothing":                   {Unknown, []Result{Unknown}, nil},
		"lost and found: each is a change":              {Unknown, []Result{Open, Refused, Refused, Refused, Open}, []Result{Open, Refused, Open}},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome{reported: test.recorded}
			if got := o.changes(threshold, time.Time{}, test.results...); !slices.Equal(got, test.want) {
				t.Errorf("changes %v, want %v", got, test.want)
			}
		})
	}
}

// changes adds results at a time, and returns what is reported after each change.
func (o *outcome) changes(threshold int, now time.Time, results ...Result) (changes []Result) {
	for _, result := range results {
		if o.add(result, threshold, now) {
			changes = append(changes, o.reported)
		}
	}
	return changes
}

func TestChangesAreBounded(t *testing.T) {
	flapping := func(lost, back Result) []Result { return slices.Repeat([]Result{lost, back}, 10) }
	for name, test := range map[string]struct {
		recorded Result
		results  []Result
		want     []Result
		// next are results once one more change is possible, and then what they change.
		next, then []Result
	}{
		"a port that closes and opens": {
			Open, flapping(Refused, Open),
			[]Result{Refused, Open, Refused, Open, Refused, Open, Refused, Open, Unsteady},
			flapping(Open, Refused), []Result{Open, Unsteady},
		},
		"a port that closes and opens, and is closed when a change is possible": {
			Open, flapping(Refused, Open),
			[]Result{Refused, Open, Refused, Open, Refused, Open, Refused, Open, Unsteady},
			flapping(Refused, Open), []Result{Refused},
		},
		"a port that was unsteady and stays open": {
			Open, flapping(NoAnswer, Open),
			[]Result{NoAnswer, Open, NoAnswer, Open, NoAnswer, Open, NoAnswer, Open, Unsteady},
			[]Result{Open, Open}, []Result{Open},
		},
		"a port that was unsteady and stays closed": {
			Open, flapping(NoAnswer, Open),
			[]Result{NoAnswer, Open, NoAnswer, Open, NoAnswer, Open, NoAnswer, Open, Unsteady},
			[]Result{Refused, NoAnswer}, []Result{Refused},
		},
		"a port that fails in turns in two ways": {
			Refused, flapping(NoAnswer, Refused),
			[]Result{NoAnswer, Refused, NoAnswer, Refused},
			flapping(NoAnswer, Refused), []Result{NoAnswer},
		},
		"a port of which nothing is on record": {
			Unknown, flapping(Open, Refused),
			[]Result{Open, Refused, Open, Refused, Open, Refused, Open, Refused, Open, Unsteady},
			[]Result{Open}, []Result{Open},
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			o := outcome{reported: test.recorded}
			if got := o.changes(1, begun, test.results...); !slices.Equal(got, test.want) {
				t.Errorf("changes %v, want %v", got, test.want)
			}
			if got := o.changes(1, begun.Add(interval-1), test.next...); len(got) > 0 {
				t.Errorf("changes %v within the interval, want none", got)
			}
			if got := o.changes(1, begun.Add(interval), test.next...); !slices.Equal(got, test.then) {
				t.Errorf("changes %v after the interval, want %v", got, test.then)
			}
		})
	}
}

func TestUnsteadyPortThatStaysClosedIsReported(t *testing.T) {
	const threshold = 3
	for name, test := range map[string]struct {
		// before are results while no change is possible, and after once one is.
		before, after []Result
		want          []Result
	}{
		"fewer failures than the threshold":       {nil, []Result{Refused, Refused}, nil},
		"as many as the threshold":                {nil, []Result{Refused, Refused, Refused}, []Result{Refused}},
		"as many in two ways: the last":           {nil, []Result{Refused, Refused, NoAnswer}, []Result{NoAnswer}},
		"failures from before are in a row":       {[]Result{NoAnswer, NoAnswer, NoAnswer}, []Result{NoAnswer}, []Result{NoAnswer}},
		"a success from before: not in a row":     {[]Result{Refused, Refused, Open}, []Result{Refused, Refused}, nil},
		"it opens then: no change is possible":    {nil, []Result{Refused, Refused, Refused, Open}, []Result{Refused}},
		"it opens before as many: this is it":     {nil, []Result{Refused, Refused, Open}, []Result{Open}},
		"no result between failures: in a row":    {nil, []Result{Refused, Unknown, Refused, Refused}, []Result{Refused}},
		"no result is none, however many it were": {nil, []Result{Unknown, Unknown, Unknown, Unknown}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			o := outcome{reported: Open}
			o.changes(1, begun, slices.Repeat([]Result{Refused, Open}, 10)...)
			if o.reported != Unsteady {
				t.Fatalf("%v is reported, want Unsteady", o.reported)
			}
			if got := o.changes(threshold, begun.Add(interval-1), test.before...); len(got) > 0 {
				t.Errorf("changes %v within the interval, want none", got)
			}
			if got := o.changes(threshold, begun.Add(interval), test.after...); !slices.Equal(got, test.want) {
				t.Errorf("changes %v after the interval, want %v", got, test.want)
			}
		})
	}
}

func TestChangesThatAreSeldomAreAllReported(t *testing.T) {
	o, now := outcome{reported: Open}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 20 {
		now = now.Add(interval)
		if got := o.changes(1, now, Refused, Open); !slices.Equal(got, []Result{Refused, Open}) {
			t.Fatalf("changes %v, want both", got)
		}
	}
}
