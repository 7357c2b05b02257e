package openstack

import (
	"context"
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

// imageNames looks the names of images up by id, and keeps them.
type imageNames struct {
	session *session

	mu    sync.Mutex
	names map[string]imageName
}

// imageName is empty for an image that is deleted, or that the project cannot see.
type imageName struct {
	name string
	at   time.Time
}

func newImageNames(s *session) *imageNames {
	return &imageNames{session: s, names: map[string]imageName{}}
}

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

// lookUp looks the names of images up, in one call, and in a second one those that are
// not shown, because they are hidden or deleted. Whether it succeeds or not, none of them is
// asked for again soon, and one that was known keeps its name: the servers are listed all
// the same.
func (n *imageNames) lookUp(ctx context.Context, op string, ids []string) {
	for _, id := range ids {
		n.put(id, n.of(id))
	}
	for _, hidden := range []bool{false, true} {
		ids = n.lookUpSome(ctx, op, ids, hidden)
	}
}

// lookUpSome looks the names of images up, either of those that are hidden or of the others,
// and returns the ids that are not among them; none if the call fails.
func (n *imageNames) lookUpSome(ctx context.Context, op string, ids []string, hidden bool) (rest []string) {
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
	err := n.session.do(ctx, &call{
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
			n.put(id, name)
		} else {
			rest = append(rest, id)
		}
	}
	return rest
}
