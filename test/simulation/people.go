package simulation

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// names are those of the VMs and the group that users create. One VM is on the Network.
var names = []string{"a", networked}

const networked, group = "b", "g"

func (w *world) userChoices() []choice {
	var all []choice
	user := func(name string, do func() error) {
		all = append(all, choice{class: act, name: "user: " + name, do: func() { _ = do() }})
	}
	alone := w.profile.capabilities.Has(cloud.Snapshots) // then most calls are about the snapshots of one VM
	for _, name := range names {
		if alone && name != snapshotted {
			continue
		}
		key := client.ObjectKey{Namespace: "default", Name: name}
		vm, exists := w.api.find(vmKind, key).(*pcapi.VM)
		if !exists {
			spec := pcapi.VMSpec{VMName: name, CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}
			if name == networked && w.profile.capabilities.Has(cloud.Networks) {
				spec.NetworkRef = &pcapi.NetworkReference{Name: networkKey.Name}
			}
			create := func(spec pcapi.VMSpec) error {
				return w.api.create(&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec})
			}
			user("create VM "+name, func() error { return create(spec) })
			user("create VM "+name+" with approvals", func() error {
				spec.Approval = pcapi.ApprovalRequired
				return create(spec)
			})
			continue
		}
		if vm.DeletionTimestamp != nil {
			continue
		}
		if _, bare := w.bare[vm.UID]; !bare || !needsApproval(vm) {
			user("delete VM "+name, func() error { return w.api.remove(vmKind, key, nil) })
		}
		user("resize VM "+name, func() error {
			next := vm.DeepCopy()
			next.Spec.CPU = pcapi.Cores(int32(1 + next.Spec.CPU.Count()%3))
			return w.api.update(next)
		})
		user("switch VM "+name, func() error {
			next := vm.DeepCopy()
			next.Spec.PowerState = other(next.Spec.PowerState)
			return w.api.update(next)
		})
	}
	key := client.ObjectKey{Namespace: "default", Name: group}
	g, exists := w.api.find(groupKind, key).(*pcapi.VmGroup)
	switch {
	case alone:
	case !exists:
		user("create VmGroup "+group, func() error {
			return w.api.create(&pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: group},
				Spec: pcapi.VmGroupSpec{Replicas: new(int32(2)), CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}})
		})
	case g.DeletionTimestamp == nil:
		user("delete VmGroup "+group, func() error { return w.api.remove(groupKind, key, nil) })
		for n := range int32(4) {
			user(fmt.Sprintf("scale VmGroup %s to %d", group, n), func() error {
				next := g.DeepCopy()
				next.Spec.Replicas = &n
				return w.api.update(next)
			})
		}
		user("resize VmGroup "+group, func() error {
			next := g.DeepCopy()
			next.Spec.CPU = pcapi.Cores(int32(1 + next.Spec.CPU.Count()%3))
			return w.api.update(next)
		})
	}
	return slices.Concat(all, w.networkChoices(), w.snapshotChoices(), w.rewriteChoices(), w.sharedChoices())
}

func other(state pcapi.PowerState) pcapi.PowerState {
	if state == pcapi.PowerOff {
		return pcapi.PowerOn
	}
	return pcapi.PowerOff
}

// handChoices returns what a person may do in the cloud.
func (w *world) handChoices() []choice {
	var all []choice
	for _, s := range w.servers() {
		if s.State.Transitional() {
			continue
		}
		if w.deletable(s.ID) {
			all = append(all, choice{class: deleteByHand, name: "by hand: delete " + s.ID, do: func() {
				w.cloud.RemoveServers(s.ID)
				w.deletedByHand[s.ID] = true
			}})
		}
		if s.State != cloud.StateActive {
			continue
		}
		all = append(all,
			choice{class: byHand, name: "by hand: resize " + s.ID, do: func() { w.modify(s.ID, func(s *cloud.Server) { s.CPU = 7 }) }},
			choice{class: byHand, name: "by hand: stop " + s.ID, do: func() { w.modify(s.ID, func(s *cloud.Server) { s.State = cloud.StateStopped }) }},
		)
	}
	return all
}

// modify changes a server in the cloud.
func (w *world) modify(id string, change func(*cloud.Server)) {
	w.cloud.ModifyServer(id, func(s *cloud.Server) {
		change(s)
		s.UpdatedAt = time.Now()
	})
}

// deletable reports whether a person may delete a server. On a cloud with keys that is one on
// record: else the cloud may answer the next create with the server that was deleted.
func (w *world) deletable(id string) bool {
	return !w.profile.capabilities.Has(cloud.Idempotency) ||
		slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool { return o.(*pcapi.VM).Status.VMID == id })
}

// braked returns a Cloud whose brake is on, nil if there is none.
func (w *world) braked() *pcapi.Cloud {
	for _, o := range w.api.all(cloudKind) {
		if c := o.(*pcapi.Cloud); c.Status.BrakedSnapshot != "" && c.Annotations[pcapi.AcknowledgeAnnotation] != c.Status.BrakedSnapshot {
			return c
		}
	}
	return nil
}

// releaseBrake acknowledges that servers have disappeared.
func (w *world) releaseBrake(c *pcapi.Cloud) {
	next := c.DeepCopy()
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, pcapi.AcknowledgeAnnotation, c.Status.BrakedSnapshot)
	_ = w.api.update(next)
}
