package fake

import (
	"context"
	"reflect"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.Watcher = (*Cloud)(nil)

// Watch reports the servers, and from then on what changes of them, until ctx ends,
// EndWatches is called or the cloud is closed. Servers that Hide hides are reported.
func (c *Cloud) Watch(ctx context.Context, report func(cloud.Change) error) error {
	const op = "watch servers"
	ended, err := do(ctx, c, call{verb: Watch, op: op, needs: []cloud.Capability{cloud.Events}}, func() (chan struct{}, error) {
		return c.watches, nil
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
func (c *Cloud) changeSince(known map[string]cloud.Server) (cloud.Change, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change := cloud.Change{}
	if len(known) == 0 || !c.undated {
		change.AsOf = c.clock()
	}
	for _, s := range c.servers.all() {
		s = c.reported(s)
		if before, ok := known[s.ID]; !ok || !reflect.DeepEqual(before, s) {
			change.Servers = append(change.Servers, s)
			known[s.ID] = s.Clone()
		}
	}
	for id := range known {
		if !c.servers.has(id) {
			change.Gone = append(change.Gone, id)
			delete(known, id)
		}
	}
	return change, c.servers.changed
}

// watchError returns the error of a caller's report as the contract of cloud.Client demands.
func watchError(op string, err error) error {
	if cloud.KindOf(err) != "" {
		return err
	}
	return &cloud.Error{Kind: cloud.Unavailable, Op: op, Err: err}
}

func (c *Cloud) watching(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers += more
}

// Watchers returns how many calls of Watch are under way.
func (c *Cloud) Watchers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watchers
}

// SetUndated sets whether the cloud reports changes as of no time, as with events of its
// own clock. Full sets have a time.
func (c *Cloud) SetUndated(undated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undated = undated
}

// EndWatches ends the calls of Watch under way, as the end of a session does.
func (c *Cloud) EndWatches() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.watches)
	c.watches = make(chan struct{})
}
