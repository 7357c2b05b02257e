package openstack

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

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

// find returns the id of an image that is given by name, id or tags.
func (c *imageClient) find(ctx context.Context, op, name string) (string, *cloud.Error) {
	if looksLikeID.MatchString(name) {
		if c.ids.get(name) == "" {
			if err := c.checkTemplate(ctx, op, name); err != nil {
				return "", err
			}
			c.ids.put(name, name)
		}
		return name, nil
	}
	if list, ok := strings.CutPrefix(name, tagsPrefix); ok {
		return c.findTagged(ctx, op, name, strings.Split(list, ","))
	}
	project, err := c.session.project(ctx, op)
	if err != nil {
		return "", err
	}
	var got struct {
		Images []listedImage `json:"images"`
	}
	wanted := name
	if strings.Contains(name, ":") { // what precedes a colon is an operator
		wanted = "eq:" + name
	}
	call := &call{
		about: aboutCloud, service: image, method: http.MethodGet, route: "image/images", path: "images",
		query: url.Values{"name": {wanted}, "status": {"active"}, "limit": {strconv.Itoa(pageSize)}}, op: op, out: &got, limit: maxList,
	}
	foreign := false
	id, err := c.ids.idOf(ctx, call, name, func() []named {
		foreign = foreign || slices.ContainsFunc(got.Images, func(n listedImage) bool { return n.Name == name && !n.hasNameIn(project) && !n.ofServer() })
		own := slices.DeleteFunc(slices.Clone(got.Images), func(n listedImage) bool { return !n.hasNameIn(project) })
		if usable := c.templates(own, name); name != c.defaultImage || slices.ContainsFunc(usable, func(n listedImage) bool { return n.Name == name }) {
			return newest(usable, name, project)
		}
		return names(c.templates(got.Images, name)) // the administrator chose the default image, and two of its name are refused
	})
	switch {
	case err != nil && err.Kind == cloud.Rejected && foreign:
		return "", refuse(op, cloud.Rejected, "image %s belongs to another project, which could give its name to another image: use its id", quote(name))
	case err != nil:
		return "", err
	}
	c.names.put(id, name)
	for _, n := range got.Images {
		if n.ID == id {
			c.needs.put(id, n.needs())
		}
	}
	return id, nil
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
	// OSType is "windows" in Windows images.
	OSType string `json:"os_type"`
	// Visibility is "public" in images that every project can boot.
	Visibility string `json:"visibility"`
	// Owner is the id of a project.
	Owner     string   `json:"owner"`
	CreatedAt stamp    `json:"created_at"`
	Tags      []string `json:"tags"`
}

// ofServer reports whether an image was made from a server, as a snapshot, a backup, or when the server was shelved. It
// may have the data and the name of another tenant's server, unless it is public.
func (n listedImage) ofServer() bool {
	return n.Mark != "" || n.Visibility != "public" && (n.ServerID != "" || n.Volumes != nil || n.Type == "snapshot" || n.Type == "backup")
}

// hasNameIn reports whether an image can be used by its name in a project: it belongs to the project, or is public, which
// only an administrator of the cloud can make it. Other projects choose the names of the images that they share.
func (n listedImage) hasNameIn(project string) bool {
	return n.Owner == project || n.Visibility == "public"
}

// templates returns the images from which servers may be made. An image of a server counts only if it has the wanted
// name or id, the Cloud names it as the default, no other image has that name, and this client did not make it.
func (c *imageClient) templates(images []listedImage, wanted string) []listedImage {
	usable := slices.DeleteFunc(slices.Clone(images), listedImage.ofServer)
	is := func(n listedImage) bool { return n.Name == wanted || n.ID == wanted }
	if wanted == c.defaultImage && !slices.ContainsFunc(usable, is) {
		for _, n := range images {
			if n.Mark == "" && is(n) {
				usable = append(usable, n)
			}
		}
	}
	return usable
}

// names returns the ids and names of images.
func names(images []listedImage) (all []named) {
	for _, n := range images {
		all = append(all, n.named)
	}
	return all
}

// newest returns images, and of those of the wanted name only one: the newest of the project, else the newest public one.
func newest(images []listedImage, wanted, project string) []named {
	var names []named
	var best *listedImage
	for i, n := range images {
		switch {
		case n.Name != wanted:
			names = append(names, n.named)
		case best == nil || n.compare(*best, project) < 0:
			best = &images[i]
		}
	}
	if best != nil {
		names = append(names, best.named)
	}
	return names
}

// compare returns a negative number if an image is used rather than another one: those of the project first, then the newest.
func (n listedImage) compare(other listedImage, project string) int {
	if own := n.Owner == project; own != (other.Owner == project) {
		if own {
			return -1
		}
		return 1
	}
	return cmp.Or(other.CreatedAt.Compare(n.CreatedAt.Time), strings.Compare(n.ID, other.ID))
}
