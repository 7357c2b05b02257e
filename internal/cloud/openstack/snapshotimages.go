package openstack

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// The properties of the images that this client has made from servers. A server that is
// created or reverted from such an image passes them on to the images that are made from it,
// also by others, but not the name.
const (
	// snapshotKey has the name that an image was made with.
	snapshotKey = "privatecloud:snapshot"
	// ownerKey has what identifies the owner of the server at that time.
	ownerKey = "privatecloud:owner"
)

// hiddenKey is the filter of listings for images that somebody has hidden. The image service
// lists either those or the others.
const hiddenKey = "os_hidden"

// snapshotImage is an image in the JSON of the image service, which the compute service has
// made from a server.
type snapshotImage struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	SizeBytes *int64 `json:"size"` // null until the data is there
	CreatedAt stamp  `json:"created_at"`
	ServerID  string `json:"instance_uuid"`
	Type      string `json:"image_type"`
	Mark      string `json:"privatecloud:snapshot"`
	Owner     string `json:"privatecloud:owner"`
	// Protected: the service refuses to delete it, whoever asks.
	Protected bool `json:"protected"`
}

// ours reports whether this client made an image, which has not only inherited its properties.
func (i snapshotImage) ours() bool { return i.Mark != "" && i.Mark == i.Name }

// of reports whether an image is a snapshot of a server.
func (i snapshotImage) of(serverID string) bool {
	return i.ServerID == serverID && i.Type == "snapshot" && i.Name != ""
}

// taken reports whether the data of an image is there.
func (i snapshotImage) taken() bool { return i.Status == "active" || i.Status == "deactivated" }

// dead reports whether an image will never have data.
func (i snapshotImage) dead() bool {
	return i.Status == "killed" || i.Status == "deleted" || i.Status == "pending_delete"
}

// domain returns an image as the operator knows it.
func (i snapshotImage) domain() cloud.Snapshot {
	s := cloud.Snapshot{ID: i.ID, Name: i.Name, CreatedAt: i.CreatedAt.Time}
	if i.SizeBytes != nil {
		s.SizeBytes = max(0, *i.SizeBytes)
	}
	return s
}

// snapshotClient reads and deletes the images that were made from servers.
type snapshotClient struct{ session *session }

// list returns the images of the project that are snapshots of a server, oldest first,
// also those that somebody has hidden in the listings of the image service.
func (c *snapshotClient) list(ctx context.Context, op, serverID string) ([]snapshotImage, *cloud.Error) {
	images, err := c.listVisible(ctx, op, serverID)
	if err != nil {
		return nil, err
	}
	hidden, err := c.query(ctx, op, serverID, url.Values{hiddenKey: {"true"}})
	if err != nil {
		return nil, err
	}
	if len(hidden) == 0 {
		return images, nil
	}
	return sorted(append(images, hidden...)), nil
}

// listVisible is list without hidden images.
func (c *snapshotClient) listVisible(ctx context.Context, op, serverID string) ([]snapshotImage, *cloud.Error) {
	return c.query(ctx, op, serverID, url.Values{})
}

// sorted sorts images, oldest first. One that was hidden between two listings is in both.
func sorted(images []snapshotImage) []snapshotImage {
	slices.SortStableFunc(images, func(a, b snapshotImage) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt.Time), cmp.Compare(a.ID, b.ID))
	})
	return slices.CompactFunc(images, func(a, b snapshotImage) bool { return a.ID == b.ID })
}

// query returns the snapshots of a server among the images that match a filter, oldest first.
func (c *snapshotClient) query(ctx context.Context, op, serverID string, filter url.Values) ([]snapshotImage, *cloud.Error) {
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	call := &call{about: aboutCloud, service: image, method: http.MethodGet, route: "image/images", path: "images", op: op}
	maps.Copy(filter, url.Values{"instance_uuid": {serverID}, "image_type": {"snapshot"}, "owner": {project}})
	images, err := listPages(ctx, c.session, call, filter, "images", func(i snapshotImage) string {
		if !isID(i.ID) {
			return ""
		}
		return i.ID
	})
	if err != nil {
		return nil, err
	}
	return sorted(slices.DeleteFunc(images, func(i snapshotImage) bool { return !i.of(serverID) })), nil
}

// get returns the image of this id, which is a snapshot of a server.
func (c *snapshotClient) get(ctx context.Context, op, serverID, id string) (snapshotImage, *cloud.Error) {
	var got snapshotImage
	call := &call{
		about: aboutImage, service: image, method: http.MethodGet, route: "image/images/{id}", path: "images/" + id, op: op, out: &got,
	}
	if err := c.session.do(ctx, call); err != nil {
		return snapshotImage{}, err
	}
	switch {
	case got.ID != id:
		return snapshotImage{}, unreadable(call, "the answer is about another image")
	case !got.of(serverID) || got.dead():
		return snapshotImage{}, refuse(op, cloud.NotFound, "the server has no such snapshot")
	}
	return got, nil
}

// delete deletes an image.
func (c *snapshotClient) delete(ctx context.Context, op, id string) *cloud.Error {
	return c.session.do(ctx, &call{
		about: aboutImage, service: image, method: http.MethodDelete, route: "image/images/{id}", path: "images/" + id, op: op,
	})
}
