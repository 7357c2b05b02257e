package inventory

import (
	"context"
	"errors"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// PageSize is the number of servers requested for a page.
	PageSize = 1000
	// maxPages bounds the calls of one listing, for a cloud with small pages.
	maxPages = 10_000
)

// List lists all servers of a cloud. It fails rather than return an incomplete
// snapshot: when a page fails, when a page marker repeats, after maxPages, or as
// soon as the listing exceeds maxServers or maxBytes. A server on two pages counts
// once.
func List(ctx context.Context, from cloud.ServerReader, now func() time.Time) (*Snapshot, error) {
	return list(ctx, from, nil, now, holdAll)
}

// list calls hold with the memory that the listing takes, as it grows. The snapshot shares
// with the last one, which may be nil, what is the same.
func list(ctx context.Context, from cloud.ServerReader, last *Snapshot, now func() time.Time, hold func(bytes int) error) (*Snapshot, error) {
	begun := now()
	snap := newSnapshot(begun)
	markers, in := map[string]bool{}, newIntake(snap, last, hold)
	for marker := ""; ; {
		next, err := readPage(ctx, from, cloud.ListServers{Limit: PageSize, Marker: marker}, in)
		if err != nil {
			return nil, err
		}
		snap.Pages++
		if err := in.add(); err != nil {
			return nil, err
		}
		marker = next
		switch {
		case marker == "":
			snap = in.done()
			snap.Took = now().Sub(begun)
			return snap, nil
		case markers[marker]:
			return nil, &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: "the cloud's listing loops: a page marker came back"}
		case snap.Pages == maxPages:
			return nil, &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Err: errors.New("the cloud's listing does not end")}
		}
		if err := in.addMarker(marker); err != nil {
			return nil, err
		}
		markers[marker] = true
		if err := in.holdMore(); err != nil {
			return nil, err
		}
	}
}

// readPage passes the servers of a page on, and returns the marker of the next one.
func readPage(ctx context.Context, from cloud.ServerReader, opts cloud.ListServers, to cloud.ServerSink) (next string, err error) {
	if streamer, ok := from.(cloud.ServerStreamer); ok {
		return streamer.StreamServers(ctx, opts, to)
	}
	page, err := from.ListServers(ctx, opts)
	if err != nil {
		return "", err
	}
	to.Begin()
	for _, server := range page.Servers {
		if err := to.Take(server); err != nil {
			return "", err
		}
	}
	return page.Next, nil
}
