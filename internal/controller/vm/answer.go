package vm

import (
	"cmp"
	"context"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// doubtfulAnswer reports whether an answer to a create may be about another server: it has another
// name than was asked for, or lacks the labels, or its id is that of a listed server of
// another name. The cloud may have given that id again.
func doubtfulAnswer(vm *pcapi.VM, obs *observation, answered cloud.Server, before *inventory.Snapshot) bool {
	if obs.Capabilities().Has(cloud.Labels) {
		return !cloud.AlikeNames(answered.Name, vm.Spec.VMName) || answered.Labels[inventory.UIDLabel] == ""
	}
	listed, ok := cloud.Server{}, false
	if before != nil {
		listed, ok = before.Server(answered.ID)
	}
	return !cloud.AlikeNames(answered.Name, vm.Spec.VMName) || ok && !cloud.AlikeNames(answered.Name, listed.Name)
}

// confirm gets the server that an answer to a create names, if that may be about another
// one. Without labels only the answer leads to the server, also on a cloud that drops them. It is
// not forgotten if the cloud does not show the server: a read may lag behind the create.
func (s *servers) confirm(ctx context.Context, vm *pcapi.VM, obs *observation, answered cloud.Server, before *inventory.Snapshot) (cloud.Server, error) {
	labels := obs.Capabilities().Has(cloud.Labels)
	if labels && labelledFor(vm, answered) {
		return answered, nil
	}
	server, err := obs.View.Client.GetServer(ctx, answered.ID)
	plain := cloud.AlikeNames(answered.Name, vm.Spec.VMName) && answered.Labels[inventory.UIDLabel] == ""
	if err != nil && (plain || !labels) && !obs.Inventory.Existed(before, answered) {
		s.tracker.CreatedUnconfirmed(vm.UID, answered.ID, cmp.Or(answered.Name, vm.Spec.VMName), s.clock())
	}
	named := cloud.AlikeNames(server.Name, vm.Spec.VMName) && server.Labels[inventory.UIDLabel] == ""
	if err != nil || server.Name != answered.Name || labels && !labelledFor(vm, server) && !named {
		return cloud.Server{}, &cloud.Error{
			Kind: cloud.Unreadable, Op: fmt.Sprintf("create server %q", vm.Spec.VMName), Detail: "the answer is about a server of another name", Uncertain: true, Err: err,
		}
	}
	return server, nil
}

// another reports whether the answer to a create is about a server that the create
// did not make: its labels name another owner or, where nothing but the answer says
// which object owns it, it existed before the create.
func (s *servers) another(vm *pcapi.VM, obs *observation, server cloud.Server, before *inventory.Snapshot) bool {
	caps := obs.Capabilities()
	if uid := server.Labels[inventory.UIDLabel]; caps.Has(cloud.Labels) && uid != "" {
		return !labelledFor(vm, server)
	}
	if caps.Has(cloud.Labels) {
		return before != nil && before.Has(server.ID) && !obs.Inventory.DeletionSent(server.ID)
	}
	if caps.Has(cloud.Idempotency) && !obs.Fresh {
		return s.tracker.HasExisted(vm.UID, server.ID) // else the key leads to the server of an earlier create
	}
	existed := obs.Inventory.Existed(before, server)
	if existed {
		s.tracker.Existed(vm.UID, server.ID)
	}
	return existed
}
