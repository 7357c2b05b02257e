package openstack

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// lookupAgain is how old the list of flavors must be before it is read again because
	// no flavor fits.
	lookupAgain = 10 * time.Second
	// maxListed bounds the flavors that a message lists.
	maxListed = 20
)

// flavor is a size that servers can have.
type flavor struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	VCPUs     int    `json:"vcpus"`
	MemoryMiB int    `json:"ram"`
	Disk      int    `json:"disk"`
	Disabled  bool   `json:"OS-FLV-DISABLED:disabled"`
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
	// atLeast is Config.AtLeast.
	atLeast bool

	// turn is held by the one call that lists; the others wait for it.
	turn chan struct{}
	// What follows is guarded by turn.
	all    []flavor
	listed time.Time
}

func newFlavorClient(s *session, cfg Config) *flavorClient {
	return &flavorClient{session: s, defaultFlavor: cfg.Flavor, atLeast: cfg.AtLeast, turn: make(chan struct{}, 1)}
}

// flavorForNew is flavorFor for a new server.
func (c *flavorClient) flavorForNew(ctx context.Context, op, name string, asked size) (flavor, *cloud.Error) {
	chosen, err := c.flavorFor(ctx, op, name, asked)
	if name == "" && asked == (size{}) && c.defaultFlavor != "" {
		err = misconfigured("flavors.default", err)
	}
	return chosen, err
}

// flavorFor returns the flavor of this name or, without one, the flavor for a size, the
// default one if no size is given.
func (c *flavorClient) flavorFor(ctx context.Context, op, name string, asked size) (flavor, *cloud.Error) {
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
		chosen, found := c.choose(c.all, asked)
		if name != "" {
			chosen, found = flavorNamed(c.all, name)
		}
		switch {
		case found:
			return chosen, nil
		case fresh:
			return flavor{}, c.noFlavor(op, name, asked)
		}
	}
}

// flavorNamed returns the flavor of a name.
func flavorNamed(all []flavor, name string) (flavor, bool) {
	i := slices.IndexFunc(all, func(f flavor) bool { return f.Name == name && !f.Disabled })
	if i < 0 {
		return flavor{}, false
	}
	return all[i], true
}

// choose returns the flavor for a size. Of several, it is the smallest, and of these the
// first by name, so that each call chooses the same.
func (c *flavorClient) choose(all []flavor, asked size) (flavor, bool) {
	fitting := slices.Clone(all)
	fitting = slices.DeleteFunc(fitting, func(f flavor) bool {
		switch {
		case f.Disabled:
			return true
		case asked == size{}:
			return c.defaultFlavor == "" || f.Name != c.defaultFlavor
		case c.atLeast:
			return f.VCPUs < asked.cpu || f.MemoryMiB < asked.mib
		}
		return asked.or(f.size()) != f.size()
	})
	if len(fitting) == 0 {
		return flavor{}, false
	}
	return slices.MinFunc(fitting, func(a, b flavor) int {
		// With one of the two asked for, that of the default flavor decides the other.
		byDefault := cmp.Compare(notDefault(a, c.defaultFlavor), notDefault(b, c.defaultFlavor))
		if !c.atLeast && byDefault != 0 {
			return byDefault
		}
		return cmp.Or(cmp.Compare(a.VCPUs, b.VCPUs), cmp.Compare(a.MemoryMiB, b.MemoryMiB), cmp.Compare(a.Disk, b.Disk), strings.Compare(a.Name, b.Name))
	}), true
}

func notDefault(f flavor, name string) int {
	if f.Name == name {
		return 0
	}
	return 1
}

// noFlavor says which flavors there are.
func (c *flavorClient) noFlavor(op, name string, asked size) *cloud.Error {
	var names []string
	for _, f := range c.all {
		if !f.Disabled {
			names = append(names, fmt.Sprintf("%s (%d CPUs, %d MiB)", transport.Printable(f.Name), f.VCPUs, f.MemoryMiB))
		}
	}
	slices.Sort(names)
	if len(names) > maxListed {
		names = append(names[:maxListed], "…")
	}
	there := "there are: " + strings.Join(names, ", ")
	if len(names) == 0 {
		there = "the project has no flavors"
	}
	there = transport.Truncate(there, 2*maxReason)
	switch {
	case name != "":
		return cloud.UnknownFlavor(op, transport.Truncate(name, 128), there)
	case asked == size{} && c.defaultFlavor == "":
		return refuse(op, cloud.Rejected, "the VM has neither cpu nor memory, and spec.openstack.flavors.default of the Cloud is empty; %s", there)
	case asked == size{}:
		return refuse(op, cloud.Rejected, "no flavor is named %s, which is spec.openstack.flavors.default of the Cloud; %s", quote(c.defaultFlavor), there)
	case c.atLeast:
		return refuse(op, cloud.Rejected, "no flavor has %s or more; %s", asked, there)
	}
	return refuse(op, cloud.Rejected, "no flavor has exactly %s; %s", asked, there)
}

func (c *flavorClient) listFlavors(ctx context.Context, op string) ([]flavor, *cloud.Error) {
	call := &call{about: aboutCloud, service: compute, method: http.MethodGet, route: "compute/flavors/detail", path: "flavors/detail", op: op}
	all, err := listPages(ctx, c.session, call, url.Values{}, "flavors", func(f flavor) string { return f.ID })
	if err != nil {
		err.Detail = "listing the flavors: " + err.Detail
	}
	return all, err
}
