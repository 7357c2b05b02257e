package fake

import "github.com/privatecloud/operator/internal/cloud"

// size is that of a flavor.
type size struct{ cpu, mib int }

// flavors are those of a cloud with the capability Flavors.
var flavors = map[string]size{"small": {1, 1 << 10}, "large": {4, 8 << 10}}

// checkFlavor refuses a name that no flavor has; empty is none.
func checkFlavor(op, name string) error {
	if _, known := flavors[name]; !known && name != "" {
		return cloud.UnknownFlavor(op, name, "there are: large, small")
	}
	return nil
}

// withFlavor returns the server with a flavor and its size.
func withFlavor(s cloud.Server, name string) cloud.Server {
	s.Flavor, s.CPU, s.MemoryMiB = name, flavors[name].cpu, flavors[name].mib
	return s
}
