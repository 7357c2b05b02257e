package openstack

import (
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// allows reports whether a flavor is chosen for a size: it is the default one, or its name matches what is allowed.
func (c *flavorClient) allows(f flavor) bool {
	return len(c.allowed) == 0 || f.Name == c.defaultFlavor || cloud.MatchesFlavor(c.allowed, f.Name)
}

// byNameOnly reports whether a flavor is not chosen for a size: it is not allowed, or it is for certain hosts or devices and the
// administrator does not name it among those that are allowed.
func (c *flavorClient) byNameOnly(f flavor) bool {
	return !c.allows(f) || f.isSpecial() && f.Name != c.defaultFlavor && len(c.allowed) == 0
}

// special are the namespaces of extra specs by which nova selects hosts, or gives a server devices. Those of resources and
// traits may have a suffix, such as resources1.
var special = []string{"accel", "aggregate_instance_extra_specs", "capabilities", "hw", "os", "pci_passthrough", "resources", "trait"}

// ofTheGuest are extra specs of the namespace hw that any host can provide: what the guest sees of its CPUs and devices.
var ofTheGuest = []string{
	"hw:boot_menu", "hw:cpu_cores", "hw:cpu_max_cores", "hw:cpu_max_sockets", "hw:cpu_max_threads", "hw:cpu_sockets", "hw:cpu_threads",
	"hw:serial_port_count", "hw:vif_multiqueue_enabled", "hw:watchdog_action",
}

// isSpecial reports whether a flavor has extra specs that need certain hosts or devices. Extra specs of other namespaces are
// limits (quota), or texts that nova does not read. Those without a namespace are compared with the properties of hosts.
func (f flavor) isSpecial() bool {
	for key, value := range f.ExtraSpecs {
		namespace, _, scoped := strings.Cut(key, ":")
		for _, suffixed := range []string{"resources", "trait"} {
			if strings.HasPrefix(namespace, suffixed) {
				namespace = suffixed
			}
		}
		switch {
		case scoped && !slices.Contains(special, namespace):
		case slices.Contains(ofTheGuest, key), key == "hw:cpu_policy" && value == "shared":
		default:
			return true
		}
	}
	return false
}
