package openstack

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/privatecloud/operator/internal/cloud"
)

// CreateServer creates a server. It is never sent twice: the service has no keys.
func (c *Client) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	op := "create server " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Result{}, err
	}
	switch {
	case req.Folder != "":
		return cloud.Result{}, refuse(op, cloud.Unsupported, "this cloud lacks folders")
	case req.PowerState == cloud.PowerOff:
		return cloud.Result{}, refuse(op, cloud.Unsupported, "this cloud lacks powerAtCreate")
	}
	ctx, end, err := c.session.begin(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	if strings.Contains(req.Zone, ":") { // nova takes a host and a node after the zone from accounts that may choose them
		return cloud.Result{}, refuse(op, cloud.Rejected, "zone %s is no availability zone: give the name of one, without host and node", quote(req.Zone))
	}
	result, err := c.create(ctx, op, req)
	return result, asError(err)
}

// choice is what of the cloud a new server is made from.
type choice struct {
	imageID string
	wish    wish
	flavor  flavor
	// networks, groups and disks are in the form of a create.
	networks any
	groups   []string
	disks    []servers.BlockDevice
	keyPair  string
}

// choose looks up what a new server is made from.
func (c *Client) choose(ctx context.Context, op string, req cloud.CreateServer) (made choice, err *cloud.Error) {
	if made.imageID, err = c.images.imageFor(ctx, op, req.Template); err != nil {
		return choice{}, err
	}
	least, readErr := c.images.needsOf(ctx, op, made.imageID, cmp.Or(req.Template, c.images.defaultImage))
	switch {
	case readErr != nil && c.cfg.KeyPair != "": // a Windows guest without a key pair has a password that nobody can read
		return choice{}, readErr
	case least.windows:
		made.keyPair = c.cfg.KeyPair
	}
	made.wish = wish{name: req.Flavor, size: size{cpu: req.CPU, mib: req.MemoryMiB}, image: least}
	if req.RootDisk != (cloud.RootDisk{}) {
		made.wish.volume, made.wish.image.disk = true, 0 // the image needs no disk of the flavor
	}
	if made.flavor, err = c.flavors.flavorFor(ctx, op, made.wish); err != nil {
		return choice{}, err
	}
	if made.networks, err = c.networks.attachment(ctx, op, req.Attachments()); err != nil {
		return choice{}, err
	}
	if made.groups, err = c.security.forNew(ctx, op, req.SecurityGroups); err != nil {
		return choice{}, err
	}
	made.disks, err = c.volumes.forNew(ctx, op, req, made.imageID, least, made.flavor)
	return made, err
}

// options returns what a create sends of a server, without its user data.
func (c *Client) options(op string, req cloud.CreateServer, from choice) (servers.CreateOpts, *cloud.Error) {
	meta, err := metadata(op, req.Labels)
	if err != nil {
		return servers.CreateOpts{}, err
	}
	options := servers.CreateOpts{
		Name: req.Name, ImageRef: from.imageID, FlavorRef: from.flavor.ID, Networks: from.networks, Metadata: meta,
		AvailabilityZone: cmp.Or(req.Zone, c.cfg.Zone), SecurityGroups: from.groups, BlockDevice: from.disks,
	}
	marks := map[string]string{networkKey: req.FirstNetwork(), sizeKey: from.flavor.record(from.wish.size), groupKey: req.AntiAffinity.Group}
	if from.wish.volume {
		options.ImageRef, marks[imageKey] = "", from.imageID
	}
	if len(from.disks) > 0 {
		marks[storedKey], marks[keptKey] = "made", keptOf(req.Disks)
	}
	for key, value := range marks {
		if value != "" {
			meta[key] = value
		}
	}
	if value := tag(req.Labels[c.cfg.TagLabel]); value != "" {
		options.Tags = []string{value}
	}
	return options, nil
}

func (c *Client) create(ctx context.Context, op string, req cloud.CreateServer) (cloud.Result, *cloud.Error) {
	from, err := c.choose(ctx, op, req)
	if err != nil {
		return cloud.Result{}, err
	}
	options, err := c.options(op, req, from)
	if err != nil {
		return cloud.Result{}, err
	}
	if options.UserData, options.ConfigDrive, err = userData(op, req.UserData); err != nil {
		return cloud.Result{}, err
	}
	group, created, err := c.groups.serverGroupFor(ctx, op, req.AntiAffinity)
	if err != nil {
		return cloud.Result{}, err
	}
	defer created()
	body, failed := keypairs.CreateOptsExt{CreateOptsBuilder: options, KeyName: from.keyPair}.ToServerCreateMap()
	if failed != nil {
		return cloud.Result{}, refuse(op, cloud.Rejected, "%v", failed)
	}
	if group != "" {
		body["os:scheduler_hints"] = map[string]string{"group": group}
	}
	var made struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
	}
	call := &call{
		about: aboutCreate, service: compute, method: http.MethodPost, route: "compute/servers", path: "servers", op: op, body: body, out: &made,
	}
	if err := c.session.do(ctx, call); err != nil {
		if cloud.Is(err, cloud.Rejected, cloud.Forbidden) {
			// What was looked up may have been replaced since.
			c.images.ids.forget()
			c.networks.ids.forget()
			c.security.ids.forget()
		}
		if group != "" && groupGone(err) {
			err.Kind = cloud.Busy
		}
		if strings.Contains(err.Detail, "Invalid key_name") {
			err = misconfigured("keyPair", err)
		}
		volumes, _ := c.volumes.hasDisks(ctx, op)
		from.wish.explainDisk(from.flavor, volumes, err)
		return cloud.Result{}, err
	}
	if !isID(made.Server.ID) {
		return cloud.Result{}, unreadable(call, "the answer has no id of a server")
	}
	built := from.wish.size.or(from.flavor.size())
	return cloud.Result{Operation: operation(opCreate, made.Server.ID), Server: cloud.Server{
		ID: made.Server.ID, Name: req.Name, Labels: req.Labels, State: cloud.StateBuilding, CPU: built.cpu, MemoryMiB: built.mib, Flavor: from.flavor.Name,
		Image: cloud.Image{Name: c.images.names.of(from.imageID), ID: from.imageID}, NetworkID: req.FirstNetwork(), Zone: req.Zone, SecurityGroups: req.SecurityGroups,
		Disks: req.Disks, RootDisk: req.RootDisk,
	}}, nil
}
