package cloud

import "context"

// Host is a machine that servers run on.
type Host struct {
	// Name is what Server.Host says.
	Name string
	// GPU is whether it has one.
	GPU bool
	// AvailableHours is for how many hours from now it is available, 0 where the
	// cloud does not say.
	AvailableHours int
}

// HostReader reads hosts.
type HostReader interface {
	// ListHosts returns every host once, each with a name. Needs the capability
	// Hosts.
	ListHosts(ctx context.Context) ([]Host, error)
}
