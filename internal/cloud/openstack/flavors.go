package openstack

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// lookupAgain is how old the list of flavors must be before it is read again because no
// flavor fits.
const lookupAgain = 10 * time.Second

// flavor is a size that servers can have.
type flavor struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	VCPUs     int    `json:"vcpus"`
	MemoryMiB int    `json:"ram"`
	// Disk is in GiB. With 0, only servers that boot from a volume are allowed, unless a policy of the cloud says otherwise.
	Disk     int  `json:"disk"`
	Disabled bool `json:"OS-FLV-DISABLED:disabled"`
	// ExtraSpecs is empty before microversion 2.61, and where a policy of the cloud hides them.
	ExtraSpecs map[string]any `json:"extra_specs"`
}

func (f flavor) size() size { return size{cpu: f.VCPUs, mib: f.MemoryMiB} }

// record keeps a size that is not exactly that of the flavor; empty if it is.
func (f flavor) record(asked size) string {
	if asked.or(f.size()) == f.size() {
		return ""
	}
	return asked.or(f.size()).record(f.Name)
}

// flavorClient chooses flavors of the project, as they were listed last.
type flavorClient struct {
	session *session
	// defaultFlavor is the name of the flavor of servers without a size; may be empty.
	defaultFlavor string
	// allowed is Config.Flavors.
	allowed []string
	// atLeast is Config.AtLeast.
	atLeast bool

	// turn is held by the one call that lists; the others wait for it.
	turn chan struct{}
	// What follows is guarded by turn.
	all    []flavor
	listed time.Time
}

func newFlavorClient(s *session, cfg Config) *flavorClient {
	return &flavorClient{session: s, defaultFlavor: cfg.Flavor, allowed: cfg.Flavors, atLeast: cfg.AtLeast, turn: make(chan struct{}, 1)}
}

// flavorFor returns the flavor that a wish is for.
func (c *flavorClient) flavorFor(ctx context.Context, op string, w wish) (flavor, *cloud.Error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return flavor{}, c.session.ended(ctx, op)
	}
	defer func() { <-c.turn }()
	for fresh := false; ; fresh = true {
		age := time.Since(c.listed)
		if age > transport.NameLifetime || (fresh && age > lookupAgain) {
			all, err := c.listFlavors(ctx, op)
			if err != nil {
				return flavor{}, err
			}
			c.all, c.listed = all, time.Now()
		}
		chosen, found := c.choose(c.all, w)
		switch {
		case found:
			return chosen, nil
		case fresh:
			return flavor{}, c.noFlavor(op, w)
		}
	}
}

// listFlavors returns the flavors of the project.
func (c *flavorClient) listFlavors(ctx context.Context, op string) ([]flavor, *cloud.Error) {
	call := &call{about: aboutCloud, service: compute, method: http.MethodGet, route: "compute/flavors/detail", path: "flavors/detail", op: op}
	all, err := listPages(ctx, c.session, call, url.Values{}, "flavors", func(f flavor) string { return f.ID })
	if err != nil {
		err.Detail = "listing the flavors: " + err.Detail
	}
	return all, err
}
