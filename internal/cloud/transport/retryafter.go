package transport

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// maxRetryAfter bounds what a cloud can ask for.
	maxRetryAfter = 10 * time.Minute
	// maxUndatedRetry bounds the wait until a date in an answer that does not say
	// what time it is at the cloud: the date may come from a clock that is ahead.
	maxUndatedRetry = 30 * time.Second
	// defaultRetryAfter applies to a throttled request whose answer has no usable
	// Retry-After.
	defaultRetryAfter = 5 * time.Second
)

// RetryAfter returns how long an answer asks to wait. Where it does not
// say, this is 5 s for an answer that says the request was throttled, else 0.
func RetryAfter(header http.Header, throttled bool) time.Duration {
	wait, ok := parseRetryAfter(header, time.Now())
	if !ok && throttled {
		return defaultRetryAfter
	}
	return wait
}

// parseRetryAfter reads Retry-After, seconds or an HTTP-date, as 0 to
// maxRetryAfter. Negative seconds and past dates are 0. It reports false for a
// value that is absent or neither of the two.
//
// A date counts from the answer's own Date, where it has one, so that the
// cloud's clock need not agree with the operator's. Without a Date that can be
// read, a date is at most maxUndatedRetry ahead.
func parseRetryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		// Comparing before converting keeps absurd numbers from overflowing; NaN
		// fails both comparisons.
		switch {
		case seconds >= maxRetryAfter.Seconds():
			return maxRetryAfter, true
		case seconds > 0:
			return time.Duration(seconds * float64(time.Second)), true
		case seconds <= 0:
			return 0, true
		}
		return 0, false
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	longest := maxUndatedRetry
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		now, longest = date, maxRetryAfter
	}
	return min(max(at.Sub(now), 0), longest), true
}
