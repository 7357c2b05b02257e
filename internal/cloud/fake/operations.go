package fake

import (
	"context"
	"maps"

	"github.com/privatecloud/operator/internal/cloud"
)

// operation is a change that takes effect when it ends.
type operation struct {
	cloud.Operation
	// serverID is the server that exists already, empty for a create.
	serverID string
	// at is the place of the server in their order: one that gets its id later has another.
	at int
	// name and key are those of a create.
	name cloud.Name
	key  string
	// effect makes the change and returns the id of the server.
	effect func() (string, error)
}

// operationClient has the operations, and makes the calls about them.
type operationClient struct {
	calls   *calls
	servers *serverClient
	store   *store[operation]
	// operating means that changes of servers are operations, which end when
	// FinishOperations is called.
	operating bool
	// proving means that operations say what they have made, and that a server is gone.
	proving bool
}

// GetOperation returns the operation of this id.
func (c *operationClient) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	op := "get operation " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Operation{}, err
	}
	return do(ctx, c.calls, call{verb: GetOperation, object: id, op: op, needs: []cloud.Capability{cloud.Operations}}, func() (cloud.Operation, error) {
		found, ok := c.store.get(id)
		if !ok {
			return cloud.Operation{}, failure(op, cloud.NotFound, "no such operation")
		}
		if c.proving && found.Done && found.Err == nil {
			server, _ := c.servers.store.get(found.ServerID)
			server = c.servers.reported(server)
			exists := found.at > 0 && c.servers.store.place(found.ServerID) == found.at
			if found.Gone = !exists; exists {
				found.Server = &server
			}
		}
		return found.Operation, nil
	})
}

// later accepts a change that takes effect when FinishOperations is called. The
// caller holds mu.
func (c *operationClient) later(change operation) cloud.Result {
	id := c.store.newID()
	change.ServerID, change.at = change.serverID, c.servers.store.place(change.serverID)
	c.store.put(id, change)
	return cloud.Result{Operation: id}
}

// createLater accepts a create. The caller holds mu.
func (c *serverClient) createLater(op string, req cloud.CreateServer) (cloud.Result, error) {
	key := ""
	if c.settings.caps.Has(cloud.Idempotency) {
		key = req.IdempotencyKey
	}
	for _, one := range c.operations.store.ordered() {
		if key != "" && one.item.key == key && !one.item.Done {
			return cloud.Result{Operation: one.id}, nil
		}
	}
	if made, found, _ := c.keys.find(key, req); found && made.at == c.store.place(made.id) {
		s, err := c.create(op, req)
		return cloud.Result{Server: s}, err
	}
	name := cloud.Name{Name: req.Name, Folder: req.Folder}
	if err := c.nameOfServer(op, name); err != nil {
		return cloud.Result{}, err
	}
	req.Labels = maps.Clone(req.Labels)
	return c.operations.later(operation{name: name, key: key, effect: func() (string, error) {
		s, err := c.create(op, req)
		return s.ID, err
	}}), nil
}

// end ends all open operations, without an effect if there is a fault.
func (c *operationClient) end(fault *cloud.Error) {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	for _, one := range c.store.ordered() {
		ended := one.item
		if ended.Done {
			continue
		}
		ended.Done, ended.Err = true, fault // before the effect: the name is free for it
		c.store.put(one.id, ended)
		if fault == nil {
			id, err := ended.serverID, error(nil)
			if id == "" || c.servers.store.place(id) == ended.at { // else the server is gone
				id, err = ended.effect()
			}
			if ended.serverID == "" {
				ended.at = c.servers.store.place(id)
			}
			ended.Progress, ended.ServerID = 100, id
			if err != nil {
				ended.Err = &cloud.Error{Kind: cloud.KindOf(err), Op: "operation", Detail: err.Error()}
			}
			c.store.put(one.id, ended)
		}
	}
}
