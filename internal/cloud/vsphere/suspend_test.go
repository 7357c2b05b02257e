package vsphere_test

import (
	"testing"

	"github.com/vmware/govmomi/object"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// suspendByHand suspends a VM as an administrator does.
func suspendByHand(t *testing.T, v *vcenter, name string) {
	t.Helper()
	task, err := object.NewVirtualMachine(v.Admin.Client, v.VM(name).Self).Suspend(t.Context())
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Fatalf("suspend %s: %v", name, err)
	}
}

func TestVMThatWasSuspendedByHandIsShownAndResumed(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "asleep"})
	suspendByHand(t, v, "asleep")
	if listed := list(t, c); len(listed) != 1 || listed[0].State != cloud.StateSuspended {
		t.Errorf("ListServers: %+v, want it suspended", listed)
	}
	for _, soft := range []bool{false, true} {
		_, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetPower{State: cloud.PowerOff, Soft: soft}})
		wantError(t, err, cloud.Busy, "SUSPENDED")
	}
	if sent := v.Front.Sent("PowerOffVM_Task") + v.Front.Sent("ShutdownGuest"); sent != 0 {
		t.Errorf("%d requests to stop it were sent, want 0: its memory would be lost", sent)
	}
	result, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
	if err != nil {
		t.Fatalf("UpdateServer: %v", err)
	}
	if resumed, err := follow(t.Context(), c, result.Operation); err != nil || resumed.State != cloud.StateActive {
		t.Errorf("after PowerOn: %+v, %v, want it ACTIVE", resumed, err)
	}
}

func TestVMThatIsSuspendedIsDeleted(t *testing.T) {
	for name, answer := range map[string]func(method string) (int, string){
		"the vCenter powers it off": nil,
		"the vCenter deletes it only as it is": func(method string) (int, string) {
			if method == "PowerOffVM_Task" {
				return vcsim.Fault("InvalidPowerState")
			}
			return 0, ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			created := create(t, c, cloud.CreateServer{Name: "asleep"})
			suspendByHand(t, v, "asleep")
			defer v.Front.Answer(answer)()
			remove(t, c, created.ID)
			if sent := v.Front.Sent("PowerOffVM_Task"); sent != 1 {
				t.Errorf("PowerOffVM_Task was sent %d times, want 1", sent)
			}
		})
	}
}
