package vsphere

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// CheckName looks for the name in its folder.
func (c *Client) CheckName(ctx context.Context, name cloud.Name) error {
	op := "check name " + quote(name.Name)
	if err := checkName(op, name.Name); err != nil {
		return err
	}
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return err
	}
	defer end()
	at, err := c.locate(ctx)
	if err != nil {
		return c.fail(ctx, op, err)
	}
	in, err := folder(ctx, op, at, name.Folder)
	if err != nil || in == nil {
		return c.failed(ctx, op, err)
	}
	found, err := child(ctx, at, *in, name.Name)
	if err != nil {
		return c.fail(ctx, op, c.misplaced(ctx, at, err))
	}
	if found != nil {
		return refuse(op, cloud.Taken, "the name is in use in its folder")
	}
	return nil
}

// failed is fail for an error that may be nil.
func (c *Client) failed(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return c.fail(ctx, op, err)
}

// misplaced returns err, unless a part of the site does not exist any more. Then it
// looks for the site again, and returns what is missing.
func (c *Client) misplaced(ctx context.Context, at *site, err error) error {
	fault, gone := faultOf(err).(*types.ManagedObjectNotFound)
	if !gone {
		return err
	}
	switch fault.Obj {
	case at.root, at.templates, at.datacenter, at.hosts:
	default:
		if !at.uses(fault.Obj) {
			return err
		}
	}
	c.dropSite(at)
	c.templates.forget()
	if _, missing := c.locate(ctx); missing != nil {
		return missing
	}
	return refuse("", cloud.Busy, "a part of the inventory that the Cloud uses was replaced")
}

// lookUp is find for calls that need the configuration of the VM.
func (c *Client) lookUp(ctx context.Context, op, id string) (entity, *site, error) {
	vm, at, err := c.find(ctx, op, id)
	if err == nil && !vm.configured() {
		err = c.fail(ctx, op, errUnreadable)
	}
	return vm, at, err
}

// find returns the VM with an id as it is, and the site. It is below the root; one that is
// elsewhere in the vCenter is Displaced.
func (c *Client) find(ctx context.Context, op, id string) (entity, *site, error) {
	if id == "" {
		return entity{}, nil, refuse(op, cloud.Rejected, "no id was given")
	}
	at, err := c.locate(ctx)
	if err != nil {
		return entity{}, nil, c.fail(ctx, op, err)
	}
	vm, err := c.byID(ctx, op, at, id)
	if err != nil {
		return entity{}, nil, c.fail(ctx, op, c.misplaced(ctx, at, err))
	}
	if vm != nil {
		return *vm, at, nil
	}
	if err := readableRoot(ctx, at); err != nil {
		return entity{}, nil, c.fail(ctx, op, c.misplaced(ctx, at, err))
	}
	hidden, err := c.hidden.any(ctx, at)
	switch {
	case err != nil:
		return entity{}, nil, c.fail(ctx, op, c.misplaced(ctx, at, err))
	case hidden:
		return entity{}, nil, refuse(op, cloud.Unavailable, "a VM in spec.vsphere.folder cannot be read at the moment, and it may be this one")
	}
	return entity{}, nil, refuse(op, cloud.NotFound, "no VM has this instance UUID")
}

// readableRoot fails if the account may not read the folder with all VMs. To such an
// account the vCenter shows no VM, and does not fail.
func readableRoot(ctx context.Context, at *site) error {
	found, err := retrieve(ctx, at.vim, "Folder", []string{"name"}, at.root)
	if err == nil && (len(found) != 1 || found[0].text("name") == "") {
		return refuse("", cloud.Misconfigured, "the operator's account may not read spec.vsphere.folder any more: give it back its role there")
	}
	return err
}

// byID returns the VM with an id, nil if there is none in the vCenter. Ids have one spelling,
// so that no two ids are of the same VM.
func (c *Client) byID(ctx context.Context, op string, at *site, id string) (*entity, error) {
	if !isID(id) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	res, err := methods.FindAllByUuid(ctx, at.vim, &types.FindAllByUuid{
		This: *at.vim.ServiceContent.SearchIndex, Uuid: id, VmSearch: true, InstanceUuid: new(true),
	})
	if err != nil {
		return nil, err
	}
	switch len(res.Returnval) {
	case 0:
		return c.unfound(ctx, op, at, id)
	case 1:
	default:
		return nil, refuse(op, cloud.Conflict, "%d VMs have this instance UUID, of which all but one are copies: the administrator gives the copies others", len(res.Returnval))
	}
	vm, err := c.look(ctx, at, res.Returnval[0])
	if vm == nil || err != nil {
		return nil, err
	}
	c.refs.put(vm.ref, id)
	return vm, c.displaced(op, at, vm)
}

// errUnreadable is about a VM whose configuration the vCenter does not return.
var errUnreadable = &cloud.Error{
	Kind: cloud.Unavailable, Detail: "the vCenter cannot read the configuration of the VM at the moment, as while its host or datastore is not connected",
}

