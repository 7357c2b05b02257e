package openstack

import (
	"context"
	"slices"
	"sync"

	"github.com/privatecloud/operator/internal/cloud"
)

// deleteSnapshots deletes the images that this client made from a server which is about to
// be deleted, while its owner was the same. Those of others stay, and so do those that the
// image service refuses to delete: they are listed as long as they exist.
func (c *Client) deleteSnapshots(ctx context.Context, op, serverID string) *cloud.Error {
	images, err := c.imagesOf(ctx, op, serverID)
	if err != nil {
		return err
	}
	images = slices.DeleteFunc(images, func(i snapshotImage) bool { return !i.ours() })
	if len(images) == 0 {
		return nil
	}
	of, err := c.get(ctx, op, serverID)
	if err != nil {
		return err
	}
	for _, i := range images {
		if i.Owner != c.ownerOf(of) {
			continue
		}
		switch err := c.deleteImage(ctx, op, i.ID); {
		case err == nil, err.Kind == cloud.NotFound, err.Kind == cloud.Rejected: // such as a protected one
		case err.Kind == cloud.Busy:
			c.inUse.add(serverID, i.ID)
		default:
			return err
		}
	}
	return nil
}

// ownerOf returns what identifies the owner of a server; empty if it has none.
func (c *Client) ownerOf(s *server) string { return s.Metadata[encodeKey(c.cfg.TagLabel)] }

// deleteUnused deletes the images that a server had in use which is gone.
func (c *Client) deleteUnused(ctx context.Context, op, serverID string) {
	for _, id := range c.inUse.take(serverID) {
		_ = c.deleteImage(ctx, op, id) // one that stays is listed
	}
}

// inUse are the images that could not be deleted before their server: a store that shares
// data between images and disks refuses that for the image of a server that was reverted.
type inUse struct {
	mu sync.Mutex
	// images are their ids by the id of their server.
	images map[string][]string
}

// maxInUse bounds the servers of inUse.
const maxInUse = 1000

func (u *inUse) add(serverID, id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known := u.images[serverID]; !slices.Contains(known, id) && (len(known) > 0 || len(u.images) < maxInUse) {
		u.images[serverID] = append(known, id)
	}
}

// take returns, once, the images of a server.
func (u *inUse) take(serverID string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	images := u.images[serverID]
	delete(u.images, serverID)
	return images
}
