package transport

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type result struct {
		Wait time.Duration
		OK   bool
	}
	stamp := func(at time.Time) string { return at.Format(http.TimeFormat) }
	for name, test := range map[string]struct {
		value, date string
		want        result
	}{
		"absent":                {"", "", result{}},
		"seconds":               {"7", "", result{7 * time.Second, true}},
		"seconds amid spaces":   {" 7 ", "", result{7 * time.Second, true}},
		"a fraction":            {"0.5", "", result{500 * time.Millisecond, true}},
		"zero":                  {"0", "", result{0, true}},
		"negative":              {"-5", "", result{0, true}},
		"longer than allowed":   {"86400", "", result{10 * time.Minute, true}},
		"absurd":                {"99999999999999999999999999", "", result{10 * time.Minute, true}},
		"beyond a float":        {"1e999", "", result{10 * time.Minute, true}},
		"not a number":          {"NaN", "", result{}},
		"garbage":               {"soon", "", result{}},
		"a date":                {stamp(now.Add(20 * time.Second)), "", result{20 * time.Second, true}},
		"a past date":           {stamp(now.Add(-time.Hour)), "", result{0, true}},
		"a date a century away": {stamp(now.AddDate(100, 0, 0)), stamp(now), result{10 * time.Minute, true}},
		"a date without a Date, by a clock that may be ahead: capped":                {stamp(now.Add(time.Minute)), "", result{30 * time.Second, true}},
		"a date a century away without a Date, by a clock that may be ahead: capped": {stamp(now.AddDate(100, 0, 0)), "", result{30 * time.Second, true}},
		"a date by a clock that is an hour ahead":                                    {stamp(now.Add(time.Hour + time.Minute)), stamp(now.Add(time.Hour)), result{time.Minute, true}},
		"a date beside a Date that cannot be read":                                   {stamp(now.Add(time.Minute)), "yesterday", result{30 * time.Second, true}},
		"seconds do not depend on the cloud's clock":                                 {"7", stamp(now.Add(time.Hour)), result{7 * time.Second, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wait, ok := parseRetryAfter(http.Header{"Retry-After": {test.value}, "Date": {test.date}}, now)
			if diff := cmp.Diff(test.want, result{wait, ok}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "7", "-1", "1e9", "0x10", "NaN", "Inf", "-Inf", "Fri, 02 Jan 2026 03:04:05 GMT", "Friday, 02-Jan-26 03:04:05 GMT"} {
		f.Add(seed, "")
		f.Add("120", seed)
	}
	f.Fuzz(func(t *testing.T, value, date string) {
		wait, ok := parseRetryAfter(http.Header{"Retry-After": {value}, "Date": {date}}, time.Unix(1767322800, 0))
		if wait < 0 || wait > maxRetryAfter || !ok && wait != 0 {
			t.Errorf("parseRetryAfter(%q, %q) = %s, %t", value, date, wait, ok)
		}
		_, noDate := http.ParseTime(date)
		if _, notAt := http.ParseTime(strings.TrimSpace(value)); notAt == nil && noDate != nil && wait > maxUndatedRetry {
			t.Errorf("parseRetryAfter(%q, %q) = %s, want at most %s until a date by an unknown clock", value, date, wait, maxUndatedRetry)
		}
	})
}
