package fake

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// serverClient has the servers, and makes the calls about them.
type serverClient struct {
	calls      *calls
	settings   *settings
	operations *operationClient
	snapshots  *snapshotClient
	networks   *store[cloud.Network]
	hosts      *hostClient
	store      *store[cloud.Server]
	keys       keys[cloud.CreateServer, cloud.Server]
	// antiAffinity is that of servers that have one, by their ids.
	antiAffinity map[string]cloud.AntiAffinity
	// interfaces are what servers that were created with Interfaces asked for, by their ids.
	interfaces map[string][]cloud.Attachment
	// poweredOff are the servers that are STOPPED once they are built.
	poweredOff map[string]bool
	// slow means that builds and deletions end when Finish is called.
	slow bool
	// hidden and lag are what a listing leaves out.
	hidden      map[string]bool
	lag         time.Duration
	utilization int
	// answer is the server that a create answers with instead of a new one.
	answer string
	// alter changes each new server, and altered has the names that were requested for them, by
	// their ids.
	alter   func(*cloud.Server)
	altered map[string]string
	// needsStop means that running servers cannot be resized.
	needsStop bool
	// keepsSize means that changes of the size are accepted and not made.
	keepsSize bool
	// guests is what guests do that are asked to shut down.
	guests Guests
	// firsts are the names of creates that came as the first with their key, and repeated
	// those of them whose key another create had used.
	firsts, repeated []string
	// userData are the user data of the creates of each name, oldest first.
	userData map[string][]string
	// consoles are what the consoles of servers printed, by their ids.
	consoles map[string]string
	// keptDisks are the names of the disks that were kept when their servers were deleted, by the ids of these.
	keptDisks map[string][]string
}

// newServerClient returns a client without servers, and the parts that it needs.
func newServerClient(calls *calls, settings *settings) *serverClient {
	c := &serverClient{
		calls: calls, settings: settings, store: newStore[cloud.Server]("s"), networks: newStore[cloud.Network]("n"), hosts: &hostClient{calls: calls},
		keys: keys[cloud.CreateServer, cloud.Server]{}, antiAffinity: map[string]cloud.AntiAffinity{}, interfaces: map[string][]cloud.Attachment{},
		poweredOff: map[string]bool{}, hidden: map[string]bool{}, utilization: defaultUtilization, altered: map[string]string{}, userData: map[string][]string{}, consoles: map[string]string{},
		keptDisks: map[string][]string{},
	}
	c.operations = &operationClient{calls: calls, servers: c, store: newStore[operation]("op")}
	c.snapshots = newSnapshotClient(c)
	return c
}

// GetServer returns the server of this id.
func (c *serverClient) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	op := "get server " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Server{}, err
	}
	return do(ctx, c.calls, call{verb: GetServer, object: id, op: op}, func() (cloud.Server, error) {
		s, err := c.server(op, id)
		return c.reported(s), err
	})
}

// ServerStatus returns the status of the server of this id.
func (c *serverClient) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	op := "get status of server " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Status{}, err
	}
	return do(ctx, c.calls, call{verb: ServerStatus, object: id, op: op}, func() (cloud.Status, error) {
		s, err := c.server(op, id)
		return cloud.Status{CPUUtilization: new(c.use(s))}, err
	})
}

// CreateServer creates a server, or returns the one that the key created before.
func (c *serverClient) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	op := "create server " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Result{}, err
	}
	var needs needs
	needs.when(req.Flavor != "", cloud.Flavors)
	needs.when(req.CPU != 0 || req.MemoryMiB != 0 || req.Template != "", cloud.Sizing)
	needs.when(req.Folder != "", cloud.Folders)
	needs.when(len(req.Attachments()) > 0, c.calls.attaches())
	needs.when(req.Interfaced(), cloud.WithInterfaces)
	needs.when(req.Addressed(), cloud.StaticAddresses)
	needs.when(req.PowerState != "", cloud.Power)
	needs.when(req.PowerState == cloud.PowerOff, cloud.PowerAtCreate)
	needs.when(len(req.Labels) > 0, cloud.Labels)
	needs.when(len(req.UserData) > 0, cloud.WithUserData)
	needs = append(append(needs, req.Disks.Needs()...), req.RootDisk.Needs()...)
	needs.when(req.Zone != "", cloud.Zones)
	needs.when(req.AntiAffinity != cloud.AntiAffinity{}, cloud.WithAntiAffinity)
	needs.when(req.SecurityGroups != "", cloud.WithSecurityGroups)
	req.Labels = maps.Clone(req.Labels)
	data := req.UserData
	req.UserData = nil // it is no part of the body
	first := req.First
	req.First = false // it is no part of the body
	return do(ctx, c.calls, call{verb: CreateServer, object: req.Name, op: op, needs: needs}, func() (cloud.Result, error) {
		if first {
			c.recordFirst(req)
		}
		if size := len(data); size > MaxUserData {
			return cloud.Result{}, cloud.UserDataTooLarge(op, size, MaxUserData)
		}
		c.userData[req.Name] = append(c.userData[req.Name], string(data))
		if c.operations.operating {
			return c.createLater(op, req)
		}
		s, err := c.create(op, req)
		return cloud.Result{Server: s}, err
	})
}

