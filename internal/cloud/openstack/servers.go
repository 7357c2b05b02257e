package openstack

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxName bounds a name, in characters.
const maxName = 255

// CheckName refuses names that the compute service would refuse. It sends nothing:
// names are not unique.
func (c *Client) CheckName(ctx context.Context, name cloud.Name) error {
	op := "check name " + quote(name.Name)
	if ctx.Err() != nil {
		return c.session.ended(ctx, op)
	}
	return asError(checkName(op, name.Name))
}

// checkName refuses names that cannot be used. The service counts only characters of the
// basic plane as printable.
func checkName(op, name string) *cloud.Error {
	switch {
	case name == "":
		return refuse(op, cloud.Rejected, "the name is empty")
	case !utf8.ValidString(name):
		return refuse(op, cloud.Rejected, "the name is not valid UTF-8")
	case utf8.RuneCountInString(name) > maxName:
		return refuse(op, cloud.Prohibited, "the name has more than %d characters", maxName)
	case strings.TrimSpace(name) != name:
		return refuse(op, cloud.Prohibited, "the name begins or ends with a space")
	}
	for _, r := range name {
		if r > 0xffff || unicode.Is(unicode.C, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
			return refuse(op, cloud.Prohibited, "the name has a character that this cloud does not allow in names")
		}
	}
	return nil
}

// GetServer returns the server of this id, in any spelling of a UUID.
func (c *Client) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	id = cloud.CanonicalUUID(id)
	op := "get server " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return cloud.Server{}, err
	}
	defer end()
	s, err := c.get(ctx, op, id)
	if err != nil {
		return cloud.Server{}, err
	}
	return s.domain(), nil
}

// get returns the server of this id as the compute service has it.
func (c *Client) get(ctx context.Context, op, id string) (*server, *cloud.Error) {
	var got struct {
		Server *server `json:"server"`
	}
	call := &call{
		about: aboutServer, service: compute, method: http.MethodGet, route: "compute/servers/{id}", path: "servers/" + id, op: op, out: &got,
	}
	if err := c.session.do(ctx, call); err != nil {
		return nil, err
	}
	switch {
	case got.Server == nil || got.Server.check() != nil:
		return nil, unreadable(call, "the answer has no server")
	case got.Server.ID != id:
		return nil, unreadable(call, cloud.OfAnotherID("server", id, got.Server.ID))
	}
	c.complete(got.Server)
	return got.Server, nil
}

// complete adds to a server what the service does not show of it, as far as it is known, and
// leaves of its fault what is for users.
func (c *Client) complete(s *server) {
	s.Image.name = c.images.names.of(s.Image.id)
	s.Fault.Message = c.publicFault(s.Fault.Message)
}

// ServerStatus reports no utilization: the diagnostics of a server are for
// administrators of the cloud. It is a read of the server, which may not exist.
func (c *Client) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	_, err := c.GetServer(ctx, id)
	return cloud.Status{}, err
}

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
	case req.Disks != "":
		return cloud.Result{}, refuse(op, cloud.Unsupported, "this cloud lacks disks")
	case req.RootDisk != cloud.RootDisk{}:
		return cloud.Result{}, refuse(op, cloud.Unsupported, "this cloud lacks rootDisk")
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

func (c *Client) create(ctx context.Context, op string, req cloud.CreateServer) (cloud.Result, *cloud.Error) {
	meta, err := metadata(op, req.Labels)
	if err != nil {
		return cloud.Result{}, err
	}
	imageID, err := c.images.imageFor(ctx, op, req.Template)
	if err != nil {
		return cloud.Result{}, err
	}
	asked := size{cpu: req.CPU, mib: req.MemoryMiB}
	w := wish{name: req.Flavor, size: asked, image: c.images.needsOf(ctx, op, imageID, cmp.Or(req.Template, c.images.defaultImage))}
	chosen, err := c.flavors.flavorFor(ctx, op, w)
	if err != nil {
		return cloud.Result{}, err
	}
	attached, err := c.networks.attachment(ctx, op, req.Attachments())
	if err != nil {
		return cloud.Result{}, err
	}
	guards, err := c.security.forNew(ctx, op, req.SecurityGroups)
	if err != nil {
		return cloud.Result{}, err
	}
	group, created, err := c.groups.serverGroupFor(ctx, op, req.AntiAffinity)
	if err != nil {
		return cloud.Result{}, err
	}
	defer created()
	for key, value := range map[string]string{
		networkKey: req.FirstNetwork(), sizeKey: chosen.record(asked), groupKey: req.AntiAffinity.Group,
	} {
		if value != "" {
			meta[key] = value
		}
	}
	data, drive, err := userData(op, req.UserData)
	if err != nil {
		return cloud.Result{}, err
	}
	options := servers.CreateOpts{
		Name: req.Name, ImageRef: imageID, FlavorRef: chosen.ID, Networks: attached, Metadata: meta, AvailabilityZone: cmp.Or(req.Zone, c.cfg.Zone),
		UserData: data, ConfigDrive: drive, SecurityGroups: guards,
	}
	if value := tag(req.Labels[c.cfg.TagLabel]); value != "" {
		options.Tags = []string{value}
	}
	body, failed := options.ToServerCreateMap()
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
		w.explainDisk(chosen, err)
		return cloud.Result{}, err
	}
	if !isID(made.Server.ID) {
		return cloud.Result{}, unreadable(call, "the answer has no id of a server")
	}
	built := asked.or(chosen.size())
	return cloud.Result{Operation: operation(opCreate, made.Server.ID), Server: cloud.Server{
		ID: made.Server.ID, Name: req.Name, Labels: req.Labels, State: cloud.StateBuilding, CPU: built.cpu, MemoryMiB: built.mib, Flavor: chosen.Name,
		Image: cloud.Image{Name: c.images.names.of(imageID), ID: imageID}, NetworkID: req.FirstNetwork(), Zone: req.Zone, SecurityGroups: req.SecurityGroups,
	}}, nil
}

// DeleteServer begins the deletion of a server, and asks whether it has ended already.
func (c *Client) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	op := "delete server " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	call := &call{
		about: aboutServer, service: compute, method: http.MethodDelete, route: "compute/servers/{id}", path: "servers/" + id, op: op,
	}
	if err := c.session.do(ctx, call); err != nil {
		return cloud.Result{}, err
	}
	left, err := c.get(ctx, op, id)
	switch {
	case err == nil && left.state() == cloud.StateDeleting:
		c.groups.leave(id, left.Metadata[groupKey])
		return cloud.Result{Server: left.domain(), Operation: operation(opDelete, id)}, nil
	case err != nil && err.Kind == cloud.NotFound:
		return cloud.Result{}, nil
	default: // it was accepted, whatever the read says
		return cloud.Result{Server: cloud.Server{ID: id, State: cloud.StateDeleting}, Operation: operation(opDelete, id)}, nil
	}
}
