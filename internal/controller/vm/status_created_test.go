package vm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

func TestReportCreatedReason(t *testing.T) {
	for reason, want := range map[string]string{
		pcapi.OutcomeUnknownReason:   pcapi.OutcomeUnknownReason,
		pcapi.RejectedReason:         pcapi.RejectedReason,
		pcapi.UnsupportedReason:      pcapi.RejectedReason,
		pcapi.QuotaExceededReason:    pcapi.QuotaExceededReason,
		pcapi.AmbiguousReason:        pcapi.AmbiguousReason,
		pcapi.ProhibitedReason:       pcapi.PendingReason,
		pcapi.TakenReason:            pcapi.PendingReason,
		pcapi.BrakedReason:           pcapi.PendingReason,
		pcapi.CloudUnavailableReason: pcapi.PendingReason,
	} {
		for _, outcome := range []error{reconciler.Wait(time.Minute, reason, "why"), reconciler.Blocked("x", reason, "why"), reconciler.Stalled(reason, 0, errors.New("why"))} {
			t.Run(describe(outcome), func(t *testing.T) {
				vm := vmWith()
				pure.Report(vm, obsWith(everything), outcome)
				got := formatCondition(*meta.FindStatusCondition(vm.Status.Conditions, pcapi.CreatedCondition))
				equal(t, "Created", "Created=False "+want+": why", got)
			})
		}
	}
}

func TestReportCreatedStatesGuarantee(t *testing.T) {
	tests := []struct {
		name    string
		caps    cloud.Capabilities
		message string
	}{
		{name: "idempotency keys: exactly once", caps: cloud.NewCapabilities(cloud.Idempotency)},
		{name: "unique names that are exclusive: exactly once", caps: cloud.NewCapabilities(cloud.UniqueNames, cloud.ExclusiveNames)},
		{name: "unique names that others use too: a person decides", caps: cloud.NewCapabilities(cloud.UniqueNames), message: "a person decides who owns it"},
		{name: "labels alone: two VMs for a while", caps: cloud.NewCapabilities(cloud.Labels), message: "two VMs may exist for a while"},
		{name: "none of them: only a person can attribute the VM", caps: cloud.NewCapabilities(cloud.Power), message: "only a person can attribute"},
		{name: "no capability at all: only a person can attribute the VM", caps: cloud.NewCapabilities(), message: "only a person can attribute"},
		{name: "capabilities unknown: no statement", caps: nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			for when, obs := range map[string]*observation{"without a server": obsWith(tc.caps), "with a server": obsWith(tc.caps, withServer(serverWith()))} {
				vm := vmWith()
				pure.Report(vm, obs, reconciler.Wait(time.Minute, pcapi.PendingReason, "x"))
				got := meta.FindStatusCondition(vm.Status.Conditions, pcapi.CreatedCondition).Message
				if strings.Contains(got, ";") != (tc.message != "") || !strings.Contains(got, tc.message) {
					t.Errorf("message %s: %q, want %q in it", when, got, tc.message)
				}
			}
		})
	}
}
