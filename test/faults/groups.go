package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// group is the name of the one VmGroup of a run.
const group = "group"

// groupGoal is what a run expects of its group.
type groupGoal struct {
	size     int
	template string
	// most is how many servers of the group may exist at a time.
	most int
}

// The scenarios of groups.
var (
	groupCreated     = scenario{name: "a group is made", counts: ofGroups, act: []step{createGroup(3)}}
	groupShrunk      = scenario{name: "a group shrinks", counts: ofGroups, remove: slowly, arrange: []step{createGroup(3)}, act: []step{editGroup(groupGoal{size: 1, template: "first", most: 3})}}
	groupRolled      = scenario{name: "a group rolls", counts: ofGroups, build: slowly, remove: slowly, arrange: []step{createGroup(2)}, act: []step{editGroup(groupGoal{size: 2, template: "second", most: 3})}}
	groupDeleted     = scenario{name: "a group is deleted", counts: ofGroups, arrange: []step{createGroup(2)}, act: []step{removeGroup}}
	groupTwoManagers = scenario{name: "a group is made by two managers", counts: ofGroups, pair: true, act: []step{createGroup(3)}}
)

// ofGroups counts changes of VM objects and of servers, and the claim. The number
// of status writes of a group depends on how fast its members become ready.
func ofGroups(e effect) bool {
	return e.side == cloudSide || e.path == "vms" || strings.HasPrefix(e.path, "vms/") || e.path == "vmgroups/"+group
}

// createGroup creates a group that rolls with one member more, and expects it to be complete.
func createGroup(size int) step {
	return func(ctx context.Context, w *world) error {
		w.expectGroup(groupGoal{size: size, template: "first", most: size + 1})
		return w.env.client.Create(ctx, testkit.VmGroup(w.name, group, func(g *pcapi.VmGroup) {
			g.Spec = pcapi.VmGroupSpec{
				Replicas: new(int32(size)), Template: "first", CloudRef: &pcapi.CloudReference{Name: w.name},
			}
		}))
	}
}

// editGroup changes size and template.
func editGroup(to groupGoal) step {
	return func(ctx context.Context, w *world) error {
		w.expectGroup(to)
		patch := fmt.Sprintf(`{"spec":{"replicas":%d,"template":%q}}`, to.size, to.template)
		return w.env.client.Patch(ctx, w.groupObject(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func removeGroup(ctx context.Context, w *world) error {
	w.expectGroup(groupGoal{})
	return w.env.client.Delete(ctx, w.groupObject())
}

func (w *world) groupObject() *pcapi.VmGroup {
	return &pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: group}}
}

func (w *world) expectGroup(to groupGoal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.group = &to
}

func (w *world) groupGoal() *groupGoal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.group
}

// groupReached returns what is missing for the goal of the group; nil if nothing.
func (w *world) groupReached() error {
	to := w.groupGoal()
	if to == nil {
		return nil
	}
	members := slices.DeleteFunc(w.recorder.members(), w.losesServer)
	if len(members) != to.size {
		return fmt.Errorf("the group has %d members, not %d", len(members), to.size)
	}
	for _, vm := range members {
		if is, _ := w.readyOrStalled(vm); !is || !vm.DeletionTimestamp.IsZero() || vm.Spec.Template != to.template {
			return fmt.Errorf("member %s is not as expected: template %s; %s", vm.Name, vm.Spec.Template, describe(vm))
		}
	}
	return nil
}

// groupViolations returns a violation if more servers of the group existed at a
// time than may.
func (w *world) groupViolations() []string {
	to := w.groupGoal()
	if to == nil || !w.profile.exact {
		return nil
	}
	ledger := slices.DeleteFunc(w.stock.Ledger(), func(e mockcloud.LedgerEntry) bool { return e.By != mockcloud.ByClient && e.Op == mockcloud.OpCreate })
	for i := range ledger {
		ledger[i].Labels = map[string]string{"group": group}
	}
	if most := mockcloud.MostAlive(ledger, "group")[group]; to.most > 0 && most > to.most {
		return []string{fmt.Sprintf("%d servers of the group were alive at once, and %d may be", most, to.most)}
	}
	return nil
}

// members returns the VM objects of the run's group, as they were last observed.
func (r *recorder) members() []*pcapi.VM {
	r.mu.Lock()
	defer r.mu.Unlock()
	var members []*pcapi.VM
	for _, vm := range r.latest {
		if owner := metav1.GetControllerOf(vm); owner != nil && owner.Name == group {
			members = append(members, vm)
		}
	}
	return members
}
