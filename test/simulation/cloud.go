package simulation

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// cloudClient is the client that a process has of a cloud. The scheduler decides when a call reaches
// the cloud, and when its answer arrives.
type cloudClient struct {
	process *process
	model   *fake.Cloud
	// name is that of the Cloud, and listing when its listing began.
	name    string
	listing time.Time
}

var (
	_ cloud.Client      = (*cloudClient)(nil)
	_ cloud.Snapshotter = (*cloudClient)(nil)
	_ cloud.Reverter    = (*cloudClient)(nil)
	_ cloud.Watcher     = (*cloudClient)(nil)
)

// through makes a call of this name. Changes are uncertain if their answer is lost.
func through[R any](ctx context.Context, c *cloudClient, name string, mutates bool, effect func(context.Context) (R, error)) (R, error) {
	if mutates && !cloud.Permitted(ctx) { // as the transport does
		var nothing R
		return nothing, &cloud.Error{Kind: cloud.Throttled, Op: name, Detail: "this process does not lead any more", RetryAfter: time.Second}
	}
	return ask(ctx, c.process, "cloud "+name, mutates, func() (R, error) {
		if mutates {
			c.process.world.changes++
		}
		c.process.world.working = c.process.world.working || mutates && c.process.world.profile.operating
		return effect(context.Background())
	},
		func(why fault) error {
			return &cloud.Error{Kind: failures[why], Op: name, Detail: "injected: " + string(why), Uncertain: why == lost && mutates}
		})
}

// failures are the kinds of the errors of a cloud.
var failures = map[fault]cloud.Kind{
	unavailable: cloud.Unavailable, lost: cloud.Unavailable, throttled: cloud.Throttled, busy: cloud.Busy, full: cloud.Quota, gateway: cloud.NotFoundUnproven, lagging: cloud.NotFound,
}

// pageSize is how many servers a page of a listing has, where the cloud has pages.
const pageSize = 2

type none struct{}

func (c *cloudClient) Capabilities(ctx context.Context) (cloud.Capabilities, error) {
	return through(ctx, c, "capabilities", false, c.model.Capabilities)
}

func (c *cloudClient) CheckName(ctx context.Context, name cloud.Name) error {
	_, err := through(ctx, c, "check "+name.Name, false, func(ctx context.Context) (none, error) { return none{}, c.model.CheckName(ctx, name) })
	return err
}

func (c *cloudClient) GetServer(ctx context.Context, id string) (cloud.Server, error) {
	server, err := through(ctx, c, "get "+id, false, func(ctx context.Context) (cloud.Server, error) {
		c.process.world.shown[id] = true
		return c.model.GetServer(ctx, id)
	})
	if err == nil && id == c.process.world.hidden {
		c.process.found = id
	}
	return server, err
}

func (c *cloudClient) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	return through(ctx, c, "status "+id, false, func(ctx context.Context) (cloud.Status, error) { return c.model.ServerStatus(ctx, id) })
}

func (c *cloudClient) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	opts.Limit = min(opts.Limit, pageSize)
	if opts.Marker == "" {
		c.listing = time.Now()
	}
	page, err := through(ctx, c, strings.TrimSpace("list "+opts.Marker), false, func(ctx context.Context) (cloud.ServerPage, error) { return c.model.ListServers(ctx, opts) })
	if err == nil && page.Next == "" {
		c.process.listed(c.name, c.listing)
	}
	return page, err
}

func (c *cloudClient) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Result, error) {
	sentAt := time.Now()
	return through(ctx, c, "create "+req.Name, true, func(ctx context.Context) (cloud.Result, error) {
		c.process.world.checkApproved(req.IdempotencyKey, is(pcapi.PlannedCreate))
		result, err := c.process.world.create(ctx, sentAt, req)
		if err == nil && result.Server.ID != "" {
			c.process.made = append(c.process.made, made{result.Server.ID, types.UID(req.IdempotencyKey), sentAt})
		}
		return result, err
	})
}

func (c *cloudClient) UpdateServer(ctx context.Context, id string, req cloud.Update) (cloud.Result, error) {
	return through(ctx, c, "update "+id, true, func(ctx context.Context) (cloud.Result, error) {
		c.process.world.checkApproved(id, changesServer)
		return c.model.UpdateServer(ctx, id, req)
	})
}

func (c *cloudClient) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	return through(ctx, c, "delete "+id, true, func(ctx context.Context) (cloud.Result, error) {
		c.process.world.checkApproved(id, is(pcapi.PlannedDelete))
		c.process.world.checkDeletion(c, id)
		return c.model.DeleteServer(ctx, id)
	})
}

func (c *cloudClient) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	return through(ctx, c, "operation "+id, false, func(ctx context.Context) (cloud.Operation, error) { return c.model.GetOperation(ctx, id) })
}

