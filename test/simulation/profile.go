package simulation

import (
	"cmp"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// profile is a kind of cloud.
type profile struct {
	name         string
	capabilities cloud.Capabilities
	// slow: builds and deletions take time. Operating: changes are operations.
	slow, operating bool
	// undated: changes are reported as of no time.
	undated bool
	// shared: others use the cloud, too, and users want servers that are not theirs. Normalizing: names
	// become lower case.
	shared, normalizing bool
	// recycling: the cloud gives ids again at once, the lowest first.
	recycling bool
	// unled: two managers act at the same time, without leader election, and neither stalls.
	unled bool
	// lag is how long a listing misses a new server, and a GET may answer 404.
	lag time.Duration
	// poll is the poll interval, pollInterval if zero.
	poll time.Duration
}

const (
	pollInterval = 10 * time.Second
	// settleTime is longer than a create is on its way, at most half of it, and listings lag behind.
	settleTime = 30 * time.Second
	lag        = settleTime/2 - 2*time.Second
)

// pollEvery returns the poll interval.
func (p profile) pollEvery() time.Duration { return cmp.Or(p.poll, pollInterval) }

// exactlyOnce reports whether the cloud never has two servers of one VM.
func (p profile) exactlyOnce() bool {
	_, exactly := p.capabilities.CreateGuarantee("VM", false)
	return exactly
}

// networksOnce reports whether the cloud never has two networks of one Network, whose names are
// unique.
func (p profile) networksOnce() bool {
	_, exactly := p.capabilities.CreateGuarantee("Network", true)
	return exactly
}

// oneServer reports whether a VM never has two servers here. Where a cloud cannot guarantee that, it has two
// only if a manager stalls, or if a create takes longer than the settle time allows.
func (p profile) oneServer() bool { return p.exactlyOnce() || p.unled }

// tardy reports whether creates may take longer than the settle time allows: they do on clouds that do not
// promise one server, where the operator deletes the others by their labels.
func (p profile) tardy() bool { return !p.oneServer() && p.capabilities.Has(cloud.Labels) }

// profiles are the clouds that are simulated.
var profiles = []profile{
	{name: "all", capabilities: cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.BulkStatus, cloud.Power, cloud.Resize, cloud.Folders, cloud.Networks, cloud.Sizing)},
	{name: "keys", capabilities: cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.Power, cloud.Resize, cloud.Sizing), slow: true, lag: lag, recycling: true},
	{name: "names", capabilities: cloud.NewCapabilities(cloud.Networks, cloud.UniqueNames, cloud.Labels, cloud.Power, cloud.Resize, cloud.Sizing), lag: lag, recycling: true},
	{name: "labels", capabilities: cloud.NewCapabilities(cloud.Networks, cloud.Labels, cloud.Power, cloud.Resize, cloud.Sizing), lag: lag, recycling: true},
	{name: "two managers", capabilities: cloud.NewCapabilities(cloud.Labels, cloud.Power, cloud.Resize, cloud.Sizing), unled: true, lag: lag},
	{name: "core", capabilities: cloud.NewCapabilities(cloud.Power, cloud.Resize, cloud.Sizing), recycling: true},
	{name: "exclusive names", capabilities: cloud.NewCapabilities(cloud.UniqueNames, cloud.ExclusiveNames, cloud.Power, cloud.Resize, cloud.Sizing), recycling: true},
	{name: "operations", capabilities: cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.Operations, cloud.Power, cloud.Resize, cloud.Sizing), operating: true, recycling: true},
	{name: "events", capabilities: cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.Events, cloud.Power, cloud.Resize, cloud.Sizing), slow: true, lag: lag, poll: time.Minute},
	{name: "undated events", capabilities: cloud.NewCapabilities(cloud.UniqueNames, cloud.Labels, cloud.Events, cloud.Power, cloud.Resize, cloud.Sizing), undated: true, poll: time.Minute},
	{name: "snapshots", capabilities: cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.Snapshots, cloud.Revert, cloud.Power, cloud.Resize, cloud.Sizing), lag: lag},
	{name: "snapshots without keys", capabilities: cloud.NewCapabilities(cloud.UniqueNames, cloud.Labels, cloud.Snapshots, cloud.Revert, cloud.Power, cloud.Resize, cloud.Sizing)},
	{name: "shared", capabilities: cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.Power, cloud.Resize, cloud.Sizing), shared: true, lag: lag, recycling: true},
	{name: "shared core", capabilities: cloud.NewCapabilities(cloud.Power, cloud.Resize, cloud.Sizing), shared: true, recycling: true},
	{name: "shared exclusive names", capabilities: cloud.NewCapabilities(cloud.UniqueNames, cloud.ExclusiveNames, cloud.Power, cloud.Resize, cloud.Sizing), shared: true, normalizing: true},
}
