package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

func TestInaccessibleIsStalledAMinuteAfterTheCreationOfTheObject(t *testing.T) {
	created := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	const text = `Cloud "home" does not exist, or namespace "ns" may not use it: choose another in spec.cloudRef, or ask an administrator`
	for name, tc := range map[string]struct {
		age, requeue time.Duration
		stalled      bool
	}{
		"created now":     {0, time.Minute, false},
		"a second before": {59 * time.Second, time.Second, false},
		"a minute after":  {time.Minute, 0, true},
		"long after":      {time.Hour, 0, true},
		"the clock of the API server is a little ahead": {-10 * time.Second, 70 * time.Second, false},
		"the clock of the API server is far ahead":      {-time.Hour, 0, true},
	} {
		for _, missing := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", CreationTimestamp: metav1.NewTime(created)}}
				denied := &tenancy.AccessError{Kind: "Cloud", Name: "home", Namespace: "ns", Missing: missing}
				outcome := Inaccessible(vm, created.Add(tc.age), denied, tenancy.Elsewhere)
				if outcome.Error() != text || reconciler.Reason(outcome) != pcapi.CloudUnavailableReason || reconciler.IsStalled(outcome) != tc.stalled {
					t.Fatalf("outcome %#v (%v)", outcome, outcome)
				}
				if tc.stalled {
					return
				}
				want := &reconciler.BlockedError{On: "Cloud/home", Reason: pcapi.CloudUnavailableReason, Message: text, RequeueAfter: tc.requeue}
				if diff := cmp.Diff(error(want), outcome); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}
