package openstack

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// imagesHold bounds the listing of images before the deletion of a server.
const imagesHold = 10 * time.Second

// deleteSnapshots deletes the images that this client made from a server which is about to
// be deleted, while its owner was the same. Those of others stay, and so do those that the
// image service does not list or refuses to delete: they are listed as long as they exist, so
// that an outage of that service keeps no server from being deleted.
func (c *Client) deleteSnapshots(ctx context.Context, op, serverID string) *cloud.Error {
	listing, cancel := context.WithTimeout(ctx, imagesHold)
	defer cancel()
	images, err := c.imagesOf(listing, op, serverID)
	if err != nil {
		return nil
	}
	images = slices.DeleteFunc(images, func(i snapshotImage) bool { return !i.ours() })
	if len(images) == 0 {
		return nil
	}
	of, err := c.get(ctx, op, serverID)
	switch {
	case err != nil:
		return err
	case of.Locked: // its deletion would be refused
		return refuse(op, cloud.Busy, "the server is locked: unlock it in the cloud")
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
			if err.Kind == cloud.NotFoundUnproven { // it is not about the server
				err.Kind = cloud.Unavailable
			}
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
