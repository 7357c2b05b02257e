package openstack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// maxImages bounds the images whose names one listing looks up, in one call. The others
	// follow with the next listings.
	maxImages = 100
	// maxImageNames bounds the images whose names are kept.
	maxImageNames = 10_000
	// imageNameKept is how long the name of an image is used without asking again: images can
	// be renamed.
	imageNameKept = time.Hour
)

// imageRef is the image of a server. Its name is not among what the compute service shows.
type imageRef struct{ id, name string }

// UnmarshalJSON reads a reference to an image: an object, or an empty text for a server that
// boots from a volume. It must not make a page unreadable.
func (i *imageRef) UnmarshalJSON(data []byte) error {
	var ref struct {
		ID string `json:"id"`
	}
	*i = imageRef{}
	if json.Unmarshal(data, &ref) == nil && isID(ref.ID) {
		i.id = ref.ID
	}
	return nil
}

// imageNames keeps the names of images by id.
type imageNames struct {
	mu    sync.Mutex
	names map[string]imageName
}

// imageName is empty for an image that is deleted, or that the project cannot see.
type imageName struct {
	name string
	at   time.Time
}

func newImageNames() *imageNames { return &imageNames{names: map[string]imageName{}} }

// of returns the name of an image, however old; empty if it is not known.
func (n *imageNames) of(id string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names[id].name
}

// due reports whether the name of an image is to be looked up.
func (n *imageNames) due(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept, known := n.names[id]
	return id != "" && (!known || time.Since(kept.at) > imageNameKept)
}

func (n *imageNames) put(id, name string) {
	if utf8.RuneCountInString(name) > maxName {
		name = ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, known := n.names[id]; !known && len(n.names) >= maxImageNames {
		clear(n.names)
	}
	n.names[id] = imageName{name: name, at: time.Now()}
}

// nameImages looks the names of images up, in one call, and in a second one those that are
// not shown, because they are hidden or deleted. Whether it succeeds or not, none of them is
// asked for again soon, and one that was known keeps its name: the servers are listed all
// the same.
func (c *Client) nameImages(ctx context.Context, op string, ids []string) {
	for _, id := range ids {
		c.imageNames.put(id, c.imageNames.of(id))
	}
	for _, hidden := range []bool{false, true} {
		ids = c.nameSome(ctx, op, ids, hidden)
	}
}

// nameSome looks the names of images up, either of those that are hidden or of the others,
// and returns the ids that are not among them; none if the call fails.
func (c *Client) nameSome(ctx context.Context, op string, ids []string, hidden bool) (rest []string) {
	if len(ids) == 0 {
		return nil
	}
	query := url.Values{"id": {"in:" + strings.Join(ids, ",")}, "limit": {strconv.Itoa(len(ids))}}
	if hidden {
		query.Set(hiddenKey, "true")
	}
	var got struct {
		Images []named `json:"images"`
	}
	err := c.session.do(ctx, &call{
		about: aboutCloud, service: image, method: http.MethodGet, route: "image/images", path: "images", query: query, op: op, out: &got, limit: maxList,
	})
	if err != nil {
		return nil
	}
	names := map[string]string{}
	for _, i := range got.Images {
		names[i.ID] = i.Name
	}
	for _, id := range ids {
		if name, shown := names[id]; shown {
			c.imageNames.put(id, name)
		} else {
			rest = append(rest, id)
		}
	}
	return rest
}

// unnamed are the servers of a page that wait for the names of their images.
type unnamed struct {
	servers []*server
	ids     map[string]bool
}

// hold reports whether a server waits until the names of the images of the page are looked up.
func (u *unnamed) hold(c *Client, s *server) bool {
	if !u.ids[s.Image.id] && (len(u.ids) == maxImages || !c.imageNames.due(s.Image.id)) {
		return false
	}
	if u.ids == nil {
		u.ids = map[string]bool{}
	}
	u.ids[s.Image.id] = true
	u.servers = append(u.servers, s)
	return true
}
