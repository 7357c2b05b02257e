package openstack

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// snapshotPause is the time between the first two looks at a snapshot that is being
	// taken, and doubles with each look.
	snapshotPause = 250 * time.Millisecond
	// descriptionKey is the property that tools show as the description of an image.
	descriptionKey = "description"
	// abandonedAfter is for how long an image may wait for its data although the compute
	// service does not work on it. It makes the image first, and takes note of that then.
	abandonedAfter = 10 * time.Minute
)

var (
	_ cloud.Snapshotter     = (*Client)(nil)
	_ cloud.SnapshotRemover = (*Client)(nil)
	_ cloud.Reverter        = (*Client)(nil)
)

// ListSnapshots returns the images that were made from a server, oldest first, also those
// that have outlived it.
func (c *Client) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	op := "list snapshots of server " + quote(serverID)
	ctx, end, err := c.session.beginAbout(ctx, op, serverID)
	if err != nil {
		return nil, err
	}
	defer end()
	images, err := c.snapshots.list(ctx, op, serverID)
	if err != nil {
		return nil, err
	}
	found := []cloud.Snapshot{}
	for _, i := range images {
		if i.taken() {
			found = append(found, i.domain())
		}
	}
	switch taking, err := c.beingTaken(ctx, op, serverID, images); {
	case err != nil:
		return nil, err
	case taking:
		return found, refuse(op, cloud.Busy, "the cloud is taking a snapshot of the server, which is not listed yet")
	case len(found) > 0:
		return found, nil
	}
	if _, err := c.get(ctx, op, serverID); err != nil {
		return nil, err
	}
	return found, nil
}

// CreateSnapshot takes a snapshot, unless the server has one of the name: names contain
// what identifies their object, as keys do.
func (c *Client) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	op := "create snapshot " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Snapshot{}, err
	}
	switch {
	case req.Memory:
		return cloud.Snapshot{}, refuse(op, cloud.Unsupported, "snapshots of this cloud do not hold memory: create a VMSnapshot without memory")
	case req.Quiesce != 0:
		return cloud.Snapshot{}, refuse(op, cloud.Unsupported,
			"the image of a server decides in this cloud whether its guest is quiesced, with hw_qemu_guest_agent and os_require_quiesce: create a VMSnapshot without quiesce")
	}
	ctx, end, err := c.session.beginAbout(ctx, op, req.ServerID)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	defer end()
	of, err := c.get(ctx, op, req.ServerID)
	switch {
	case err != nil:
		return cloud.Snapshot{}, err
	case of.Image.id == "":
		return cloud.Snapshot{}, refuse(op, cloud.Unsupported, "the server boots from a volume: snapshots are taken only of servers that boot from an image")
	}
	if made, err := c.madeBefore(ctx, op, req); made != nil || err != nil {
		return valueOf(made), asError(err)
	}
	var answer struct {
		ID string `json:"image_id"`
	}
	call := action(op, req.ServerID, "createImage", map[string]any{"name": req.Name, "metadata": c.propertiesFor(req, of)})
	call.out = &answer
	if err := c.session.do(ctx, call); err != nil {
		return cloud.Snapshot{}, c.confirm(ctx, op, req.ServerID, err)
	}
	if !isID(answer.ID) {
		return cloud.Snapshot{}, unreadable(call, "the answer has no id of an image")
	}
	made, err := c.awaitSnapshot(ctx, op, req.ServerID, answer.ID)
	return made, asError(err)
}

// madeBefore returns the snapshot of an earlier create with the name, nil if there is none.
// It deletes images of the name that will never have their data.
func (c *Client) madeBefore(ctx context.Context, op string, req cloud.CreateSnapshot) (*cloud.Snapshot, *cloud.Error) {
	images, err := c.snapshots.list(ctx, op, req.ServerID)
	if err != nil {
		return nil, err
	}
	taking, err := c.beingTaken(ctx, op, req.ServerID, images)
	if err != nil {
		return nil, err
	}
	for _, i := range images {
		switch {
		case !i.ours() || i.Name != req.Name:
		case i.taken():
			return new(i.domain()), nil
		case taking:
			return nil, unfinished(op)
		default:
			if err := c.snapshots.delete(ctx, op, i.ID); err != nil && err.Kind != cloud.NotFound {
				err.Uncertain = false // nothing was created
				return nil, err
			}
		}
	}
	return nil, nil
}

// beingTaken reports whether the data of images will still come which do not have it yet.
// The compute service shows in the task of a server that it works on one.
func (c *Client) beingTaken(ctx context.Context, op, serverID string, images []snapshotImage) (bool, *cloud.Error) {
	waiting := slices.DeleteFunc(slices.Clone(images), func(i snapshotImage) bool { return !i.ours() || i.taken() || i.dead() })
	if len(waiting) == 0 {
		return false, nil
	}
	s, err := c.get(ctx, op, serverID)
	switch {
	case err != nil && err.Kind == cloud.NotFound:
		return false, nil
	case err != nil:
		return false, err
	case strings.HasPrefix(s.Task, "image_"):
		return true, nil
	}
	return slices.ContainsFunc(waiting, func(i snapshotImage) bool {
		return i.CreatedAt.IsZero() || time.Since(i.CreatedAt.Time) < abandonedAfter
	}), nil
}

