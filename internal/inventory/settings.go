package inventory

import "time"

// Settings are the fields of a Cloud that concern its inventory.
type Settings struct {
	// PollInterval is the time between two listings.
	PollInterval time.Duration
	// SettleTime is how long after a create its server may still appear: after a
	// create of unknown outcome, and in a listing.
	SettleTime time.Duration
	// UtilizationStep is the smallest change of the CPU utilization to report, in percent points.
	UtilizationStep int
	// RequestsPerSecond is the rate of requests that the Cloud allows; 0 for no limit.
	RequestsPerSecond int
}

// ShownFrom returns from when on a listing has to show what was created at a time of a status,
// which has whole seconds.
func (s Settings) ShownFrom(created time.Time) time.Time {
	return created.Add(time.Second + s.SettleTime)
}

// notConnected is why a cloud without a client is not available.
const notConnected = "the Cloud does not exist or has not been connected yet"
