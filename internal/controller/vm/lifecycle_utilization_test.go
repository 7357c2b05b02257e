package vm

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestUtilizationIsReadWhenListingLacksIt(t *testing.T) {
	h := newHarness(t, without(cloud.BulkStatus), onRecord())
	h.cloud.AddServers(serverWith())
	h.poll()
	equal(t, "result", ctrl.Result{RequeueAfter: pollInterval, Priority: new(handler.LowPriority)}, h.mustReconcile())
	h.wantCalls("status s1")
	h.mustReconcile()
	h.wantCalls()
	equal(t, "cpuUtilization", int32(42), *h.vm().Status.CPUUtilization)

	h.advance(pollInterval)
	h.cloud.Fail(cloudfake.ServerStatus, errRefused, false)
	h.mustReconcile()
	equal(t, "cpuUtilization after a failed read", int32(42), *h.vm().Status.CPUUtilization)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestUtilizationOfAnEarlierProcessIsKeptUntilItIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want *int32
	}{
		"the limits refuse the first read: kept": {err: &cloud.Error{Kind: cloud.Throttled, RetryAfter: time.Second}, want: new(int32(5))},
		"the first read fails: unknown":          {err: errRefused},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, without(cloud.BulkStatus), withStatus(onRecord(), withStatusUtilization(5)))
			h.cloud.AddServers(serverWith())
			h.cloud.FailAlways(cloudfake.ServerStatus, test.err, false)
			h.poll()
			h.mustReconcile()
			equal(t, "cpuUtilization", test.want, h.vm().Status.CPUUtilization)
		})
	}
}

func TestUtilizationIsNotReadWhereTheCloudHasNone(t *testing.T) {
	h := newHarness(t, cloud.NewCapabilities(append(without(cloud.BulkStatus), cloud.NoStatus)...), onRecord())
	h.cloud.AddServers(serverWith())
	h.poll()
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantCalls()
	if got := h.vm().Status.CPUUtilization; got != nil {
		t.Errorf("cpuUtilization %d, want none", *got)
	}
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestUtilizationOfNewVMIsReadWithoutEvent(t *testing.T) {
	h := newHarness(t, without(cloud.BulkStatus), vmWith())
	equal(t, "result", ctrl.Result{RequeueAfter: pollInterval, Priority: new(handler.LowPriority)}, h.mustReconcile())
	h.wantServers("s1")
	h.advance(pollInterval)
	h.mustReconcile()
	equal(t, "cpuUtilization", int32(42), *h.vm().Status.CPUUtilization)
}
