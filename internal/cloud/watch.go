package cloud

import (
	"context"
	"time"
)

// Watcher is an optional interface of a Client whose cloud can report changes of
// servers. It is used where the cloud has Events.
type Watcher interface {
	// Watch calls report with a full set of the servers, and from then on with what
	// changes, until ctx or the session with the cloud ends: then it returns an error.
	// Nothing that happens meanwhile is missed: a client that cannot continue where a
	// broken connection ended returns, and the next Watch begins with a full set. Calls
	// of report do not overlap. Watch ends with the error that report returns.
	//
	// Like any call, Watch fails with *Error and is bounded in memory, but not in time.
	// While it waits for changes it takes no share of the cloud's limits.
	Watch(ctx context.Context, report func(Change) error) error
}

// Change is what a Watcher reports.
type Change struct {
	// AsOf is a time, by the clock of this process, such that all that happened in the
	// cloud before is in this change or was reported earlier: mostly when the request was
	// sent that brought the change. Zero if the cloud does not allow such a statement; a
	// full set always has it. A change without servers reports AsOf alone.
	AsOf time.Time
	// Complete is set for a full set: what it lacks does not exist. More says that
	// the same set goes on with the next change. All its changes have the same AsOf.
	Complete, More bool
	// Servers are those that appeared or changed, each as it was read after that. Where
	// UpdatedAt is set, a server that was read later has no earlier one.
	Servers []Server
	// Gone are the ids of servers that do not exist any more.
	Gone []string
}