// displaced returns why a VM is not changed where it is; nil if it is the operator's to change.
func (c *Client) displaced(op string, at *site, vm *entity) error {
	switch {
	case !vm.configured() && !vm.lost():
		return errUnreadable
	case vm.flag(templatePath):
		return refuse(op, cloud.Displaced, "the VM was converted to a template, %s: convert it to a VM again", quote(c.pathOf(at, vm)))
	case !vm.inside && len(vm.above) == 0:
		return refuse(op, cloud.Displaced, "the VM is in a vApp, or in a folder that the operator's account may not read, outside of spec.vsphere.folder: move it back")
	case !vm.inside:
		return refuse(op, cloud.Displaced, "the VM is %s now, outside of spec.vsphere.folder: move it back", quote(c.pathOf(at, vm)))
	}
	return nil
}

// pathOf returns the inventory path of a VM, as far as the account may read it.
func (c *Client) pathOf(at *site, vm *entity) string {
	path := "/" + unescaped(vm.text("name"))
	for _, ref := range vm.above {
		if name, ok := c.names.get(ref, time.Now()); ok && name != "" && ref != at.vim.ServiceContent.RootFolder {
			path = "/" + name + path
		}
	}
	return path
}

// isID reports whether a text may be the id of a VM.
func isID(text string) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed.String() == text
}

// unfound returns the VM that had an id and cannot be read at the moment, so that a search
// does not find it; nil if there is none. To an account without rights on it, the vCenter says
// that a VM exists only if it is asked for the VM itself.
func (c *Client) unfound(ctx context.Context, op string, at *site, id string) (*entity, error) {
	ref, known := c.refs.find(id)
	if !known {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	vm, err := c.look(ctx, at, ref)
	switch {
	case vm == nil || err != nil:
		return nil, err
	case vm.lost(), vm.text(uuidPath) == id:
		return vm, c.displaced(op, at, vm)
	case !vm.configured():
		if err := readableRoot(ctx, at); err != nil {
			return nil, err
		}
		if vm.inside || !vm.denied() {
			return nil, errUnreadable
		}
		return nil, refuse(op, cloud.Displaced, "the VM exists, and the operator's account may not read it: give the account its role where the VM is, or move the VM back")
	}
	return nil, nil //nolint:nilnil // the VM has another id now
}

// GetServer returns the VM with this instance UUID, in any spelling.
func (c *Client) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	id = cloud.CanonicalUUID(id)
	op := "get server " + quote(id)
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return cloud.Server{}, err
	}
	defer end()
	vm, at, err := c.find(ctx, op, id)
	if err != nil {
		return cloud.Server{}, err
	}
	servers, err := c.servers(ctx, at, []entity{vm})
	switch {
	case err != nil:
		return cloud.Server{}, c.fail(ctx, op, err)
	case len(servers) == 0:
		return cloud.Server{}, refuse(op, cloud.Unavailable, "the VM is being created")
	}
	servers[0].ID = id
	return servers[0], nil
}

// ServerStatus returns the use of the VM with this instance UUID.
func (c *Client) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	server, err := c.GetServer(ctx, id)
	return cloud.Status{CPUUtilization: server.CPUUtilization}, err
}

// servers returns VMs as servers. Those without an id are left out: they are being
// created, or were never readable.
func (c *Client) servers(ctx context.Context, at *site, vms []entity) ([]cloud.Server, error) {
	wanted := map[types.ManagedObjectReference]bool{}
	for _, vm := range vms {
		wanted[vm.reference("runtime.host")] = true
		if parent := vm.reference(parentPath); parent != at.root {
			wanted[parent] = true
		}
	}
	delete(wanted, types.ManagedObjectReference{})
	named, err := c.names.of(ctx, at, wanted)
	if err != nil {
		return nil, err
	}
	devices, err := readDevices(ctx, at, vms)
	if err != nil {
		return nil, err
	}
	servers := make([]cloud.Server, 0, len(vms))
	for _, vm := range vms {
		id := c.idOf(vm)
		if id == "" || vm.text("name") == "" {
			continue
		}
		server := vm.server(id)
		addDisks(&server, vm, devices[vm.ref])
		server.Host = named[vm.reference("runtime.host")]
		server.Folder = named[vm.reference(parentPath)]
		server.Zone = at.zoneOf[vm.reference(poolPath)]
		if asked := vm.origin().Folder; shortened(asked) == server.Folder {
			server.Folder = asked
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// idOf returns the id of a VM, that which it had if the vCenter does not return it; empty if it has none yet.
func (c *Client) idOf(vm entity) string {
	for _, path := range []string{uuidPath, summaryUUIDPath} {
		if id := vm.text(path); id != "" {
			c.refs.put(vm.ref, id)
			return id
		}
	}
	return c.refs.id(vm.ref)
}