// propertiesFor returns the properties of the image of a new snapshot.
func (c *Client) propertiesFor(req cloud.CreateSnapshot, of *server) map[string]string {
	properties := map[string]string{snapshotKey: req.Name, ownerKey: of.Metadata[encodeKey(c.cfg.TagLabel)]}
	if req.Description != "" {
		properties[descriptionKey] = basicPlane(req.Description)
	}
	return properties
}

func valueOf(s *cloud.Snapshot) cloud.Snapshot {
	if s == nil {
		return cloud.Snapshot{}
	}
	return *s
}

// awaitSnapshot waits a short time until an image has its data. The compute service deletes
// an image that it cannot complete.
func (c *Client) awaitSnapshot(ctx context.Context, op, serverID, id string) (cloud.Snapshot, *cloud.Error) {
	until := time.Now().Add(transport.WorkTimeout)
	for pause := snapshotPause; ; pause *= 2 {
		i, err := c.snapshots.get(ctx, op, serverID, id)
		switch {
		case err != nil && err.Kind == cloud.NotFound:
			return cloud.Snapshot{}, refuse(op, cloud.Failed, "the cloud accepted the snapshot, and gave it up")
		case err != nil:
			err.Uncertain = true
			return cloud.Snapshot{}, err
		case i.taken():
			return i.domain(), nil
		case time.Now().Add(pause).After(until), !transport.Sleep(ctx, pause):
			return cloud.Snapshot{}, unfinished(op)
		}
	}
}

// unfinished is the error of a create while the cloud takes the snapshot.
func unfinished(op string) *cloud.Error {
	e := refuse(op, cloud.Busy, "the cloud is taking the snapshot")
	e.Uncertain = true
	return e
}

// DeleteSnapshot deletes an image that was made from a server.
func (c *Client) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	op := "delete snapshot " + quote(id)
	ctx, end, err := c.session.beginAbout(ctx, op, id)
	if err != nil {
		return err
	}
	defer end()
	if _, err := c.snapshots.get(ctx, op, serverID, id); err != nil {
		return err
	}
	return asError(c.snapshots.delete(ctx, op, id))
}

// DeleteSnapshots deletes the images that this client made from a server which is gone,
// while it had this owner. Those of others stay, and so do hidden ones and those that are
// protected or in use: they are listed as long as they exist.
//
// The images are deleted after the server. Were they deleted before it, a deletion that
// compute refuses would leave a server without its snapshots.
func (c *Client) DeleteSnapshots(ctx context.Context, serverID, owner string) error {
	op := "delete the snapshots of server " + quote(serverID)
	ctx, end, failed := c.session.beginAbout(ctx, op, serverID)
	if failed != nil {
		return failed
	}
	defer end()
	images, failed := c.snapshots.listVisible(ctx, op, serverID)
	if failed != nil {
		return failed
	}
	for _, i := range images {
		if !i.ours() || i.Owner != owner {
			continue
		}
		switch err := c.snapshots.delete(ctx, op, i.ID); {
		case err == nil, err.Kind == cloud.NotFound:
		case err.Kind == cloud.Busy: // it is in use
			switch left, failed := c.remainderOf(ctx, op, serverID); {
			case failed != nil:
				return failed
			case left.kept: // the server may use its data
				return err
			}
		case i.Protected && err.Kind == cloud.Forbidden, err.Kind == cloud.Rejected:
		default:
			return err
		}
	}
	return nil
}

// RevertServer rebuilds a server from an image that was made from it: the server keeps its
// id, ports, metadata and flavor, and its power state. Nothing of a server says that it was
// rebuilt, so the call is never repeated.
func (c *Client) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	op := "revert to snapshot " + quote(req.SnapshotID)
	if req.Again {
		return cloud.Result{}, refuse(op, cloud.Unsupported, "this cloud has no idempotency keys, so a second revert could follow the first")
	}
	if !isID(req.ServerID) {
		return cloud.Result{}, refuse(op, cloud.NotFound, "no id of a server of this cloud looks like that")
	}
	ctx, end, err := c.session.beginAbout(ctx, op, req.SnapshotID)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	i, err := c.snapshots.get(ctx, op, req.ServerID, req.SnapshotID)
	switch {
	case err != nil && err.Kind == cloud.NotFoundUnproven:
		return cloud.Result{}, refuse(op, cloud.Unavailable, "something in front of the cloud says that the image of the snapshot does not exist")
	case err != nil:
		return cloud.Result{}, err
	case i.Status != "active":
		return cloud.Result{}, refuse(op, cloud.Busy, "the image of the snapshot is in status %s, and cannot be used", quote(i.Status))
	}
	if err := c.session.do(ctx, action(op, req.ServerID, "rebuild", map[string]any{"imageRef": req.SnapshotID})); err != nil {
		return cloud.Result{}, c.confirm(ctx, op, req.ServerID, err)
	}
	return cloud.Result{Operation: operation(opRevert, req.ServerID)}, nil
}

// basicPlane replaces the characters that the image service does not store.
func basicPlane(text string) string {
	return strings.Map(func(r rune) rune {
		if r > 0xffff {
			return utf8.RuneError
		}
		return r
	}, text)
}
