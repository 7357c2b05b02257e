package openstack

import (
	"context"
	"maps"
	"net/url"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// pace is how often a watch asks for changes.
type pace struct {
	// rest is the time between two questions while nothing changes. It is brisk until
	// lasting has passed since a change, or since this client changed something.
	rest, brisk, lasting time.Duration
}

var defaultPace = pace{rest: 5 * time.Second, brisk: time.Second, lasting: 30 * time.Second}

const (
	// overlap is how much earlier than the last answer the next one begins. It is longer
	// than the clocks of the compute service differ and than a change takes to be visible.
	overlap = 10 * time.Second
	// maxWatchPages bounds the pages of a full set and of the changes of one answer.
	maxWatchPages = 1000

	opWatch = "watch servers"
)

var _ cloud.Watcher = (*Client)(nil)

// Watch reports the servers, and from then on asks the compute service what changed: it
// has no stream of events for members of a project. Its answers leave out servers of a
// cell that does not answer, and do not say so. So changes have no AsOf, and what happens
// in such a cell is found by a listing.
func (c *Client) Watch(ctx context.Context, report func(cloud.Change) error) error {
	ctx, cancel := c.session.usage.UntilClosed(ctx)
	defer cancel()
	w := &watch{client: c, report: report}
	err := w.set(ctx)
	for err == nil {
		began := time.Now()
		if err = w.poll(ctx); err == nil {
			err = w.pause(ctx, time.Since(began))
		}
	}
	return asWatchError(err)
}

// watch is one call of Watch.
type watch struct {
	client *Client
	report func(cloud.Change) error
	// since is the time, by the clock of the compute service, before which all changes
	// were reported. It is zero as long as the service showed no server.
	since time.Time
	// seen is what was last reported of the servers that the next answer may repeat.
	seen map[string]digest
	// building are the servers that were last reported as being built. The service keeps
	// no record of one that is deleted before it has a host.
	building map[string]bool
	// changedAt is when a change was last reported or made.
	changedAt time.Time
}

// set reports a full set. Changes are asked for from the time on when it began.
func (w *watch) set(ctx context.Context) error {
	w.seen, w.building = map[string]digest{}, map[string]bool{}
	asOf, opts := time.Now(), cloud.ListServers{Limit: maxLimit}
	for range maxWatchPages {
		page, err := w.client.ListServers(ctx, opts)
		if err != nil {
			return err
		}
		w.since = from(w.since, latest(page.Servers), asOf)
		for _, s := range page.Servers {
			if !s.UpdatedAt.Before(w.since) {
				w.seen[s.ID] = digestOf(s)
			}
			w.built(s)
		}
		err = w.report(cloud.Change{AsOf: asOf, Complete: true, More: page.Next != "", Servers: page.Servers})
		if err != nil || page.Next == "" {
			return err
		}
		opts.Marker = page.Next
	}
	return refuse(opWatch, cloud.Unreadable, "the listing of the servers does not end")
}

// latest returns the time of the last change among servers, by the clock of the compute
// service; zero without servers.
func latest(servers []cloud.Server) (last time.Time) {
	for i := range servers {
		if servers[i].UpdatedAt.After(last) {
			last = servers[i].UpdatedAt
		}
	}
	return last
}

// from returns the time from which on changes may be missing in an answer that was asked
// for at began, and that shows by now a change at the time last: the service cannot have
// shown it before. It never returns an earlier time than since.
func from(since, last, began time.Time) time.Time {
	if last.IsZero() {
		return since
	}
	if next := last.Add(-time.Since(began) - overlap).Truncate(time.Second); next.After(since) {
		return next
	}
	return since
}

// built records whether a server is being built.
func (w *watch) built(s cloud.Server) {
	if s.State == cloud.StateBuilding {
		w.building[s.ID] = true
	} else {
		delete(w.building, s.ID)
	}
}

// poll reports what changed.
func (w *watch) poll(ctx context.Context) error {
	query, answer, next := url.Values{}, map[string]digest{}, w.since
	if !w.since.IsZero() {
		query.Set("changes-since", w.since.UTC().Format(time.RFC3339))
	}
	began := time.Now()
	for range maxWatchPages {
		found, err := w.changes(ctx, query, answer)
		if err != nil {
			return err
		}
		next = from(next, found.last, began)
		maps.Copy(answer, found.shown)
		if err := w.forward(found.change); err != nil {
			return err
		}
		if found.next == "" {
			if err := w.vanished(ctx, answer); err != nil {
				return err
			}
			w.since, w.seen = next, answer
			return nil
		}
		query.Set("marker", found.next)
	}
	return refuse(opWatch, cloud.Unreadable, "the list of changed servers does not end")
}

// forward reports a change, if there is any.
func (w *watch) forward(change cloud.Change) error {
	if len(change.Servers)+len(change.Gone) == 0 {
		return nil
	}
	w.changedAt = time.Now()
	for _, s := range change.Servers {
		w.built(s)
	}
	for _, id := range change.Gone {
		delete(w.building, id)
	}
	return w.report(change)
}

// pause waits until the next question is due, at least as long as the answer took.
func (w *watch) pause(ctx context.Context, took time.Duration) error {
	pace := w.client.pace
	least := max(pace.brisk, took)
	wait := max(pace.rest, least)
	if time.Since(w.changedAt) < pace.lasting {
		wait = least
	}
	began := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
	case <-w.client.session.changed:
		w.changedAt = time.Now()
		if transport.Sleep(ctx, least-time.Since(began)) {
			return nil
		}
	}
	return w.client.session.ended(ctx, opWatch)
}

// asWatchError returns an error of the caller's as one of the watch.
func asWatchError(err error) error {
	if cloud.KindOf(err) != "" {
		return err
	}
	return &cloud.Error{Kind: cloud.Unavailable, Op: opWatch, Detail: transport.Truncate(err.Error(), maxReason), Err: err}
}
