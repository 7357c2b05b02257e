package openstack

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxLookups bounds the names whose ids are kept.
const maxLookups = 1000

// looksLikeID matches ids of images and networks.
var looksLikeID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// lookup keeps the ids of images or networks by name.
type lookup struct {
	mu  sync.Mutex
	ids map[string]found
}

type found struct {
	id string
	at time.Time
}

func newLookup() *lookup { return &lookup{ids: map[string]found{}} }

func (l *lookup) get(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.ids[name]; time.Since(f.at) < lookupKept {
		return f.id
	}
	return ""
}

func (l *lookup) put(name, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ids) >= maxLookups {
		clear(l.ids)
	}
	l.ids[name] = found{id: id, at: time.Now()}
}

func (l *lookup) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.ids)
}

// forgetLookups has ids looked up again.
func (c *Client) forgetLookups() {
	c.images.forget()
	c.networks.forget()
}

// imageFor returns the id of the image of a template, the default one if it is empty. No
// image that was made from a server is a template: the server may be another tenant's.
func (c *Client) imageFor(ctx context.Context, op, template string) (string, *cloud.Error) {
	name := template
	if name == "" {
		name = c.cfg.Image
	}
	if name == "" {
		return "", refuse(op, cloud.Rejected, "the VM has no template, and spec.openstack.images.default of the Cloud is empty")
	}
	var got struct {
		Images []named `json:"images"`
	}
	call := &call{
		about: aboutCloud, service: image, method: http.MethodGet, route: "image/images", path: "images",
		query: url.Values{"name": {name}, "status": {"active"}}, op: op, out: &got, limit: maxList,
	}
	byID := looksLikeID.MatchString(name)
	if byID && c.images.get(name) == "" {
		if err := c.checkTemplate(ctx, op, name); err != nil {
			return "", err
		}
		c.images.put(name, name)
	}
	id, err := c.idOf(ctx, c.images, call, name, "image", func() []named {
		return c.templates(got.Images, name)
	})
	if err == nil && !byID {
		c.imageNames.put(id, name)
	}
	return id, err
}

// checkTemplate refuses the id of an image that is no template. The create says whether an image exists.
func (c *Client) checkTemplate(ctx context.Context, op, id string) *cloud.Error {
	var got named
	err := c.session.do(ctx, &call{
		about: aboutImage, service: image, method: http.MethodGet, route: "image/images/{id}", path: "images/" + id, op: op, out: &got,
	})
	switch {
	case err != nil && err.Kind == cloud.NotFound:
		return nil
	case err != nil:
		err.Detail = "looking for image " + quote(id) + ": " + err.Detail
		return err
	case len(c.templates([]named{got}, id)) == 0:
		return refuse(op, cloud.Rejected, "image %s was made from a server and cannot be used as a template: see the documentation of clouds of type OpenStack for how an administrator can change that", quote(id))
	}
	return nil
}

// attachment returns the networks of a new server with these interfaces, in the form of a
// create; without any, those of the default.
func (c *Client) attachment(ctx context.Context, op string, interfaces []cloud.Attachment) (any, *cloud.Error) {
	if len(interfaces) == 0 {
		switch c.cfg.Network {
		case noNetwork, autoNetwork:
			return c.cfg.Network, nil
		}
		id, err := c.defaultNetwork(ctx, op)
		if err != nil {
			return nil, err
		}
		interfaces = []cloud.Attachment{{NetworkID: id}}
	}
	attached := make([]servers.Network, 0, len(interfaces))
	for _, a := range interfaces {
		if !isID(a.NetworkID) {
			return nil, refuse(op, cloud.Rejected, "the id of the network is no id of this cloud")
		}
		one := servers.Network{UUID: a.NetworkID}
		switch len(a.Addresses) {
		case 0:
		case 1:
			one.FixedIP = a.Addresses[0]
		default:
			return nil, refuse(op, cloud.Unsupported, "this cloud gives an interface of a new server one address")
		}
		attached = append(attached, one)
	}
	return attached, nil
}

