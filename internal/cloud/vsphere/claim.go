package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// markHold is how long a VM may show without its mark, which comes a moment later.
	markHold = 2500 * time.Millisecond
	// firstLook is the pause before the second look at such a VM; it doubles after.
	firstLook = 20 * time.Millisecond
)

var (
	errNoMark = &cloud.Error{Kind: cloud.Unavailable, Uncertain: true, Detail: "a VM of this name is being created, and it is not known yet for whom"}
	errTaken  = &cloud.Error{Kind: cloud.Taken, Code: "DuplicateName", Detail: "the folder has a VM of this name"}
)

// reusedDetail says why a create is refused whose key another one has used.
const reusedDetail = "a VM was created for this object already, from another spec"

// claims finds out whose a VM with a name is.
type claims struct{ vms *vms }

// holder returns the VM that has the name, if the create with this origin made it.
func (c *claims) holder(ctx context.Context, at *site, ref types.ManagedObjectReference, id string, asked origin) (*cloud.Server, error) {
	vm, err := c.marked(ctx, at, ref, id)
	if err != nil {
		return nil, err
	}
	return c.claim(ctx, at, vm, id, asked)
}

// marked returns the VM that has a name with the mark of its create. A VM shows before its mark does,
// so one without a mark is looked at again, until it is clear that it gets none.
func (c *claims) marked(ctx context.Context, at *site, ref types.ManagedObjectReference, id string) (*entity, error) {
	if ref.Type != "VirtualMachine" {
		return nil, errTaken
	}
	end := time.Now().Add(markHold)
	for pause := firstLook; ; pause *= 2 {
		vm, err := c.vms.look(ctx, at, ref)
		switch {
		case err != nil:
			return nil, err
		case vm == nil:
			return nil, refuse("", cloud.Busy, "the VM that had the name was deleted meanwhile")
		case vm.created():
			return vm, nil
		case time.Now().After(end):
			return nil, unmarked(vm, id)
		}
		if !transport.Sleep(ctx, pause) {
			return nil, errNoMark
		}
	}
}

// unmarked says whose a VM is that got no mark.
func unmarked(vm *entity, id string) error {
	known := vm.text(uuidPath)
	switch {
	case known == id, known == "" && !vm.lost():
		return errNoMark
	}
	return errTaken
}

// claim returns the VM if the create with this origin made it.
func (c *claims) claim(ctx context.Context, at *site, vm *entity, id string, asked origin) (*cloud.Server, error) {
	switch from := vm.origin(); {
	case from.Key != asked.Key || asked.Key == "":
		return nil, errTaken
	case from.Request != asked.Request:
		return nil, refuse("", cloud.KeyReused, "%s", reusedDetail)
	}
	servers, err := c.vms.servers(ctx, at, []entity{*vm})
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 || servers[0].ID != id {
		return nil, errNoMark
	}
	return &servers[0], nil
}
