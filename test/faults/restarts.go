package faults

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// restartVM has the VM restarted now.
func restartVM(ctx context.Context, w *world) error {
	w.restart = new(metav1.NewTime(time.Now().Truncate(time.Second)))
	patch := fmt.Sprintf(`{"spec":{"nextRestartTime":%q}}`, w.restart.UTC().Format(time.RFC3339))
	return w.env.client.Patch(ctx, w.object(vm), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// restartReached returns what is missing for the restart; nil if nothing.
func (w *world) restartReached() error {
	if w.restart == nil {
		return nil
	}
	last := w.recorder.vm(vm).Status.LastRestart
	if last == nil || last.Result != pcapi.VMRestarted || !last.RequestedTime.Equal(w.restart) {
		return fmt.Errorf("status.lastRestart is %+v, want a restart of %s", last, w.restart)
	}
	return nil
}

// restartViolations compares how often the server was stopped and started with one restart.
func (w *world) restartViolations() []string {
	if w.restart == nil {
		return nil
	}
	stops, starts := 0, 0
	for _, e := range w.mock.Ledger() {
		switch {
		case e.Op != mockcloud.OpUpdate:
		case slices.Contains(e.Fields, "powerOffMode"):
			stops++
		case slices.Contains(e.Fields, "powerState"):
			starts++
		}
	}
	if stops == 1 && starts == 1 {
		return nil
	}
	return []string{fmt.Sprintf("the server was stopped %d times and started %d times for one restart", stops, starts)}
}

// powerViolations compares whether a server runs with the spec of its VM.
func powerViolations(vm *pcapi.VM, server mockcloud.Server) []string {
	want := map[pcapi.PowerState]mockcloud.State{pcapi.PowerOff: mockcloud.StateStopped, pcapi.PowerSuspended: mockcloud.StateSuspended}[vm.Spec.PowerState]
	if want = cmp.Or(want, mockcloud.StateActive); server.State != want {
		return []string{fmt.Sprintf("server %s is %s, and its spec says powerState %s", server.Name, server.State, vm.Spec.PowerState)}
	}
	return nil
}
