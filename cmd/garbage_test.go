package main

import (
	"runtime/debug"
	"testing"
)

func TestLimitGarbage(t *testing.T) {
	for _, tc := range []struct {
		name, gogc string
		want       int
	}{
		{name: "GOGC is not set: limited", want: maxGarbage},
		{name: "GOGC is set: kept", gogc: "80", want: 80},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := debug.SetGCPercent(80)
			t.Cleanup(func() { debug.SetGCPercent(before) })
			t.Setenv("GOGC", tc.gogc)
			limitGarbage()
			if got := debug.SetGCPercent(before); got != tc.want {
				t.Errorf("GC percent %d, want %d", got, tc.want)
			}
		})
	}
}