// MaxUserData bounds the user data of a server, in bytes.
const MaxUserData = 1024

// create creates a server. The caller holds mu.
func (c *serverClient) create(op string, req cloud.CreateServer) (cloud.Server, error) {
	if s, ok := c.store.get(c.answer); ok {
		return c.reported(s), nil
	}
	if c.settings.normalize {
		req.Name = strings.ToLower(req.Name)
	}
	if !c.settings.caps.Has(cloud.Idempotency) {
		req.IdempotencyKey = ""
	}
	switch made, found, reused := c.keys.find(req.IdempotencyKey, req); {
	case reused:
		return cloud.Server{}, failure(op, cloud.KeyReused, "the key belongs to a create with another request")
	case found:
		if s, ok := c.store.get(made.id); ok && c.store.place(made.id) == made.at {
			return c.reported(s), nil
		}
		return made.res.Clone(), nil
	}
	if err := c.nameOfServer(op, cloud.Name{Name: req.Name, Folder: req.Folder}); err != nil {
		return cloud.Server{}, err
	}
	if err := c.checkAttachments(op, req); err != nil {
		return cloud.Server{}, err
	}
	if err := checkDisks(op, req); err != nil {
		return cloud.Server{}, err
	}
	if err := checkFlavor(op, req.Flavor); err != nil {
		return cloud.Server{}, err
	}
	if err := checkGroups(op, req.SecurityGroups); err != nil {
		return cloud.Server{}, err
	}
	host, err := c.place(op, req)
	if err != nil {
		return cloud.Server{}, err
	}
	now := c.settings.clock()
	s := cloud.Server{
		ID: c.store.newID(), Name: req.Name, Labels: maps.Clone(req.Labels), State: cloud.StateActive,
		CPU: req.CPU, MemoryMiB: req.MemoryMiB, Image: cloud.Image{Name: req.Template}, Folder: req.Folder, NetworkID: req.FirstNetwork(),
		Disks: req.Disks, RootDisk: rootDiskOf(req, c.settings.caps), Host: host, Zone: req.Zone, SecurityGroups: req.SecurityGroups, CreatedAt: now, UpdatedAt: now,
	}
	if req.Flavor != "" {
		s = withFlavor(s, req.Flavor)
	}
	if req.AntiAffinity != (cloud.AntiAffinity{}) {
		c.antiAffinity[s.ID] = req.AntiAffinity
	}
	if len(req.Interfaces) > 0 {
		c.attach(&s, req.Interfaces)
	}
	if req.PowerState == cloud.PowerOff {
		s.State = cloud.StateStopped
	}
	if c.slow {
		c.poweredOff[s.ID] = s.State == cloud.StateStopped
		s.State = cloud.StateBuilding
	}
	if c.alter != nil {
		c.altered[s.ID] = s.Name
		c.alter(&s)
	}
	c.store.put(s.ID, s)
	c.keys.put(req.IdempotencyKey, req, s.ID, c.store.place(s.ID), c.reported(s))
	return c.reported(s), nil
}

// UpdateServer changes the server of this id in place.
func (c *serverClient) UpdateServer(ctx context.Context, id string, update cloud.Update) (cloud.Result, error) {
	op := "update server " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Result{}, err
	}
	if len(update) == 0 {
		return cloud.Result{}, failure(op, cloud.Rejected, "nothing to change was given")
	}
	for _, change := range update {
		switch change.(type) {
		case cloud.SetCPU, cloud.SetMemory, cloud.SetFlavor, cloud.SetDisk, cloud.SetDiskKeep, cloud.SetRootDisk, cloud.SetLabel, cloud.RemoveLabel, cloud.SetPower,
			cloud.SetSecurityGroups, cloud.SetPublicAddress, cloud.RemovePublicAddress, cloud.SetAllowedAddresses:
		default:
			return cloud.Result{}, failure(op, cloud.Unsupported, "this cloud cannot change %s", change)
		}
	}
	return do(ctx, c.calls, call{verb: UpdateServer, object: id, op: op, needs: update.Needs()}, func() (cloud.Result, error) {
		s, err := c.server(op, id)
		if err == nil {
			err = c.refusal(op, s, update)
		}
		switch power, _ := update.Power(); {
		case err != nil:
			return cloud.Result{}, err
		case power.ShutsDown() && c.guests == GuestsIgnore:
			update = update.Without(cloud.PowerPart)
		case c.keepsSize:
			update = update.Without(cloud.SizePart)
		}
		switch {
		case c.operations.operating:
			return c.operations.later(operation{serverID: id, effect: func() (string, error) {
				if s, ok := c.store.get(id); ok {
					c.store.put(id, c.updated(s, update))
				}
				return id, nil
			}}), nil
		case !c.calls.faults.ignored[UpdateServer]:
			s = c.updated(s, update)
			c.store.put(id, s)
		}
		return cloud.Result{Server: c.reported(s)}, nil
	})
}