// defaultNetwork returns the id of the network that the Cloud names for servers without one.
func (c *Client) defaultNetwork(ctx context.Context, op string) (string, *cloud.Error) {
	var got struct {
		Networks []named `json:"networks"`
	}
	call := &call{
		about: aboutCloud, service: network, method: http.MethodGet, route: "network/networks", path: "networks",
		query: url.Values{"name": {c.cfg.Network}}, op: op, out: &got, limit: maxList,
	}
	return c.idOf(ctx, c.networks, call, c.cfg.Network, "network", func() []named { return got.Networks })
}

// named is an image or network of a listing.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Mark, Type and ServerID are those of snapshotImage.
	Mark     string `json:"privatecloud:snapshot"`
	Type     string `json:"image_type"`
	ServerID string `json:"instance_uuid"`
	// Volumes is set in images of servers that boot from a volume: nova boots a copy of the volume.
	Volumes any `json:"block_device_mapping"`
	// Visibility is "public" in images that every project can boot.
	Visibility string `json:"visibility"`
}

// ofServer reports whether an image was made from a server, as a snapshot, a backup, or when the server was shelved. It
// may have the data and the name of another tenant's server, unless it is public.
func (n named) ofServer() bool {
	return n.Mark != "" || n.Visibility != "public" && (n.ServerID != "" || n.Volumes != nil || n.Type == "snapshot" || n.Type == "backup")
}

// templates returns the images from which servers may be made. An image of a server counts only if it has the wanted
// name or id, the Cloud names it as the default, no other image has that name, and this client did not make it.
func (c *Client) templates(images []named, wanted string) []named {
	usable := slices.DeleteFunc(slices.Clone(images), named.ofServer)
	is := func(n named) bool { return n.Name == wanted || n.ID == wanted }
	if wanted == c.cfg.Image && !slices.ContainsFunc(usable, is) {
		for _, n := range images {
			if n.Mark == "" && is(n) {
				usable = append(usable, n)
			}
		}
	}
	return usable
}

// idOf returns the id of what a call lists by name. An id is used as it is: the create
// says whether it exists.
func (c *Client) idOf(ctx context.Context, kept *lookup, call *call, name, noun string, listed func() []named) (string, *cloud.Error) {
	if looksLikeID.MatchString(name) {
		return name, nil
	}
	if id := kept.get(name); id != "" {
		return id, nil
	}
	if err := c.session.do(ctx, call); err != nil {
		err.Detail = "looking for " + noun + " " + quote(name) + ": " + err.Detail
		return "", err
	}
	matches := slices.DeleteFunc(listed(), func(n named) bool { return n.Name != name })
	switch {
	case len(matches) == 0:
		return "", refuse(call.op, cloud.Rejected, "no %s that can be used is named %s; %s", noun, quote(name), c.others(ctx, call, listed))
	case len(matches) > 1:
		return "", refuse(call.op, cloud.Rejected, "%d %ss are named %s: give the id of one, or rename the others", len(matches), noun, quote(name))
	case !isID(matches[0].ID):
		return "", unreadable(call, "the "+noun+" has no id")
	}
	kept.put(name, matches[0].ID)
	return matches[0].ID, nil
}

// others says what a call lists under other names.
func (c *Client) others(ctx context.Context, call *call, listed func() []named) string {
	all := *call
	all.query = maps.Clone(call.query)
	all.query.Del("name")
	all.query.Set("limit", strconv.Itoa(pageSize))
	if err := c.session.do(ctx, &all); err != nil {
		return "what there is cannot be listed"
	}
	var names []string
	for _, n := range listed() {
		names = append(names, transport.Printable(n.Name))
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "there are none"
	}
	return transport.Truncate("there are: "+strings.Join(names, ", "), 2*maxReason)
}
