package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

func TestSplitSeparatesCallsForVMsFromPolls(t *testing.T) {
	own, polls := soapCalls{
		"CloneVM_Task": 2, "RetrievePropertiesEx: Task": 3, vcsim.ListCall: 4, vcsim.NextCall: 1, vcsim.TemplatesCall: 1,
		"RetrieveProperties: Datacenter": 5, "WaitForUpdatesEx": 6, "Login": 1,
	}.split()
	if diff := cmp.Diff(soapCalls{"CloneVM_Task": 2, "RetrievePropertiesEx: Task": 3}, own); diff != "" {
		t.Errorf("calls for VMs (-want +got):\n%s", diff)
	}
	if got := polls.total(); got != 18 {
		t.Errorf("%d calls of polls, want 18: %v", got, polls)
	}
}

func TestFirstStatusesMeasuresTheLongestTimeUntilCreating(t *testing.T) {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	event := func(name, reason string, after time.Duration) (time.Time, *pcapi.VM) {
		vm := newVM(name, 0, "")
		if reason != "" {
			vm.Status.Conditions = []metav1.Condition{{Type: pcapi.CreatedCondition, Status: metav1.ConditionFalse, Reason: reason}}
		}
		return begun.Add(after), vm
	}
	f := firstStatuses{since: map[string]time.Time{}}
	for i, step := range []struct {
		name, reason string
		after        time.Duration
		want         bool
	}{
		{"a", "", 0, false},
		{"b", "", time.Second, false},
		{"a", pcapi.CreatingReason, 2 * time.Second, true},
		{"b", "CheckFailed", 3 * time.Second, false},
		{"b", pcapi.CreatingReason, 5 * time.Second, true},
	} {
		if got := f.observe(event(step.name, step.reason, step.after)); got != step.want {
			t.Errorf("event %d: got %t, want %t", i, got, step.want)
		}
	}
	if f.longest != 4*time.Second {
		t.Errorf("the longest time is %s, want 4s", f.longest)
	}
}

func TestSlowRowsCompareTimesAndClonesToTheirGoals(t *testing.T) {
	calls := soapCalls{"CloneVM_Task": slowMembers + 1, vcsim.ListCall: 7}
	var got []string
	for _, r := range slowRows(80*time.Second, 2*time.Second, calls, 16)[1:] {
		got = append(got, r.figure+" "+r.budget+" "+string(r.outcome))
	}
	want := []string{"2.0 s ≤ 3.0 s ok", "80.0 s ≤ 75.0 s missed", "101 ≤ 100 OVER", "1.01  "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBinarySizeIsRoundedUp(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int64
		want  string
	}{
		"exactly 110 MB: within the budget":   {110_000_000, "110 ≤ 110 ok"},
		"one byte more: over the budget":      {110_000_001, "111 ≤ 110 OVER"},
		"a part of a megabyte: a megabyte":    {1, "1 ≤ 110 ok"},
		"nothing: the budget is not exceeded": {0, "0 ≤ 110 ok"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "manager")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, c.bytes); err != nil {
				t.Fatal(err)
			}
			rows, err := binarySize(context.Background(), options{manager: path})
			if err != nil {
				t.Fatal(err)
			}
			if got := rows[1].figure + " " + rows[1].budget + " " + string(rows[1].outcome); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := binarySize(context.Background(), options{manager: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a binary that does not exist: got no error")
	}
}
