package transport

import "time"

// Times that backends share.
const (
	// DefaultTimeout bounds one call with all its tries, if the configuration does not.
	DefaultTimeout = 30 * time.Second
	// CloseTimeout bounds the request that ends a session when a client is closed.
	CloseTimeout = 5 * time.Second
	// WorkTimeout bounds how long a call waits for the end of what it began in the cloud, such as
	// a snapshot. Then the caller comes back.
	WorkTimeout = 5 * time.Second
	// NameLifetime is how long the ids of flavors, images and networks, and the names of hosts
	// and folders, are used without asking again.
	NameLifetime = 5 * time.Minute

	// renewBefore is how long before its end a session is renewed.
	renewBefore = 30 * time.Second
)

// RenewalTime returns when to renew a session that ends at a time: 30 s before, or a tenth of its
// life where that is less. It is zero if no time is given. An end in the past comes from a wrong
// clock: the time is zero, too, and the session is renewed when the cloud refuses it.
func RenewalTime(end time.Time) time.Time {
	life := time.Until(end)
	if life <= 0 {
		return time.Time{}
	}
	return end.Add(-min(renewBefore, life/10))
}