// refusal returns why the cloud refuses a change of a server, nil if it does not.
func (c *serverClient) refusal(op string, s cloud.Server, update cloud.Update) error {
	running, resizes := s.State == cloud.StateActive, update.Resizes()
	power, _ := update.Power()
	switch {
	case s.State.Transitional(),
		s.State == cloud.StateSuspended && (resizes || power.State == cloud.PowerOff),
		s.State == cloud.StateStopped && power.State == cloud.PowerSuspended:
		return failure(op, cloud.Busy, "the server is %s", s.State)
	case c.needsStop && running && resizes:
		return failure(op, cloud.NeedsStop, "the size of a running server cannot be changed")
	case power.ShutsDown() && running && c.guests == GuestsUnavailable:
		return failure(op, cloud.GuestUnavailable, "no agent runs in the guest")
	}
	for _, change := range update {
		var err error
		switch change := change.(type) {
		case cloud.SetFlavor:
			err = checkFlavor(op, string(change))
		case cloud.SetDisk:
			err = checkDisk(op, s.Disks, cloud.Disk(change))
		case cloud.SetDiskKeep:
			err = checkKeep(op, s.Disks, change.Name)
		case cloud.SetRootDisk:
			err = checkRootDisk(op, s.RootDisk.SizeMiB, int(change))
		case cloud.SetSecurityGroups:
			err = checkGroups(op, cloud.SecurityGroups(change))
		case cloud.SetAllowedAddresses:
			err = checkAllowed(op, cloud.AllowedAddresses(change))
		case cloud.SetPublicAddress:
			err = c.checkPublicAddress(op, s, string(change))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// updated returns the server with the changes made.
func (c *serverClient) updated(s cloud.Server, update cloud.Update) cloud.Server {
	s = s.Clone()
	before := s.PublicAddress
	update.Apply(&s)
	if len(cloud.Changes[cloud.SetPublicAddress](update)) > 0 {
		s.PublicAddress = c.publicAddress(s.ID, before)
	}
	for _, flavor := range cloud.Changes[cloud.SetFlavor](update) {
		s = withFlavor(s, string(flavor))
	}
	s.UpdatedAt = c.settings.clock()
	return s
}

// DeleteServer deletes the server of this id. On a slow cloud the deletion only begins.
func (c *serverClient) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	op := "delete server " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Result{}, err
	}
	return do(ctx, c.calls, call{verb: DeleteServer, object: id, op: op}, func() (cloud.Result, error) {
		s, err := c.server(op, id)
		if err != nil {
			return cloud.Result{}, err
		}
		deleting := cloud.Result{Server: cloud.Server{ID: id, State: cloud.StateDeleting}}
		switch {
		case c.calls.faults.ignored[DeleteServer]:
			return deleting, nil
		case c.operations.operating:
			return c.operations.later(operation{serverID: id, effect: func() (string, error) {
				c.remove(id)
				return id, nil
			}}), nil
		case c.slow:
			s.State = cloud.StateDeleting
			c.store.put(id, s)
			return deleting, nil
		default:
			c.remove(id)
			return cloud.Result{}, nil
		}
	})
}

// remove takes a server out of the cloud, with all that its id is known by. The caller
// holds mu.
func (c *serverClient) remove(id string) {
	if s, found := c.store.get(id); found {
		c.keptDisks[id] = s.Disks.KeptNames()
	}
	c.store.remove(id)
	delete(c.hidden, id)
	delete(c.poweredOff, id)
	delete(c.antiAffinity, id)
	delete(c.interfaces, id)
	delete(c.snapshots.of, id)
}

// server returns the server as it is stored. The caller holds mu.
func (c *serverClient) server(op, id string) (cloud.Server, error) {
	s, ok := c.store.get(id)
	if !ok {
		return cloud.Server{}, failure(op, cloud.NotFound, "no such server")
	}
	return s, nil
}

// reported returns the server as the cloud reports it: a copy, with its
// utilization where the cloud has bulk status. The caller holds mu.
func (c *serverClient) reported(s cloud.Server) cloud.Server {
	s = s.Clone()
	if c.settings.caps.Has(cloud.BulkStatus) && s.ID != "" {
		s.CPUUtilization = new(c.use(s))
	}
	if s.State == cloud.StateActive && s.Heartbeat == cloud.HeartbeatUnknown && c.settings.caps.Has(cloud.GuestHeartbeat) {
		s.Heartbeat = cloud.HeartbeatOK
	}
	return s
}

// use returns the utilization of a server in percent. The caller holds mu.
func (c *serverClient) use(s cloud.Server) int {
	if s.CPUUtilization != nil {
		return *s.CPUUtilization
	}
	return c.utilization
}
