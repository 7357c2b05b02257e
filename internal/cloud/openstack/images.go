package openstack

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// imageClient finds the images from which servers are made.
type imageClient struct {
	session *session
	// defaultImage is the image of servers without a template; may be empty.
	defaultImage string
	ids          *lookup
	needs        needsKept
	// names has the names of the images that servers were made from.
	names *imageNames
}

func newImageClient(s *session, defaultImage string) *imageClient {
	return &imageClient{session: s, defaultImage: defaultImage, ids: newLookup(s, "image"), names: newImageNames(s)}
}

// imageFor returns the id of the image of a template, the default one if it is empty. No
// image that was made from a server is a template: the server may be another tenant's.
func (c *imageClient) imageFor(ctx context.Context, op, template string) (string, *cloud.Error) {
	switch {
	case template != "":
		return c.find(ctx, op, template)
	case c.defaultImage == "":
		return "", refuse(op, cloud.Rejected, "the VM has no template, and spec.openstack.images.default of the Cloud is empty")
	}
	id, err := c.find(ctx, op, c.defaultImage)
	return id, misconfigured("images.default", err)
}

// find returns the id of an image that is given by name or id.
func (c *imageClient) find(ctx context.Context, op, name string) (string, *cloud.Error) {
	var got struct {
		Images []listedImage `json:"images"`
	}
	call := &call{
		about: aboutCloud, service: image, method: http.MethodGet, route: "image/images", path: "images",
		query: url.Values{"name": {name}, "status": {"active"}}, op: op, out: &got, limit: maxList,
	}
	byID := looksLikeID.MatchString(name)
	if byID && c.ids.get(name) == "" {
		if err := c.checkTemplate(ctx, op, name); err != nil {
			return "", err
		}
		c.ids.put(name, name)
	}
	id, err := c.ids.idOf(ctx, call, name, func() []named {
		return c.templates(got.Images, name)
	})
	if err == nil && !byID {
		c.names.put(id, name)
		for _, i := range got.Images {
			if i.ID == id {
				c.needs.put(id, i.needs())
			}
		}
	}
	return id, err
}

// checkTemplate refuses the id of an image that is no template. The create says whether an image exists.
func (c *imageClient) checkTemplate(ctx context.Context, op, id string) *cloud.Error {
	got, err := c.show(ctx, op, id)
	switch {
	case err != nil && err.Kind == cloud.NotFound:
		return nil
	case err != nil:
		err.Detail = "looking for image " + quote(id) + ": " + err.Detail
		return err
	case len(c.templates([]listedImage{got}, id)) == 0:
		return refuse(op, cloud.Rejected, "image %s was made from a server and cannot be used as a template: see the documentation of clouds of type OpenStack for how an administrator can change that", quote(id))
	}
	c.needs.put(id, got.needs())
	return nil
}

// listedImage is an image in the JSON of the image service.
type listedImage struct {
	named
	// Mark, Type and ServerID are those of snapshotImage.
	Mark     string `json:"privatecloud:snapshot"`
	Type     string `json:"image_type"`
	ServerID string `json:"instance_uuid"`
	// Volumes is set in images of servers that boot from a volume: nova boots a copy of the volume.
	Volumes any `json:"block_device_mapping"`
	// MinDisk is in GiB and MinRAM in MiB: what the image needs at least. Size is in bytes, and 0 if it is not known.
	MinDisk int   `json:"min_disk"`
	MinRAM  int   `json:"min_ram"`
	Size    int64 `json:"size"`
	// Visibility is "public" in images that every project can boot.
	Visibility string `json:"visibility"`
}

// ofServer reports whether an image was made from a server, as a snapshot, a backup, or when the server was shelved. It
// may have the data and the name of another tenant's server, unless it is public.
func (n listedImage) ofServer() bool {
	return n.Mark != "" || n.Visibility != "public" && (n.ServerID != "" || n.Volumes != nil || n.Type == "snapshot" || n.Type == "backup")
}

// templates returns the images from which servers may be made. An image of a server counts only if it has the wanted
// name or id, the Cloud names it as the default, no other image has that name, and this client did not make it.
func (c *imageClient) templates(images []listedImage, wanted string) []named {
	usable := slices.DeleteFunc(slices.Clone(images), listedImage.ofServer)
	is := func(n listedImage) bool { return n.Name == wanted || n.ID == wanted }
	if wanted == c.defaultImage && !slices.ContainsFunc(usable, is) {
		for _, n := range images {
			if n.Mark == "" && is(n) {
				usable = append(usable, n)
			}
		}
	}
	names := make([]named, 0, len(usable))
	for _, n := range usable {
		names = append(names, n.named)
	}
	return names
}
