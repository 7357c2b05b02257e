package vsphere_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

var (
	required  = cloud.AntiAffinity{Group: "cluster/ns/db", Required: true}
	preferred = cloud.AntiAffinity{Group: "cluster/ns/db"}
)

// apart returns a create with an anti-affinity.
func apart(name string, a cloud.AntiAffinity) cloud.CreateServer {
	return cloud.CreateServer{Name: name, AntiAffinity: a, IdempotencyKey: uuid.NewString()}
}

// inRules returns the names of the VMs of each rule that has an end of a name, sorted.
func (v *vcenter) inRules(suffix string) [][]string {
	var all [][]string
	for _, rule := range v.Rules() {
		if !strings.HasSuffix(rule.Name, suffix) {
			continue
		}
		var names []string
		for _, vm := range v.VMs() {
			if slices.Contains(rule.Vm, vm.Self) {
				names = append(names, vm.Name)
			}
		}
		slices.Sort(names)
		all = append(all, names)
	}
	return all
}

func (v *vcenter) wantRules(t *testing.T, when string, want ...[]string) {
	t.Helper()
	if diff := cmp.Diff(want, v.inRules(".ns.db")); diff != "" {
		t.Errorf("%s: VMs of the rules (-want +got):\n%s", when, diff)
	}
}

func TestRuleLivesAsLongAsTwoVMsNeedIt(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	foreign := create(t, c, cloud.CreateServer{Name: "foreign"})
	if err := v.PutRule(t.Context(), "privatecloud.of-somebody.ns.db", v.VM("foreign").Self); err != nil {
		t.Fatal(err)
	}
	theirs := []string{"foreign"}

	one := create(t, c, apart("one", required))
	v.wantRules(t, "a VM alone", theirs)
	two := create(t, c, apart("two", required))
	v.wantRules(t, "two VMs", theirs, []string{"one", "two"})
	create(t, c, apart("other", preferred))
	three := create(t, c, apart("three", required))
	v.wantRules(t, "three VMs, and one with another policy", theirs, []string{"one", "three", "two"})
	if got := v.Rules()[1]; got.Enabled == nil || !*got.Enabled || got.Mandatory == nil || !*got.Mandatory {
		t.Errorf("rule %+v, want it enabled and mandatory", got)
	}
	remove(t, c, two.ID)
	v.wantRules(t, "one VM was deleted", theirs, []string{"one", "three"})
	remove(t, c, three.ID)
	v.wantRules(t, "a second VM was deleted", theirs)
	remove(t, c, one.ID)
	remove(t, c, foreign.ID)
	v.wantRules(t, "all were deleted", nil) // the rule of somebody else stays, without its VM
}

func TestVMIsInItsRuleBeforeItIsPoweredOn(t *testing.T) {
	for name, test := range map[string]struct {
		// starts has the client begin the start of the VM of a create that was interrupted.
		starts func(t *testing.T, c *vsphere.Client, operation string, id string)
	}{
		"the operation goes on in another process": {func(t *testing.T, c *vsphere.Client, operation, _ string) {
			t.Helper()
			if _, err := follow(t.Context(), c, operation); err != nil {
				t.Fatal(err)
			}
		}},
		"the power state is corrected": {func(t *testing.T, c *vsphere.Client, _, id string) {
			t.Helper()
			result, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := follow(t.Context(), c, result.Operation); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			create(t, c, apart("one", required))
			result, err := c.CreateServer(t.Context(), apart("two", required))
			if err != nil {
				t.Fatal(err)
			}
			v.await(result.Operation)
			if vcsim.Running(v.VM("two")) || v.Rules() != nil {
				t.Fatalf("the VM runs, or is in one of %v, before its operation was looked at", v.Rules())
			}
			unruled := false
			v.Front.Rewrite(func(method, body string) string {
				if method == "PowerOnVM_Task" {
					unruled = unruled || len(v.inRules(".ns.db")) == 0
				}
				return body
			})
			test.starts(t, v.client(t), result.Operation, v.VM("two").Config.InstanceUuid)
			v.wantRules(t, "started", []string{"one", "two"})
			if one, two := v.VM("one"), v.VM("two"); !vcsim.Running(two) || unruled || *one.Runtime.Host == *two.Runtime.Host {
				t.Errorf("runs: %t, powered on outside of its rule: %t, hosts %v and %v", vcsim.Running(two), unruled, one.Runtime.Host, two.Runtime.Host)
			}
		})
	}
}

func TestRuleThatOthersChangeMeanwhileIsChangedAgain(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	create(t, c, apart("one", required))
	create(t, c, apart("two", required))
	lost := 0
	v.Front.Rewrite(func(method, body string) string {
		if method == "ReconfigureComputeResource_Task" && lost < 2 {
			lost++ // somebody writes what was there before
			return strings.ReplaceAll(body, ">"+v.VM("three").Self.Value+"<", ">"+v.VM("one").Self.Value+"<")
		}
		return body
	})
	create(t, c, apart("three", required))
	v.wantRules(t, "two changes were lost", []string{"one", "three", "two"})
	if lost != 2 {
		t.Errorf("%d changes were lost, want 2", lost)
	}
}

