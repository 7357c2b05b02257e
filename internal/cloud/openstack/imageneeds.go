package openstack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// imageNeeds is what an image needs of a server. Nova refuses a server whose flavor has less.
type imageNeeds struct {
	// image is the name or id of the image, for messages.
	image string
	// disk is in GiB.
	disk, mib int
	// windows reports whether the guest runs Windows, according to the image.
	windows bool
}

// needs returns what an image needs: a disk that has room for its data, too.
func (n listedImage) needs() imageNeeds {
	return imageNeeds{disk: max(n.MinDisk, int((n.Size+1<<30-1)>>30)), mib: n.MinRAM, windows: n.OSType == "windows"}
}

func (n imageNeeds) any() bool { return n.disk > 0 || n.mib > 0 }

// fit reports whether a flavor has what the image needs. Nova does not compare the disk of a flavor that has none.
func (n imageNeeds) fit(f flavor) bool {
	return f.MemoryMiB >= n.mib && (f.Disk == 0 || f.Disk >= n.disk)
}

func (n imageNeeds) String() string {
	var parts []string
	if n.disk > 0 {
		parts = append(parts, fmt.Sprintf("a disk of %d GiB", n.disk))
	}
	if n.mib > 0 {
		parts = append(parts, fmt.Sprintf("%d MiB of memory", n.mib))
	}
	return "image " + quote(n.image) + ", which needs " + strings.Join(parts, " and ")
}

// needsKept keeps what images need, by their ids.
type needsKept struct {
	mu   sync.Mutex
	kept map[string]keptNeeds
}

type keptNeeds struct {
	needs imageNeeds
	at    time.Time
}

func (k *needsKept) put(id string, needs imageNeeds) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil || len(k.kept) >= maxLookups {
		k.kept = map[string]keptNeeds{}
	}
	k.kept[id] = keptNeeds{needs: needs, at: time.Now()}
}

func (k *needsKept) get(id string) (imageNeeds, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, known := k.kept[id]
	return kept.needs, known && time.Since(kept.at) < transport.NameLifetime
}

// needsOf returns what an image needs, which messages name by name. If it cannot be read, nova still checks the flavor.
func (c *imageClient) needsOf(ctx context.Context, op, id, name string) (imageNeeds, *cloud.Error) {
	needs, known := c.needs.get(id)
	if !known {
		got, err := c.show(ctx, op, id)
		if err != nil {
			return imageNeeds{}, err
		}
		needs = got.needs()
		c.needs.put(id, needs)
	}
	needs.image = name
	return needs, nil
}

// show returns the image of an id.
func (c *imageClient) show(ctx context.Context, op, id string) (listedImage, *cloud.Error) {
	var got listedImage
	err := c.session.do(ctx, &call{
		about: aboutImage, service: image, method: http.MethodGet, route: "image/images/{id}", path: "images/" + id, op: op, out: &got,
	})
	return got, err
}
