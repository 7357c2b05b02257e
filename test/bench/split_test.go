package main

import (
	"testing"
	"time"
)

func TestSplitRowsCompareRoundsInPairs(t *testing.T) {
	took := func(seconds ...int) (rounds []round) {
		for _, s := range seconds {
			rounds = append(rounds, round{took: time.Duration(s) * time.Second, usage: usage{server: time.Second}})
		}
		return rounds
	}
	got := splitRows(100, took(10, 20, 50), took(5, 20, 100))
	if want := "100 %"; got[3].figure != want || got[4].figure != want {
		t.Errorf("shares %s and %s, want %s", got[3].figure, got[4].figure, want)
	}
	if want := "50 % to 200 %, each round against the one before it"; got[3].detail != want {
		t.Errorf("detail %q, want %q", got[3].detail, want)
	}
}