func TestChangeOfRulesWithoutAnAnswerIsSentOnceAndReadAgain(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	create(t, c, apart("one", required))
	result, err := c.CreateServer(t.Context(), apart("two", required))
	if err != nil {
		t.Fatal(err)
	}
	v.await(result.Operation)
	restore := v.Front.Lose("ReconfigureComputeResource_Task")
	_, err = c.GetOperation(t.Context(), result.Operation)
	wantError(t, err, cloud.Unavailable)
	restore()
	if _, err := follow(t.Context(), c, result.Operation); err != nil {
		t.Fatal(err)
	}
	if sent := v.Front.Sent("ReconfigureComputeResource_Task"); sent != 1 {
		t.Errorf("%d changes of rules, want one", sent)
	}
	v.wantRules(t, "the answer was lost", []string{"one", "two"})
}

func TestNoHostIsLeft(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	for _, name := range []string{"one", "two", "three"} {
		create(t, c, apart(name, required))
	}
	result, err := c.CreateServer(t.Context(), apart("four", required))
	if err != nil {
		t.Fatal(err)
	}
	_, err = follow(t.Context(), c, result.Operation)
	wantError(t, err, cloud.NoHost, "no host can run the VM")
	result, err = c.UpdateServer(t.Context(), v.VM("four").Config.InstanceUuid, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = follow(t.Context(), c, result.Operation)
	wantError(t, err, cloud.NoHost, "no host can run the VM")
}

func TestMissingPrivilegeIsNamed(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	create(t, c, apart("one", required))
	v.Front.Answer(func(method string) (int, string) {
		if method == "ReconfigureComputeResource_Task" {
			return vcsim.Fault("NoPermission", "<privilegeId>Host.Inventory.EditCluster</privilegeId>")
		}
		return 0, ""
	})
	result, err := c.CreateServer(t.Context(), apart("two", required))
	if err != nil {
		t.Fatal(err)
	}
	_, err = follow(t.Context(), c, result.Operation)
	wantError(t, err, cloud.Forbidden, `lacks the privilege "Host.Inventory.EditCluster"`)
	if vcsim.Running(v.VM("two")) {
		t.Error("the VM runs outside of its rule")
	}
	remove(t, c, v.VM("two").Config.InstanceUuid)
}

func TestClusterWithoutDRSKeepsNoVMsApart(t *testing.T) {
	v := newVCenter(t)
	if err := v.SetDRS(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	c := v.client(t)
	has, err := c.Capabilities(t.Context())
	if err != nil || has.Has(cloud.WithAntiAffinity) {
		t.Fatalf("capabilities %v, %v, want none for anti-affinity", has, err)
	}
	before, req := v.Front.Sent(""), apart("one", required)
	req.First = true
	_, err = c.CreateServer(t.Context(), req)
	wantError(t, err, cloud.Unsupported, "has no DRS")
	if sent := v.Front.Sent("") - before; sent != 0 {
		t.Errorf("%d calls, want none", sent)
	}
}

func TestVMIsStartedAgainAfterDRSWasSwitchedOff(t *testing.T) {
	for name, test := range map[string]struct {
		apart cloud.AntiAffinity
		want  cloud.Kind
	}{
		"preferred: it is started":           {preferred, ""},
		"required: it waits until DRS is on": {required, cloud.NoHost},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			made := create(t, c, apart("one", test.apart))
			set := func(state cloud.PowerState) error {
				result, err := c.UpdateServer(t.Context(), made.ID, cloud.Update{cloud.SetPower{State: state}})
				if err == nil && result.Operation != "" {
					v.await(result.Operation)
				}
				return err
			}
			if err := set(cloud.PowerOff); err != nil {
				t.Fatal(err)
			}
			if err := v.SetDRS(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if err := set(cloud.PowerOn); cloud.KindOf(err) != test.want {
				t.Errorf("start: %v, want the kind %q", err, test.want)
			}
			if err := v.SetDRS(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			if err := set(cloud.PowerOn); err != nil || !vcsim.Running(v.VM("one")) {
				t.Errorf("start with DRS: %v, want the VM to run", err)
			}
		})
	}
}

func TestVMWithoutAntiAffinityReadsNoRules(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	made := create(t, c, cloud.CreateServer{Name: "plain", PowerState: cloud.PowerOff})
	v.Front.ForgetCalls()
	result, err := c.UpdateServer(t.Context(), made.ID, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
	if err != nil {
		t.Fatal(err)
	}
	v.await(result.Operation)
	v.wantCalls(t, "a start", map[string]int{"FindAllByUuid": 1, vmCall: 1, "PowerOnVM_Task": 1})
}

func TestCausesOfFaultsAreLookedAt(t *testing.T) {
	cause := func(fault types.BaseMethodFault) types.InsufficientResourcesFault {
		var full types.InsufficientResourcesFault
		full.FaultCause = &types.LocalizedMethodFault{Fault: fault}
		return full
	}
	for name, test := range map[string]struct {
		fault types.BaseMethodFault
		kind  cloud.Kind
	}{
		"a rule is violated":          {&types.RuleViolation{}, cloud.NoHost},
		"no host fits":                {&types.NoCompatibleHost{}, cloud.NoHost},
		"no room, because of a rule":  {new(cause(&types.RuleViolation{})), cloud.NoHost},
		"no room, for another reason": {new(cause(&types.NotEnoughCpus{})), cloud.Quota},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			made := create(t, c, cloud.CreateServer{Name: "web", PowerState: cloud.PowerOff})
			v.FailTasks("PowerOnVM_Task", test.fault, nil)
			result, err := c.UpdateServer(t.Context(), made.ID, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = follow(t.Context(), c, result.Operation)
			wantError(t, err, test.kind)
		})
	}
}
