package openstack

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// UpdateServer changes labels at once. A change of disks, of the size or of the power state is an operation, the first of these
// that there is: the others stay as they are.
func (c *Client) UpdateServer(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	op := "update server " + quote(id)
	if id != "" && len(update) == 0 {
		return cloud.Result{}, refuse(op, cloud.Rejected, "nothing to change was given")
	}
	wanted, refused := wantedBy(op, update)
	if refused != nil {
		return cloud.Result{}, refused
	}
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	result, err := c.update(ctx, op, id, wanted)
	if err != nil {
		return cloud.Result{}, c.confirm(ctx, op, id, err)
	}
	return result, nil
}

// wanted is what an update is to change, in the terms of the service.
type wanted struct {
	flavor string
	size   size
	power  cloud.PowerState
	// labels are set to their values; a nil value removes one.
	labels map[string]*string
	reach  reach
	disks  []cloud.Disk
	keep   []cloud.SetDiskKeep
}

// wantedBy returns what an update is to change. It refuses changes that this client cannot make.
func wantedBy(op string, update cloud.Update) (wanted, *cloud.Error) {
	w := wanted{labels: map[string]*string{}}
	for _, change := range update {
		switch change := change.(type) {
		case cloud.SetFlavor:
			w.flavor = string(change)
		case cloud.SetCPU:
			w.size.cpu = int(change)
		case cloud.SetMemory:
			w.size.mib = int(change)
		case cloud.SetSecurityGroups:
			w.reach.groups = cloud.SecurityGroups(change)
		case cloud.SetAllowedAddresses:
			w.reach.allowed = (*cloud.AllowedAddresses)(&change)
		case cloud.SetPublicAddress:
			w.reach.external = string(change)
		case cloud.RemovePublicAddress:
			w.reach.withoutAddress = true
		case cloud.SetLabel:
			w.labels[change.Key] = &change.Value
		case cloud.RemoveLabel:
			w.labels[string(change)] = nil
		case cloud.SetPower:
			if change.ShutsDown() {
				return wanted{}, refuse(op, cloud.Unsupported, "this cloud lacks softPowerOff")
			}
			w.power = change.State
		case cloud.SetDisk:
			w.disks = append(w.disks, cloud.Disk(change))
		case cloud.SetRootDisk:
			w.disks = append(w.disks, cloud.Disk{Name: rootDisk, SizeMiB: int(change)})
		case cloud.SetDiskKeep:
			w.keep = append(w.keep, change)
		default:
			return wanted{}, refuse(op, cloud.Unsupported, "this client cannot change %s", change)
		}
	}
	return w, nil
}

func (c *Client) update(ctx context.Context, op, id string, w wanted) (cloud.Result, *cloud.Error) {
	var current *server
	resizes := w.flavor != "" || w.size != size{}
	if len(w.disks) > 0 {
		if usable, err := c.volumes.hasDisks(ctx, op); err != nil || !usable {
			return cloud.Result{}, cmp.Or(err, refuse(op, cloud.Unsupported, "this cloud lacks disks"))
		}
	}
	if len(w.labels) > 0 || resizes || w.reach != (reach{}) || len(w.disks)+len(w.keep) > 0 {
		var err *cloud.Error
		if current, err = c.get(ctx, op, id); err != nil {
			return cloud.Result{}, err
		}
	}
	if err := c.volumes.setKeep(ctx, op, current, w.keep); err != nil {
		return cloud.Result{}, err
	}
	storing := false
	if len(w.disks) > 0 {
		var err *cloud.Error
		if storing, err = c.volumes.change(ctx, op, current, w.disks); err != nil {
			return cloud.Result{}, err
		}
	}
	if len(w.labels) > 0 {
		if err := c.relabel(ctx, op, current, w.labels); err != nil {
			return cloud.Result{}, err
		}
	}
	assigned, err := c.changeReach(ctx, op, current, w.reach)
	if err != nil {
		return cloud.Result{}, err
	}
	switch {
	case storing:
		return cloud.Result{Operation: operation(opDisks, id)}, nil
	case resizes:
		return c.resize(ctx, op, current, w.flavor, w.size)
	case w.power != "":
		return c.switchPower(ctx, op, id, w.power)
	}
	changed, err := c.get(ctx, op, id)
	if err != nil {
		return cloud.Result{}, err
	}
	changed.assigned = assigned
	return cloud.Result{Server: changed.domain()}, nil
}

