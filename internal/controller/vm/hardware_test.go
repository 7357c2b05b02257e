package vm

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestStatusShowsTheSizeThatTheCloudReports(t *testing.T) {
	quantity := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	for name, test := range map[string]struct {
		cpu, memoryMiB int
		want           *pcapi.VMHardwareStatus
	}{
		"cores and memory":       {2, 4096, &pcapi.VMHardwareStatus{CPU: 2, Memory: quantity("4Gi")}},
		"no whole GiB":           {1, 1536, &pcapi.VMHardwareStatus{CPU: 1, Memory: quantity("1536Mi")}},
		"memory is not reported": {8, 0, &pcapi.VMHardwareStatus{CPU: 8}},
		"cores are not reported": {0, 512, &pcapi.VMHardwareStatus{Memory: quantity("512Mi")}},
		"more than fits":         {math.MaxInt64, math.MaxInt64, &pcapi.VMHardwareStatus{CPU: math.MaxInt32, Memory: quantity("9223372036853727232")}},
		"neither is reported":    {},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(func(vm *pcapi.VM) { vm.Spec.CPU, vm.Spec.Memory = nil, nil }), serverWith(func(s *cloud.Server) { s.CPU, s.MemoryMiB = test.cpu, test.memoryMiB }))
			h.mustReconcile()
			if diff := cmp.Diff(test.want, h.vm().Status.Hardware); diff != "" {
				t.Errorf("status.hardware (-want +got):\n%s", diff)
			}
			h.writes = nil
			h.later(pollInterval)
			h.mustReconcile()
			if len(h.writes) > 0 {
				t.Errorf("writes %q at rest, want none", h.writes)
			}
		})
	}
}

func TestLostVMShowsNoSize(t *testing.T) {
	vm := vmWith(recorded)
	vm.Status.Hardware = &pcapi.VMHardwareStatus{CPU: 2}
	pure.Report(vm, obsWith(everything, gone), nil)
	if vm.Status.Hardware != nil {
		t.Errorf("status.hardware %+v of a server that is gone, want none", vm.Status.Hardware)
	}
}
