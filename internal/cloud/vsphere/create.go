package vsphere

import (
	"context"
	"errors"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// creates makes servers.
type creates struct {
	calls     *calls
	faults    *faults
	sites     *sites
	vms       *vms
	claims    *claims
	templates *templates
	networks  *networks
	folders   *folders
	tasks     *tasks
	refs      *refs
	place     Place
}

// create clones a template. Of all calls with one key, name and folder, at most
// one makes a VM, whose name is unique in its folder.
func (c *creates) create(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	op := "create server " + quote(req.Name)
	if err := checkCreate(op, req); err != nil {
		return cloud.Result{}, err
	}
	ctx, end, err := c.calls.begin(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	at, err := c.sites.locate(ctx)
	if err != nil {
		return cloud.Result{}, c.faults.fail(ctx, op, err)
	}
	id := idOf(req.IdempotencyKey)
	if existing, err := c.made(ctx, op, at, id, req); err != nil || existing != nil {
		return resultOf(existing), c.faults.failed(ctx, op, err)
	}
	if err := c.checkSpot(at, req); err != nil {
		return cloud.Result{}, c.faults.fail(ctx, op, err)
	}
	from, err := c.templates.get(ctx, at, req.Template)
	if err != nil {
		return cloud.Result{}, c.faults.fail(ctx, op, c.sites.misplaced(ctx, at, err))
	}
	if from.networks, err = c.networks.backings(ctx, at, req.Attachments()); err != nil {
		return cloud.Result{}, c.faults.fail(ctx, op, c.sites.misplaced(ctx, at, err))
	}
	if from.disks, err = changeDisks(from.devices, nil, req.Disks); err != nil {
		return cloud.Result{}, c.faults.fail(ctx, op, err)
	}
	return c.clone(ctx, op, at, from, id, req)
}

// checkCreate refuses what no VM of a vCenter can be.
func checkCreate(op string, req cloud.CreateServer) error {
	if err := checkName(op, req.Name); err != nil {
		return err
	}
	switch {
	case req.Addressed():
		return refuse(op, cloud.Unsupported, "this cloud lacks staticAddresses: let the user data set the addresses in the guest")
	case req.Flavor != "":
		return refuse(op, cloud.Unsupported, "this cloud lacks flavors")
	case req.SecurityGroups != "":
		return refuse(op, cloud.Unsupported, "this cloud lacks securityGroups")
	case req.RootDisk != cloud.RootDisk{}:
		return refuse(op, cloud.Unsupported, "this cloud lacks rootDisk")
	case slices.Contains(req.Disks.Needs(), cloud.DiskTypes):
		return refuse(op, cloud.Unsupported, "this cloud lacks diskTypes")
	case slices.Contains(req.Disks.Needs(), cloud.KeepDisks):
		return refuse(op, cloud.Unsupported, "this cloud lacks keepDisks")
	}
	for key, value := range req.Labels {
		if err := checkLabel(op, key, value); err != nil {
			return err
		}
	}
	if err := checkUserData(op, req.UserData); err != nil {
		return err
	}
	return checkMemory(op, req.MemoryMiB)
}

// checkSpot refuses a new VM where it cannot be created, or not be kept apart from others. That
// may change: what an earlier create has made is found all the same.
func (c *creates) checkSpot(at *site, req cloud.CreateServer) error {
	if err := checkZone(at, c.place.Zones, req.Zone); err != nil {
		return err
	}
	if apart(req) && !at.drs[at.spot(req.Zone).pool] {
		return errNoDRS
	}
	return nil
}

// made returns the VM that an earlier create with this key made, wherever it is now;
// nil if there is none. Before the first create with the key there is none, unless a
// listing has shown a VM with its id.
func (c *creates) made(ctx context.Context, op string, at *site, id string, req cloud.CreateServer) (*cloud.Server, error) {
	if req.IdempotencyKey == "" {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	if _, listed := c.refs.find(id); req.First && !listed {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	vm, err := c.vms.byID(ctx, op, at, id)
	if vm != nil && !vm.configured() {
		err = errUnreadable
	}
	switch {
	case errors.Is(err, errUnreadable):
		exists := *errUnreadable
		exists.Uncertain = true
		return nil, &exists
	case vm == nil || err != nil:
		return nil, c.sites.misplaced(ctx, at, err)
	}
	if !vm.created() {
		return c.claims.holder(ctx, at, vm.ref, id, originOf(req))
	}
	return c.claims.claim(ctx, at, vm, id, originOf(req))
}
