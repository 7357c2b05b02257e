package vsphere_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// stopped creates a VM with an anti-affinity that is stopped, and returns its id.
func stopped(t *testing.T, c *vsphere.Client, name string, a cloud.AntiAffinity) string {
	t.Helper()
	req := apart(name, a)
	req.PowerState = cloud.PowerOff
	return create(t, c, req).ID
}

// start powers a VM on, and waits until it runs.
func (v *vcenter) start(t *testing.T, c *vsphere.Client, id string) error {
	t.Helper()
	result, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
	if err == nil {
		_, err = follow(t.Context(), c, result.Operation)
	}
	return err
}

func TestChangeOfRulesThatTakesLongIsNotOverwritten(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	c.SetRuleHold(100 * time.Millisecond)
	one := create(t, c, apart("one", required))
	create(t, c, apart("two", required))
	if _, err := c.UpdateServer(t.Context(), one.ID, cloud.Update{cloud.SetPower{State: cloud.PowerOff}}); err != nil { // there are three hosts
		t.Fatal(err)
	}
	three, four := stopped(t, c, "three", required), stopped(t, c, "four", required)

	held := v.HoldRules()
	t.Cleanup(held.End)
	wantError(t, v.start(t, c, three), cloud.Busy, "takes a while")
	wantError(t, v.start(t, c, four), cloud.Busy, "takes a while")
	if !held.Release() {
		t.Fatal("no change of rules is under way")
	}
	if err := v.start(t, c, three); err != nil {
		t.Fatal(err)
	}
	v.wantRules(t, "the first change has ended", []string{"one", "three", "two"})
	held.End()
	if err := v.start(t, c, four); err != nil {
		t.Fatal(err)
	}
	v.wantRules(t, "both changes have ended", []string{"four", "one", "three", "two"})
}

func TestCreateThatWaitsForRulesCanBeDeleted(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	c.SetRuleHold(100 * time.Millisecond)
	create(t, c, apart("one", required))
	held := v.HoldRules()
	t.Cleanup(held.End)
	for _, name := range []string{"two", "three"} { // the first waits for its own change, the second for that of the first
		result, err := c.CreateServer(t.Context(), apart(name, required))
		if err != nil {
			t.Fatal(err)
		}
		v.await(result.Operation)
		state, err := c.GetOperation(t.Context(), result.Operation)
		if err != nil || !state.Done || state.Err != nil || state.Server == nil || state.Server.State != cloud.StateStopped {
			t.Fatalf("the operation of %s: %+v, %v, want it ended, and a stopped VM", name, state, err)
		}
		wantError(t, v.start(t, c, state.ServerID), cloud.Busy)
		remove(t, c, state.ServerID)
		if v.VM(name) != nil {
			t.Errorf("the VM %s is left", name)
		}
	}
}

func TestSlowChangeOfRulesThatFailsIsReportedToItsVMAlone(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	c.SetRuleHold(100 * time.Millisecond)
	create(t, c, apart("one", required))
	two, three := stopped(t, c, "two", required), stopped(t, c, "three", required)
	held := v.HoldRules()
	t.Cleanup(held.End)
	wantError(t, v.start(t, c, two), cloud.Busy)
	held.Fail()
	wantError(t, v.start(t, c, two), cloud.NoHost, "does not accept the DRS rule")
	wantError(t, v.start(t, c, two), cloud.Busy)
	held.Fail()
	wantError(t, v.start(t, c, three), cloud.Busy, "takes a while")
	held.End()
	for _, id := range []string{two, three} {
		if err := v.start(t, c, id); err != nil {
			t.Error(err)
		}
	}
	v.wantRules(t, "the changes are accepted", []string{"one", "three", "two"})
}

func TestRuleThatConflictsWithAnotherEndsTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		refuse func(v *vcenter) (restore func())
		says   string
	}{
		"the vCenter disables it": {func(v *vcenter) func() {
			return v.Front.Rewrite(func(method, body string) string {
				if method == "ReconfigureComputeResource_Task" {
					body = strings.ReplaceAll(body, "<enabled>true<", "<enabled>false<")
				}
				return body
			})
		}, "keeps the DRS rule of the VM's anti-affinity disabled"},
		"its task fails": {func(v *vcenter) func() {
			return v.FailTasks("ReconfigureComputeResource_Task", &types.InvalidArgument{InvalidProperty: "rulesSpec"}, nil)
		}, "does not accept the DRS rule"},
		"it is refused": {func(v *vcenter) func() {
			return v.Front.Answer(func(method string) (int, string) {
				if method == "ReconfigureComputeResource_Task" {
					return vcsim.Fault("ManagedObjectNotFound", `<obj type="VirtualMachine">vm-1</obj>`)
				}
				return 0, ""
			})
		}, "does not accept the DRS rule"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			create(t, c, apart("one", required))
			create(t, c, apart("other", preferred))
			two, another := stopped(t, c, "two", required), stopped(t, c, "another", preferred)
			restore := test.refuse(v)
			t.Cleanup(restore)
			wantError(t, v.start(t, c, two), cloud.NoHost, test.says, "administrator")
			if vcsim.Running(v.VM("two")) {
				t.Error("the VM runs outside of its rule")
			}
			result, err := c.CreateServer(t.Context(), apart("three", required))
			if err != nil {
				t.Fatal(err)
			}
			_, err = follow(t.Context(), c, result.Operation)
			wantError(t, err, cloud.NoHost, test.says)
			if err := v.start(t, c, another); err != nil {
				t.Errorf("start of a VM that is to be kept apart if possible: %v", err)
			}
			restore()
			if err := v.start(t, c, two); err != nil {
				t.Errorf("start once the rule is accepted: %v", err)
			}
		})
	}
}

func TestRuleIsRemovedWithItsVMsThoughChangesTakeLong(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	c.SetRuleHold(100 * time.Millisecond)
	var ids []string
	for _, name := range []string{"one", "two", "three"} {
		ids = append(ids, create(t, c, apart(name, required)).ID)
	}
	before := v.Front.Sent("ReconfigureComputeResource_Task")
	held := v.HoldRules()
	t.Cleanup(held.End)
	for _, id := range ids {
		remove(t, c, id)
	}
	if len(v.Rules()) != 1 {
		t.Fatalf("rules %v, want that of the deleted VMs", v.Rules())
	}
	held.End()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for late := time.After(time.Minute); len(v.Rules()) > 0; {
		select {
		case <-pause.C:
		case <-late:
			t.Fatalf("rules %v, want none", v.Rules())
		}
	}
	if sent := v.Front.Sent("ReconfigureComputeResource_Task") - before; sent > 2 {
		t.Errorf("%d changes of rules for VMs that are deleted at the same time, want two at most", sent)
	}
}