func (c *cloudClient) ListHosts(ctx context.Context) ([]cloud.Host, error) {
	return through(ctx, c, "list hosts", false, c.model.ListHosts)
}

func (c *cloudClient) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	return through(ctx, c, "list networks", false, c.model.ListNetworks)
}

func (c *cloudClient) GetNetwork(ctx context.Context, id string) (cloud.Network, error) {
	return through(ctx, c, "get network "+id, false, func(ctx context.Context) (cloud.Network, error) { return c.model.GetNetwork(ctx, id) })
}

func (c *cloudClient) CreateNetwork(ctx context.Context, req cloud.CreateNetwork) (cloud.Network, error) {
	return through(ctx, c, "create network "+req.Name, true, func(ctx context.Context) (cloud.Network, error) { return c.model.CreateNetwork(ctx, req) })
}

func (c *cloudClient) UpdateNetwork(ctx context.Context, id string, change cloud.UpdateNetwork) (cloud.Network, error) {
	return through(ctx, c, "update network "+id, true, func(ctx context.Context) (cloud.Network, error) { return c.model.UpdateNetwork(ctx, id, change) })
}

func (c *cloudClient) DeleteNetwork(ctx context.Context, id string) error {
	_, err := through(ctx, c, "delete network "+id, true, func(ctx context.Context) (none, error) { return none{}, c.model.DeleteNetwork(ctx, id) })
	return err
}

func (c *cloudClient) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	return through(ctx, c, "list snapshots "+serverID, false, func(ctx context.Context) ([]cloud.Snapshot, error) { return c.model.ListSnapshots(ctx, serverID) })
}

func (c *cloudClient) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	return through(ctx, c, "create snapshot "+req.Name, true, func(ctx context.Context) (cloud.Snapshot, error) { return c.model.CreateSnapshot(ctx, req) })
}

func (c *cloudClient) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	_, err := through(ctx, c, "delete snapshot "+id, true, func(ctx context.Context) (none, error) { return none{}, c.model.DeleteSnapshot(ctx, serverID, id) })
	return err
}

func (c *cloudClient) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	if req.Again && !c.process.world.profile.capabilities.Has(cloud.Idempotency) {
		return c.model.RevertServer(ctx, req) // as the clients do, which send nothing
	}
	return through(ctx, c, "revert "+req.ServerID, true, func(ctx context.Context) (cloud.Result, error) {
		c.process.world.checkApproved(req.ServerID, is(pcapi.PlannedRevert))
		return c.model.RevertServer(ctx, req)
	})
}

// Watch begins when the scheduler lets it, and so does each report. A report that fails ends it.
func (c *cloudClient) Watch(ctx context.Context, report func(cloud.Change) error) error {
	if _, err := through(ctx, c, "watch", false, func(context.Context) (none, error) { return none{}, nil }); err != nil {
		return err
	}
	return c.model.Watch(ctx, func(change cloud.Change) error {
		_, err := through(ctx, c, "report", false, func(context.Context) (none, error) { return none{}, nil })
		if err != nil {
			return err
		}
		return report(change)
	})
}

// Close does nothing: the cloud has no sessions.
func (*cloudClient) Close(context.Context) {}

// create creates a server. A create that took longer than the settle time allows has an effect only if its
// VM exists: otherwise the server would have nobody who deletes it.
func (w *world) create(ctx context.Context, sentAt time.Time, req cloud.CreateServer) (cloud.Result, error) {
	tardy := w.profile.tardy() && time.Since(sentAt) > settleTime/2
	if tardy && !w.wanted(req.Labels[inventory.UIDLabel]) {
		return cloud.Result{}, &cloud.Error{Kind: cloud.Unavailable, Op: "create", Detail: "injected: the request is too old"}
	}
	before := w.cloud.ServerIDs()
	result, err := w.cloud.CreateServer(ctx, req)
	if id := result.Server.ID; err == nil && !slices.Contains(before, id) && w.cloud.HasServer(id) {
		w.born(id, types.UID(req.IdempotencyKey))
	}
	if err == nil && tardy {
		w.tardy[result.Server.ID] = true
	}
	return result, err
}

// mayLag reports whether a GET may not show a server yet: no other one has.
func (w *world) mayLag(id string) bool {
	return w.profile.lag > 0 && !w.shown[id] && slices.ContainsFunc(w.cloud.Servers(), func(s cloud.Server) bool {
		return s.ID == id && s.State != cloud.StateDeleting && time.Since(s.CreatedAt) < w.profile.lag
	})
}

// wanted reports whether a VM exists that is not being deleted, and does not depend on a Network.
func (w *world) wanted(uid string) bool {
	return slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool {
		return string(o.GetUID()) == uid && o.GetDeletionTimestamp() == nil && o.(*pcapi.VM).Spec.NetworkRef == nil
	})
}
