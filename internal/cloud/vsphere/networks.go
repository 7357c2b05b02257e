package vsphere

import (
	"context"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// uplinks is the tag of the port groups that connect distributed switches to the
// adapters of hosts. VMs cannot be attached to them.
const uplinks = "SYSTEM/DVS.UPLINKPG"

// distributed is the type of the port groups of distributed switches.
const distributed = "DistributedVirtualPortgroup"

// networks lists port groups.
type networks struct {
	calls   *calls
	faults  *faults
	sites   *sites
	session *session
}

// notMade is the error of calls that change networks. A port group has no range of addresses, so networks cannot be created.
func notMade(op string) error {
	return refuse(op, cloud.Unsupported, "a vCenter has no networks with a range of addresses, so none is created, changed or deleted: "+
		"import a port group with spec.import of a Network")
}

// list returns the port groups of the datacenter that the account sees, and
// opaque networks. The id is the managed object id.
func (n *networks) list(ctx context.Context) ([]cloud.Network, error) {
	const op = "list networks"
	ctx, end, err := n.calls.begin(cloudWide(ctx), op)
	if err != nil {
		return nil, err
	}
	defer end()
	at, err := n.sites.locate(ctx)
	if err != nil {
		return nil, n.faults.fail(ctx, op, err)
	}
	found, err := n.portGroups(ctx, at)
	if err != nil {
		return nil, n.faults.fail(ctx, op, n.sites.misplaced(ctx, at, err))
	}
	networks := make([]cloud.Network, 0, len(found))
	for _, group := range found {
		networks = append(networks, networkOf(group))
	}
	return networks, nil
}

// get returns the port group with this id, if it is in the datacenter.
func (n *networks) get(ctx context.Context, id string) (cloud.Network, error) {
	op := "get network " + quote(id)
	if id == "" {
		return cloud.Network{}, refuse(op, cloud.Rejected, "no id was given")
	}
	ctx, end, err := n.calls.begin(ctx, op)
	if err != nil {
		return cloud.Network{}, err
	}
	defer end()
	at, err := n.sites.locate(ctx)
	if err != nil {
		return cloud.Network{}, n.faults.fail(ctx, op, err)
	}
	group, err := n.portGroup(ctx, at, id)
	switch {
	case err != nil:
		return cloud.Network{}, n.faults.fail(ctx, op, n.sites.misplaced(ctx, at, err))
	case group == nil:
		return cloud.Network{}, refuse(op, cloud.NotFound, "the datacenter has no port group with this id")
	}
	return networkOf(*group), nil
}

func networkOf(group entity) cloud.Network {
	return cloud.Network{ID: group.ref.Value, Name: unescaped(group.text("name"))}
}

// portGroup returns the port group with an id, nil if there is none.
func (n *networks) portGroup(ctx context.Context, at *site, id string) (*entity, error) {
	found, err := n.portGroups(ctx, at)
	i := slices.IndexFunc(found, func(group entity) bool { return group.ref.Value == id })
	if i < 0 || err != nil {
		return nil, err
	}
	return &found[i], nil
}

// portGroups returns the networks of the datacenter that VMs can be attached to.
func (n *networks) portGroups(ctx context.Context, at *site) ([]entity, error) {
	var found []entity
	err := n.session.sure(ctx, func() (empty bool, err error) {
		found, err = collect(ctx, at.vim, types.PropertyFilterSpec{
			PropSet: []types.PropertySpec{{Type: "Network", PathSet: []string{"name", "tag"}}},
			ObjectSet: []types.ObjectSpec{{
				Obj: at.datacenter, Skip: new(true), SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: "Datacenter", Path: "network"}},
			}},
		})
		return err == nil && len(found) == 0, err
	})
	return slices.DeleteFunc(found, func(group entity) bool {
		tags, _ := group.props["tag"].(types.ArrayOfTag)
		return group.text("name") == "" || slices.ContainsFunc(tags.Tag, func(tag types.Tag) bool { return tag.Key == uplinks })
	}), err
}

// backings returns what the first adapters of a VM with these interfaces are connected to;
// without any, the default of VMs that name no network, if there is one.
func (n *networks) backings(ctx context.Context, at *site, interfaces []cloud.Attachment) ([]types.BaseVirtualDeviceBackingInfo, error) {
	switch {
	case len(interfaces) == 0 && at.network == nil:
		return nil, nil
	case len(interfaces) == 0:
		return []types.BaseVirtualDeviceBackingInfo{at.network}, nil
	}
	groups, err := n.portGroups(ctx, at)
	if err != nil {
		return nil, err
	}
	backings := make([]types.BaseVirtualDeviceBackingInfo, 0, len(interfaces))
	for _, a := range interfaces {
		one, err := n.backing(ctx, at, groups, a.NetworkID)
		if err != nil {
			return nil, err
		}
		backings = append(backings, one)
	}
	return backings, nil
}

// backing returns what an adapter on the network with an id, one of groups, is connected to.
func (n *networks) backing(ctx context.Context, at *site, groups []entity, id string) (types.BaseVirtualDeviceBackingInfo, error) {
	i := slices.IndexFunc(groups, func(group entity) bool { return group.ref.Value == id })
	switch {
	case i < 0:
		return nil, refuse("", cloud.Rejected, "there is no network %s", quote(id))
	case groups[i].ref.Type == distributed:
		return n.portOf(ctx, at, groups[i].ref)
	}
	network, ok := object.NewReference(at.vim, groups[i].ref).(object.NetworkReference)
	if !ok {
		return nil, refuse("", cloud.Rejected, "VMs cannot be attached to the network %s, which is a %s", quote(id), groups[i].ref.Type)
	}
	return network.EthernetCardBackingInfo(ctx)
}

// portOf returns the backing of an adapter on a distributed port group.
func (n *networks) portOf(ctx context.Context, at *site, group types.ManagedObjectReference) (types.BaseVirtualDeviceBackingInfo, error) {
	const switchPath = "config.distributedVirtualSwitch"
	found, err := retrieve(ctx, at.vim, distributed, []string{"key", switchPath}, group)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].text("key") == "" {
		return nil, refuse("", cloud.Busy, "the port group cannot be read at the moment")
	}
	var switches []entity
	if ref := found[0].reference(switchPath); ref.Value != "" {
		if switches, err = retrieve(ctx, at.vim, ref.Type, []string{"uuid"}, ref); err != nil {
			return nil, err
		}
	}
	if len(switches) == 0 || switches[0].text("uuid") == "" {
		return nil, refuse("", cloud.Rejected, "the operator's account may not read the distributed switch of the port group %s: give it the role ReadOnly there", quote(group.Value))
	}
	return &types.VirtualEthernetCardDistributedVirtualPortBackingInfo{
		Port: types.DistributedVirtualSwitchPortConnection{PortgroupKey: found[0].text("key"), SwitchUuid: switches[0].text("uuid")},
	}, nil
}
