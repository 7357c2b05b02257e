package probe

import (
	"slices"
	"testing"
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
			var got []Result
			for _, result := range test.results {
				if o.add(result, threshold) {
					got = append(got, o.reported)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("changes %v, want %v", got, test.want)
			}
		})
	}
}