// confirm asks for the server if a call about a part of it ended with a 404: compute
// answers so for metadata and actions of a server that is being built.
func (c *Client) confirm(ctx context.Context, op, id string, err *cloud.Error) error {
	return cloud.ConfirmNotFound(ctx, reader{c, op}, id, err)
}

// reader reads servers within a call that has begun.
type reader struct {
	*Client
	op string
}

// GetServer returns the server of this id.
func (r reader) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	s, err := r.get(ctx, r.op, id)
	if err != nil {
		return cloud.Server{}, err
	}
	return s.domain(), nil
}

// relabel merges labels into those of the server. The service removes one label a call. If the
// change ends between two calls, what the labels say about others, such as which of them are
// tags, still holds: labels are removed before others are set, those of the operator after all
// others. So a change that is computed from the labels that are left completes it.
func (c *Client) relabel(ctx context.Context, op string, current *server, labels map[string]*string) *cloud.Error {
	set := map[string]string{}
	var drop []string
	for key, value := range labels {
		if value != nil {
			set[key] = *value
		} else if _, there := current.Metadata[encodeKey(key)]; there {
			drop = append(drop, key)
		}
	}
	encoded, err := metadata(op, set)
	if err != nil {
		return err
	}
	slices.SortFunc(drop, removedBefore)
	for _, key := range drop {
		err := c.session.do(ctx, &call{
			about: aboutServer, service: compute, method: http.MethodDelete, route: "compute/servers/{id}/metadata/{key}",
			path: "servers/" + current.ID + "/metadata/" + encodeKey(key), op: op,
		})
		if err != nil {
			return err
		}
	}
	if len(encoded) == 0 {
		return nil
	}
	return c.session.do(ctx, addMetadata(op, current.ID, encoded))
}

// removedBefore compares two labels by when they are removed: those of the operator, whose keys
// have a prefix and a /, follow all others. In the order of their keys, that of the UID is the
// last, by which a release that ended early is recognised.
func removedBefore(a, b string) int {
	switch prefixed := strings.Contains(a, "/"); {
	case prefixed == strings.Contains(b, "/"):
		return strings.Compare(a, b)
	case prefixed:
		return 1
	}
	return -1
}

// addMetadata returns the call that merges metadata into that of a server.
func addMetadata(op, id string, metadata map[string]string) *call {
	return &call{
		about: aboutServer, service: compute, method: http.MethodPost, route: "compute/servers/{id}/metadata", path: "servers/" + id + "/metadata",
		op: op, body: map[string]any{"metadata": metadata},
	}
}

// action returns the call for an action of a server.
func action(op, id, name string, arguments any) *call {
	return &call{
		about: aboutServer, service: compute, method: http.MethodPost, route: "compute/servers/{id}/action", path: "servers/" + id + "/action",
		op: op, body: map[string]any{name: arguments},
	}
}

// powerChange is an action that leads to a power state.
type powerChange struct {
	action string
	kind   operationKind
	// status is that of the server after it, and verb names it in messages.
	status, verb string
}

var (
	starts   = powerChange{"os-start", opStart, statusActive, "start"}
	stops    = powerChange{"os-stop", opStop, statusStopped, "stop"}
	suspends = powerChange{"suspend", opSuspend, statusSuspended, "suspend"}
	resumes  = powerChange{"resume", opResume, statusActive, "resume"}
)

// powerChanges are the actions that lead to the power states. A server that is suspended
// resumes instead of starting.
var powerChanges = map[cloud.PowerState]powerChange{cloud.PowerOn: starts, cloud.PowerOff: stops, cloud.PowerSuspended: suspends}

