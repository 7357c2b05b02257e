package fake

import (
	"context"
	"reflect"

	"github.com/privatecloud/operator/internal/cloud"
)

// watchClient reports changes of servers.
type watchClient struct {
	calls    *calls
	settings *settings
	servers  *serverClient
	// ended is closed to end the calls of Watch, of which running are under way.
	ended   chan struct{}
	running int
	// undated means that changes have no AsOf.
	undated bool
	// closed is closed when the cloud is.
	closed chan struct{}
}

// Watch reports the servers, and from then on what changes of them, until ctx ends,
// EndWatches is called or the cloud is closed. Servers that Hide hides are reported.
func (c *watchClient) Watch(ctx context.Context, report func(cloud.Change) error) error {
	const op = "watch servers"
	ended, err := do(ctx, c.calls, call{verb: Watch, op: op, needs: []cloud.Capability{cloud.Events}}, func() (chan struct{}, error) {
		return c.ended, nil
	})
	if err != nil {
		return err
	}
	c.watching(1)
	defer c.watching(-1)
	known := map[string]cloud.Server{}
	for complete := true; ; complete = false {
		change, changed := c.changeSince(known)
		change.Complete = complete
		if complete || len(change.Servers)+len(change.Gone) > 0 {
			if err := report(change); err != nil {
				return watchError(op, err)
			}
		}
		select {
		case <-changed:
		case <-ended:
			return failure(op, cloud.Unavailable, "the session ended")
		case <-c.closed:
			return failure(op, cloud.Unavailable, "the client is closed")
		case <-ctx.Done():
			return &cloud.Error{Kind: cloud.Unavailable, Op: op, Detail: "canceled", Err: ctx.Err()}
		}
	}
}

// changeSince returns what differs from known, which it brings up to date, and a
// channel that is closed when a server changes after that.
func (c *watchClient) changeSince(known map[string]cloud.Server) (cloud.Change, <-chan struct{}) {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	change := cloud.Change{}
	if len(known) == 0 || !c.undated {
		change.AsOf = c.settings.clock()
	}
	for _, s := range c.servers.store.all() {
		s = c.servers.reported(s)
		if before, ok := known[s.ID]; !ok || !reflect.DeepEqual(before, s) {
			change.Servers = append(change.Servers, s)
			known[s.ID] = s.Clone()
		}
	}
	for id := range known {
		if !c.servers.store.has(id) {
			change.Gone = append(change.Gone, id)
			delete(known, id)
		}
	}
	return change, c.servers.store.changed
}

// watchError returns the error of a caller's report as the contract of cloud.Client demands.
func watchError(op string, err error) error {
	if cloud.KindOf(err) != "" {
		return err
	}
	return &cloud.Error{Kind: cloud.Unavailable, Op: op, Err: err}
}

func (c *watchClient) watching(more int) {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	c.running += more
}
