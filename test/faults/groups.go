package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// group is the name of the one VmGroup of a run.
const group = "group"

// wish is what is to become of the group of a run.
type wish struct {
	size     int
	template string
	// most servers of the group may be there at once.
	most int
}

// What happens to groups while a manager is killed.
var (
	grown     = scenario{name: "a group is made", counts: ofGroups, act: []step{makeGroup(3)}}
	shrunk    = scenario{name: "a group shrinks", counts: ofGroups, remove: slowly, arrange: []step{makeGroup(3)}, act: []step{editGroup(wish{size: 1, template: "first", most: 3})}}
	rolled    = scenario{name: "a group rolls", counts: ofGroups, build: slowly, remove: slowly, arrange: []step{makeGroup(2)}, act: []step{editGroup(wish{size: 2, template: "second", most: 3})}}
	dissolved = scenario{name: "a group is deleted", counts: ofGroups, arrange: []step{makeGroup(2)}, act: []step{removeGroup}}
	rivalling = scenario{name: "a group is made by two managers", counts: ofGroups, pair: true, act: []step{makeGroup(3)}}
)

// ofGroups counts what is done to VM objects and to servers, and the claim. How
// often a group's status is written depends on how fast its members come to be.
func ofGroups(e effect) bool {
	return e.side == cloudSide || e.path == "vms" || strings.HasPrefix(e.path, "vms/") || e.path == "vmgroups/"+group
}

// makeGroup makes a group that rolls by one more at a time, and wants it whole.
func makeGroup(size int) step {
	return func(ctx context.Context, w *world) error {
		w.wantGroup(wish{size: size, template: "first", most: size + 1})
		return w.lab.client.Create(ctx, &v1alpha1.VmGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: group},
			Spec: v1alpha1.VmGroupSpec{
				Replicas: new(int32(size)), Template: "first", CloudRef: &v1alpha1.CloudReference{Name: w.name},
			},
		})
	}
}

// editGroup asks for another size and template.
func editGroup(to wish) step {
	return func(ctx context.Context, w *world) error {
		w.wantGroup(to)
		patch := fmt.Sprintf(`{"spec":{"replicas":%d,"template":%q}}`, to.size, to.template)
		return w.lab.client.Patch(ctx, w.groupObject(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func removeGroup(ctx context.Context, w *world) error {
	w.wantGroup(wish{})
	return w.lab.client.Delete(ctx, w.groupObject())
}

func (w *world) groupObject() *v1alpha1.VmGroup {
	return &v1alpha1.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: group}}
}

func (w *world) wantGroup(to wish) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wish = &to
}

func (w *world) wished() *wish {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wish
}

// grouped says what is missing of what the group is to be; nil if nothing.
func (w *world) grouped() error {
	to := w.wished()
	if to == nil {
		return nil
	}
	members := w.recorder.members()
	if len(members) != to.size {
		return fmt.Errorf("the group has %d members, not %d", len(members), to.size)
	}
	for _, vm := range members {
		if is, _ := stands(vm); !is || !vm.DeletionTimestamp.IsZero() || vm.Spec.Template != to.template {
			return fmt.Errorf("member %s is not as wanted: template %s; %s", vm.Name, vm.Spec.Template, brief(vm))
		}
	}
	return nil
}

// crowded tells of more servers of the group at a time than there may be, and
// of members that had two.
func (w *world) crowded() []string {
	to := w.wished()
	if to == nil || !w.profile.exact {
		return nil
	}
	ledger := slices.DeleteFunc(w.mock.Ledger(), func(e mockcloud.LedgerEntry) bool { return e.By != mockcloud.ByClient && e.Op == mockcloud.OpCreate })
	for i := range ledger {
		ledger[i].Labels = map[string]string{"group": group}
	}
	if most := mockcloud.MostAlive(ledger, "group")[group]; to.most > 0 && most > to.most {
		return []string{fmt.Sprintf("%d servers of the group were alive at once, and %d may be", most, to.most)}
	}
	return nil
}

// members are the VM objects of the run's group, as they were last seen.
func (r *recorder) members() []*v1alpha1.VM {
	r.mu.Lock()
	defer r.mu.Unlock()
	var members []*v1alpha1.VM
	for _, vm := range r.latest {
		if owner := metav1.GetControllerOf(vm); owner != nil && owner.Name == group {
			members = append(members, vm)
		}
	}
	return members
}
