package openstack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxListed bounds the flavors that a message lists.
const maxListed = 20

// wish is what a flavor is chosen by: its name, else a size, else it is the default one.
type wish struct {
	name string
	size size
	// image is what the image of the server needs.
	image imageNeeds
	// current is the flavor of a server that is resized.
	current string
	// disk is that of a server that is resized, in GiB: hypervisors enlarge disks, and do not make them smaller.
	disk int
	// volume is whether the server boots from a volume, so that the disks of flavors do not matter.
	volume bool
}

// diskRank orders flavors by whether the cloud can make the disk: those without one are last, since nova refuses them for a
// server that boots from an image, unless a policy allows them.
func (w wish) diskRank(f flavor) int {
	switch {
	case w.volume:
		return 0
	case f.Disk == 0:
		return 2
	case f.Disk < w.disk:
		return 1
	}
	return 0
}

// choose returns the flavor for a wish. Of several, it is the smallest, and of these the
// first by name, so that each call chooses the same.
func (c *flavorClient) choose(all []flavor, w wish) (flavor, bool) {
	fitting := slices.DeleteFunc(slices.Clone(all), func(f flavor) bool { return !c.matches(f, w) || !w.image.fit(f) })
	if len(fitting) == 0 {
		return flavor{}, false
	}
	return slices.MinFunc(fitting, func(a, b flavor) int {
		// With one of the two asked for, that of the default flavor decides the other.
		byDefault := cmp.Compare(notDefault(a, c.defaultFlavor), notDefault(b, c.defaultFlavor))
		if c.atLeast {
			byDefault = 0
		}
		return cmp.Or(cmp.Compare(w.diskRank(a), w.diskRank(b)), byDefault, cmp.Compare(a.VCPUs, b.VCPUs), cmp.Compare(a.MemoryMiB, b.MemoryMiB),
			cmp.Compare(a.Disk, b.Disk), strings.Compare(a.Name, b.Name))
	}), true
}

// matches reports whether a flavor is what a wish is for, whatever the image needs. A flavor for certain hosts or devices is
// chosen by its name only, unless the server has it already.
func (c *flavorClient) matches(f flavor, w wish) bool {
	switch {
	case f.Disabled:
		return false
	case w.name != "":
		return f.Name == w.name
	case w.size == size{}:
		return c.defaultFlavor != "" && f.Name == c.defaultFlavor
	case c.byNameOnly(f) && f.Name != w.current:
		return false
	case c.atLeast:
		return f.VCPUs >= w.size.cpu && f.MemoryMiB >= w.size.mib
	}
	return w.size.or(f.size()) == f.size()
}

func notDefault(f flavor, name string) int {
	if f.Name == name {
		return 0
	}
	return 1
}

// noFlavor says why no flavor is chosen, and which there are.
func (c *flavorClient) noFlavor(op string, w wish) *cloud.Error {
	name := cmp.Or(w.name, c.defaultFlavor)
	tooSmall := slices.ContainsFunc(c.all, func(f flavor) bool { return c.matches(f, w) })
	there := c.there(tooSmall)
	switch {
	case tooSmall && (w.name != "" || w.size == size{}):
		return refuse(op, cloud.Rejected, "flavor %s is too small for %s; %s", quote(name), w.image, there)
	case tooSmall && c.atLeast:
		return refuse(op, cloud.Rejected, "no flavor with %s or more is large enough for %s; %s", w.size, w.image, there)
	case tooSmall:
		return refuse(op, cloud.Rejected, "no flavor with exactly %s is large enough for %s; %s", w.size, w.image, there)
	case w.name != "":
		return cloud.UnknownFlavor(op, transport.Truncate(w.name, 128), there)
	case w.size == size{} && c.defaultFlavor == "":
		return refuse(op, cloud.Rejected, "the VM has neither className, flavor, cpu nor memory, and spec.openstack.flavors.default of the Cloud is empty; %s", there)
	case w.size == size{}:
		return misconfigured("flavors.default", refuse(op, cloud.Rejected,
			"no flavor is named %s, which is spec.openstack.flavors.default of the Cloud; %s", quote(c.defaultFlavor), there))
	case c.atLeast:
		return refuse(op, cloud.Rejected, "no flavor has %s or more; %s", w.size, there)
	}
	return refuse(op, cloud.Rejected, "no flavor has exactly %s; %s", w.size, there)
}

// explainDisk adds to the refusal of a create that its flavor has no disk, if that is the reason: another flavor helps, or a root
// disk where the cloud has volumes, and not another right.
func (w wish) explainDisk(chosen flavor, volumes bool, err *cloud.Error) {
	if chosen.Disk > 0 || err.Kind != cloud.Forbidden || !strings.Contains(err.Detail, "zero disk") {
		return
	}
	others := ""
	if w.name == "" && w.size != (size{}) {
		others = ", and no flavor with a disk fits"
		if w.image.any() {
			others += " and is large enough for " + w.image.String()
		}
	}
	if volumes {
		others += ": give the VM a rootDisk"
	}
	err.Kind, err.Detail = cloud.Rejected, fmt.Sprintf("%s (flavor %s has no disk%s)", err.Detail, quote(chosen.Name), others)
}

// none says that there are no flavors.
func (c *flavorClient) none() string {
	if len(c.allowed) > 0 {
		return "the project has none that spec.openstack.flavors.allowed of the Cloud allows"
	}
	return "the project has no flavors"
}

// there says which flavors there are, with their disks if these may matter.
func (c *flavorClient) there(disks bool) string {
	var names []string
	for _, f := range c.all {
		if f.Disabled || !c.allows(f) {
			continue
		}
		disk := ""
		switch {
		case !disks:
		case f.Disk == 0:
			disk = ", no disk"
		default:
			disk = fmt.Sprintf(", disk of %d GiB", f.Disk)
		}
		kind := ""
		if c.byNameOnly(f) {
			kind = ", by name only"
		}
		names = append(names, fmt.Sprintf("%s (%d CPUs, %d MiB%s%s)", transport.Printable(f.Name), f.VCPUs, f.MemoryMiB, disk, kind))
	}
	slices.Sort(names)
	if len(names) > maxListed {
		names = append(names[:maxListed], "…")
	}
	if len(names) == 0 {
		return c.none()
	}
	return transport.Truncate("there are: "+strings.Join(names, ", "), 2*maxReason)
}
