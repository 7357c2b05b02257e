package vmsnapshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

func taken(snap *pcapi.VMSnapshot) {
	snap.Status.SnapshotID, snap.Status.VMID, snap.Status.Cloud = "snap1", "s1", "default"
	snap.Status.CreatedTime = new(metav1.NewTime(startTime.Add(-time.Hour)))
}

func doomed(snap *pcapi.VMSnapshot) { snap.DeletionTimestamp = new(metav1.NewTime(startTime)) }

func orphaning(snap *pcapi.VMSnapshot) { snap.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }

func keptFor(d time.Duration) func(*pcapi.VMSnapshot) {
	return func(snap *pcapi.VMSnapshot) { snap.Spec.MaxAge = &metav1.Duration{Duration: d} }
}

func TestForecast(t *testing.T) {
	all := cloud.NewCapabilities(cloud.Snapshots, cloud.Labels)
	for name, tc := range map[string]struct {
		snap    *pcapi.VMSnapshot
		vm      *pcapi.VM
		caps    cloud.Capabilities
		changes []string
		reason  string
	}{
		"created":                      {snapshot(), vm(), all, []string{"{Create snap  [snapshot of VM vm] }"}, ""},
		"the VM has no server yet":     {snapshot(), vm(func(vm *pcapi.VM) { vm.Status = pcapi.VMStatus{} }), all, nil, pcapi.VMNotReadyReason},
		"the VM does not exist":        {snapshot(), vm(func(vm *pcapi.VM) { vm.Name = "other" }), all, nil, pcapi.VMNotReadyReason},
		"the VM is only observed":      {snapshot(), vm(func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly }), all, nil, pcapi.VMNotReadyReason},
		"the VM has lost its server":   {snapshot(), vm(func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateLost }), all, nil, pcapi.VMNotReadyReason},
		"the cloud has none":           {snapshot(), vm(), cloud.NewCapabilities(cloud.Labels), nil, pcapi.UnsupportedReason},
		"taken":                        {snapshot(taken), vm(), all, nil, ""},
		"taken, and too old later":     {snapshot(taken, keptFor(2*time.Hour)), vm(), all, nil, ""},
		"taken, and too old":           {snapshot(taken, keptFor(time.Minute)), vm(), all, []string{"{Delete " + recordedName() + " snap1 [] }"}, ""},
		"taken, and too old, and kept": {snapshot(taken, keptFor(time.Minute), orphaning), vm(), all, nil, ""},
		"deleted":                      {snapshot(taken, doomed), vm(), all, []string{"{Delete " + recordedName() + " snap1 [] }"}, ""},
		"deleted and kept":             {snapshot(taken, doomed, orphaning), vm(), all, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
			c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: pcapi.ConnectedReason}}
			for _, capability := range tc.caps {
				c.Status.Capabilities = append(c.Status.Capabilities, string(capability))
			}
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c, tc.vm, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}).Build()
			was := tc.snap.DeepCopy()
			forecast, err := NewForecaster(reader, "cluster", func() time.Time { return startTime }).Forecast(t.Context(), tc.snap)
			if err != nil {
				t.Fatal(err)
			}
			var changes []string
			for i := range forecast.Changes {
				c := forecast.Changes[i]
				changes = append(changes, fmt.Sprintf("{%s %s %s %v %s}", c.Action, c.Name, c.ID, c.Details, c.IfStopNeeded))
			}
			if diff := cmp.Diff(tc.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if reason := reconciler.Reason(forecast.Outcome); reason != tc.reason {
				t.Errorf("outcome %s (%v), want %q", reason, forecast.Outcome, tc.reason)
			}
			if diff := cmp.Diff(was, tc.snap); diff != "" {
				t.Errorf("the forecast changed its input:\n%s", diff)
			}
		})
	}
}

// recordedName is the name in the cloud of the snapshot of these tests.
func recordedName() string { return (&kind{cluster: "cluster"}).Record(snapshot()).Name }
