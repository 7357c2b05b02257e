package transport

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRenewalTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			life, want time.Duration
		}{
			"an hour":                         {time.Hour, time.Hour - 30*time.Second},
			"five minutes":                    {5 * time.Minute, 5*time.Minute - 30*time.Second},
			"a minute: a tenth of it earlier": {time.Minute, 54 * time.Second},
		} {
			if got := time.Until(RenewalTime(time.Now().Add(test.life))); got != test.want {
				t.Errorf("%s: renewed after %s, want %s", name, got, test.want)
			}
		}
		for name, end := range map[string]time.Time{"no end": {}, "ended": time.Now().Add(-time.Minute), "ends now": time.Now()} {
			if got := RenewalTime(end); !got.IsZero() {
				t.Errorf("%s: renewed at %s, want no time", name, got)
			}
		}
	})
}
