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

// GetOperation returns the operation of this id.
func (c *Cloud) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	op := "get operation " + quote(id)
	if err := checkID(op, id); err != nil {
		return cloud.Operation{}, err
	}
	return do(ctx, c, call{verb: GetOperation, object: id, op: op, needs: []cloud.Capability{cloud.Operations}}, func() (cloud.Operation, error) {
		found, ok := c.operations.get(id)
		if !ok {
			return cloud.Operation{}, failure(op, cloud.NotFound, "no such operation")
		}
		if c.proving && found.Done && found.Err == nil {
			server, _ := c.servers.get(found.ServerID)
			server = c.reported(server)
			exists := found.at > 0 && c.servers.place(found.ServerID) == found.at
			if found.Gone = !exists; exists {
				found.Server = &server
			}
		}
		return found.Operation, nil
	})
}

// later accepts a change that takes effect when FinishOperations is called. The
// caller holds mu.
func (c *Cloud) later(change operation) cloud.Result {
	id := c.operations.newID()
	change.ServerID, change.at = change.serverID, c.servers.place(change.serverID)
	c.operations.put(id, change)
	return cloud.Result{Operation: id}
}

// createLater accepts a create. The caller holds mu.
func (c *Cloud) createLater(op string, req cloud.CreateServer) (cloud.Result, error) {
	key := ""
	if c.caps.Has(cloud.Idempotency) {
		key = req.IdempotencyKey
	}
	for _, one := range c.operations.ordered() {
		if key != "" && one.item.key == key && !one.item.Done {
			return cloud.Result{Operation: one.id}, nil
		}
	}
	if made, found, _ := c.serverKeys.find(key, req); found && made.at == c.servers.place(made.id) {
		s, err := c.create(op, req)
		return cloud.Result{Server: s}, err
	}
	name := cloud.Name{Name: req.Name, Folder: req.Folder}
	if err := c.nameOfServer(op, name); err != nil {
		return cloud.Result{}, err
	}
	req.Labels = maps.Clone(req.Labels)
	return c.later(operation{name: name, key: key, effect: func() (string, error) {
		s, err := c.create(op, req)
		return s.ID, err
	}}), nil
}

// SetOperating sets whether changes of servers are operations, which needs the
// capability Operations. A server that is created has no id before its operation ends.
func (c *Cloud) SetOperating(operating bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operating = operating
}

// SetProving sets whether operations say what they have made, and that a server is gone.
func (c *Cloud) SetProving(proving bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.proving = proving
}

// SetProgress sets how much of all open operations is done, in percent.
func (c *Cloud) SetProgress(percent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.operations.ordered() {
		if !one.item.Done {
			one.item.Progress = percent
			c.operations.put(one.id, one.item)
		}
	}
}

// FinishOperations ends all open operations.
func (c *Cloud) FinishOperations() { c.endOperations(nil) }

// FailOperations ends all open operations without an effect.
func (c *Cloud) FailOperations(err *cloud.Error) { c.endOperations(err) }

func (c *Cloud) endOperations(fault *cloud.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.operations.ordered() {
		ended := one.item
		if ended.Done {
			continue
		}
		ended.Done, ended.Err = true, fault // before the effect: the name is free for it
		c.operations.put(one.id, ended)
		if fault == nil {
			id, err := ended.serverID, error(nil)
			if id == "" || c.servers.place(id) == ended.at { // else the server is gone
				id, err = ended.effect()
			}
			if ended.serverID == "" {
				ended.at = c.servers.place(id)
			}
			ended.Progress, ended.ServerID = 100, id
			if err != nil {
				ended.Err = &cloud.Error{Kind: cloud.KindOf(err), Op: "operation", Detail: err.Error()}
			}
			c.operations.put(one.id, ended)
		}
	}
}

// ForgetOperations makes the cloud forget all operations, open ones without an effect.
func (c *Cloud) ForgetOperations() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations.clear()
}