// switchPower starts, stops, suspends or resumes a server. It is a success if the server is so
// already, which the service refuses. Only a refusal shows that a server is suspended: most
// are not, and are not read before they are started.
func (c *Client) switchPower(ctx context.Context, op, id string, to cloud.PowerState) (cloud.Result, *cloud.Error) {
	change := powerChanges[to]
	err := c.session.do(ctx, action(op, id, change.action, nil))
	if err == nil {
		return cloud.Result{Operation: operation(change.kind, id)}, nil
	}
	if err.Kind != cloud.Busy {
		return cloud.Result{}, err
	}
	current, failed := c.get(ctx, op, id)
	switch {
	case failed != nil || current.Task != "":
		return cloud.Result{}, err
	case current.Status == change.status:
		return cloud.Result{Server: current.domain()}, nil
	case to == cloud.PowerOn && current.Status == statusSuspended:
		if err := c.session.do(ctx, action(op, id, resumes.action, nil)); err != nil {
			return cloud.Result{}, err
		}
		return cloud.Result{Operation: operation(resumes.kind, id)}, nil
	}
	return cloud.Result{}, err
}

// resize begins to change the size of a server, to the flavor of a name if one is given, or goes on with a resize that waits for
// its confirmation. The service keeps the old disk until then, so it is an operation of
// two steps, the second of which is that of the operation.
func (c *Client) resize(ctx context.Context, op string, current *server, name string, to size) (cloud.Result, *cloud.Error) {
	id := current.ID
	if current.Status == statusVerify {
		if !current.resizedHere() {
			return cloud.Result{}, refuse(op, cloud.Busy, "somebody else has resized the server: confirm or revert it in the cloud")
		}
		if err := c.confirmResize(ctx, op, id); err != nil {
			return cloud.Result{}, err
		}
		return cloud.Result{Operation: operation(opResize, id)}, nil
	}
	target := to.or(current.size())
	w := wish{name: name, size: target, current: current.Flavor.Name, disk: current.Flavor.Disk, volume: current.Image.id == ""}
	if !w.volume {
		w.image, _ = c.images.needsOf(ctx, op, current.Image.id, cmp.Or(current.Image.name, current.Image.id))
	}
	chosen, err := c.flavors.flavorFor(ctx, op, w)
	if err != nil {
		return cloud.Result{}, err
	}
	if name != "" {
		target = chosen.size()
	}
	asked, before := target.record(chosen.Name), current.size().record(chosen.Name)
	if asked == "" || before == "" {
		return cloud.Result{}, refuse(op, cloud.Rejected, "the name of flavor %s is too long to be recorded", quote(chosen.Name))
	}
	if chosen.Name == current.Flavor.Name {
		if err := c.session.do(ctx, addMetadata(op, id, map[string]string{sizeKey: asked})); err != nil {
			return cloud.Result{}, err
		}
		changed, err := c.get(ctx, op, id)
		if err != nil {
			return cloud.Result{}, err
		}
		return cloud.Result{Server: changed.domain()}, nil
	}
	if current.Status == statusActive {
		return cloud.Result{}, refuse(op, cloud.NeedsStop, "the cloud restarts a running server to change its size")
	}
	// The marks precede the resize: without them nobody would confirm it if this process
	// ends before it has the answer.
	if err := c.session.do(ctx, addMetadata(op, id, map[string]string{sizeKey: asked, resizeKey: before})); err != nil {
		return cloud.Result{}, err
	}
	if err := c.session.do(ctx, action(op, id, "resize", map[string]any{"flavorRef": chosen.ID})); err != nil {
		return cloud.Result{}, err
	}
	return cloud.Result{Operation: operation(opResize, id)}, nil
}

// confirmResize ends a resize. That there is none to confirm is no failure: another
// request has confirmed it.
func (c *Client) confirmResize(ctx context.Context, op, id string) *cloud.Error {
	err := c.session.do(ctx, action(op, id, "confirmResize", nil))
	if err != nil && (err.Kind == cloud.Busy || err.Kind == cloud.Rejected) {
		return nil
	}
	return err
}
