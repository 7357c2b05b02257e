package openstack

import (
	"context"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// The compute service has no operations that members of a project can ask for. What a
// change leads to is read from the server, so an operation is a kind of change and the
// id of the server: "resize.d739201c-…".
type operationKind string

const (
	opCreate  operationKind = "create"
	opStart   operationKind = "start"
	opStop    operationKind = "stop"
	opSuspend operationKind = "suspend"
	opResume  operationKind = "resume"
	opResize  operationKind = "resize"
	opDisks   operationKind = "disks"
	opRevert  operationKind = "revert"
	opDelete  operationKind = "delete"
)

func operation(kind operationKind, id string) string { return string(kind) + "." + id }

func parseOperation(text string) (kind operationKind, id string, ok bool) {
	name, id, found := strings.Cut(text, ".")
	switch kind = operationKind(name); kind {
	case opCreate, opStart, opStop, opSuspend, opResume, opResize, opDisks, opRevert, opDelete:
		return kind, id, found && isID(id)
	}
	return "", "", false
}

// GetOperation reads the server that an operation is about. It confirms a resize that
// waits for it.
func (c *Client) GetOperation(ctx context.Context, id string) (cloud.Operation, error) {
	op := "get operation " + quote(id)
	kind, serverID, ok := parseOperation(id)
	switch {
	case id == "":
		return cloud.Operation{}, refuse(op, cloud.Rejected, "no id was given")
	case !ok:
		return cloud.Operation{}, refuse(op, cloud.NotFound, "this cloud has no such operation")
	}
	ctx, end, err := c.session.begin(ctx, op)
	if err != nil {
		return cloud.Operation{}, err
	}
	defer end()
	s, err := c.read(ctx, op, serverID)
	switch {
	case err != nil && err.Kind == cloud.NotFound && kind == opDelete:
		c.groups.leaveGroup(ctx, op, serverID)
		return cloud.Operation{Done: true, ServerID: serverID}, nil
	case err != nil && err.Kind == cloud.NotFoundUnproven:
		// Nothing more is learned from the operation: the server is looked for.
		return cloud.Operation{}, refuse(op, cloud.NotFound, "the server of the operation is not found")
	case err != nil:
		return cloud.Operation{}, err
	}
	got, err := c.observe(ctx, op, kind, s)
	got.ServerID = serverID
	return got, asError(err)
}

// observe returns how far an operation on a server is.
func (c *Client) observe(ctx context.Context, op string, kind operationKind, s *server) (cloud.Operation, *cloud.Error) {
	failed := func(format string, args ...any) (cloud.Operation, *cloud.Error) {
		return cloud.Operation{Done: true, Err: refuse(op, cloud.Failed, format, args...)}, nil
	}
	done, running := cloud.Operation{Done: true}, cloud.Operation{Progress: s.progress()}
	switch {
	case kind == opDelete && s.state() == cloud.StateDeleting:
		return running, nil
	case s.state() == cloud.StateError:
		return cloud.Operation{Done: true, Err: s.fault(op)}, nil
	case kind == opDelete:
		return failed("the cloud gave the deletion up")
	case s.deleting():
		return failed("the server is being deleted")
	}
	switch kind {
	case opCreate:
		if s.Status == statusBuild {
			return running, nil
		}
		if !s.hasVolumesOfCreate() {
			return done, nil
		}
		return c.observeDisks(ctx, op, s)
	case opDisks:
		return c.observeDisks(ctx, op, s)
	case opResize:
		return c.observeResize(ctx, op, s)
	case opRevert:
		if s.state() == cloud.StateBuilding || s.Task != "" {
			return running, nil
		}
		return done, nil
	default:
		return observePower(kind, s, done, failed)
	}
}

// observeDisks returns how far the disks of a server are that were made or changed, and does the next step.
func (c *Client) observeDisks(ctx context.Context, op string, s *server) (cloud.Operation, *cloud.Error) {
	if usable, err := c.volumes.hasDisks(ctx, op); err != nil || !usable {
		return cloud.Operation{Done: true}, err
	}
	done, failure, err := c.volumes.finish(ctx, op, s)
	return cloud.Operation{Done: done || failure != nil, Err: failure}, err
}

// observePower returns how far a change of the power state is. The service sets the task
// before it answers the request.
func observePower(kind operationKind, s *server, done cloud.Operation, failed func(string, ...any) (cloud.Operation, *cloud.Error)) (cloud.Operation, *cloud.Error) {
	change := starts
	for _, other := range []powerChange{stops, suspends, resumes} {
		if other.kind == kind {
			change = other
		}
	}
	switch {
	case s.Task != "":
		return cloud.Operation{}, nil
	case s.Status == change.status:
		return done, nil
	}
	return failed("the cloud did not %s the server", change.verb)
}

// observeResize returns how far a resize is, and confirms it. Then it is over once the
// server has its flavor and leaves the status in which it waits for the confirmation.
func (c *Client) observeResize(ctx context.Context, op string, s *server) (cloud.Operation, *cloud.Error) {
	const confirming = 90
	switch {
	case s.Status == statusVerify && s.resizedHere():
		if err := c.confirmResize(ctx, op, s.ID); err != nil && err.Kind != cloud.NotFound {
			return cloud.Operation{}, err
		}
		return cloud.Operation{Progress: confirming}, nil
	case s.Status == statusVerify:
		return cloud.Operation{Done: true, Err: refuse(op, cloud.Failed, "somebody else has resized the server: confirm or revert it in the cloud")}, nil
	case s.state() == cloud.StateBuilding, s.Task != "":
		return cloud.Operation{Progress: min(s.progress(), confirming)}, nil
	case s.resizedHere():
		return cloud.Operation{Done: true}, nil
	}
	return cloud.Operation{Done: true, Err: refuse(op, cloud.Failed,
		"the cloud gave the resize up: the server has flavor %s as before", quote(s.Flavor.Name))}, nil
}
