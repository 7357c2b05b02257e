package openstack

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// digest is what was reported of a server, in a form that needs little memory. That of
// a server that is gone is zero.
type digest [sha256.Size]byte

func digestOf(s cloud.Server) digest {
	data, _ := json.Marshal(s) // texts, numbers and times can always be encoded
	return sha256.Sum256(data)
}

// changed is a page of changes.
type changed struct {
	// change is what was not reported yet.
	change cloud.Change
	// shown has a digest of each server of the page.
	shown map[string]digest
	// last is the time of the last change.
	last time.Time
	// next is the marker of the next page; empty after the last one.
	next string
}

// changes reads a page of changes. answer is what the pages before it had.
func (w *watch) changes(ctx context.Context, query url.Values, answer map[string]digest) (changed, error) {
	ctx, end, failed := w.client.session.begin(ctx, opWatch)
	if failed != nil {
		return changed{}, failed
	}
	defer end()
	var found changed
	next, failed := w.client.page(ctx, opWatch, query, func() { found = changed{shown: map[string]digest{}} }, func(s *server) error {
		of, now := s.domain(), digest{}
		if !s.kept() {
			now = digestOf(of)
		}
		if of.UpdatedAt.After(found.last) {
			found.last = of.UpdatedAt
		}
		before, known := answer[s.ID]
		if !known {
			before, known = w.seen[s.ID]
		}
		found.shown[s.ID] = now
		switch {
		case known && before == now:
		case now == digest{}:
			found.change.Gone = append(found.change.Gone, s.ID)
		default:
			found.change.Servers = append(found.change.Servers, of)
		}
		return nil
	})
	switch {
	case failed != nil:
		return changed{}, failed
	case found.last.IsZero() && len(found.shown) > 0:
		return changed{}, refuse(opWatch, cloud.Unreadable, "the servers have no time of their last change")
	}
	found.next = next
	return found, nil
}

// vanished reads the servers that were being built and are missing in an answer. The
// service shows each server without a host in each answer.
func (w *watch) vanished(ctx context.Context, answer map[string]digest) error {
	for id := range w.building {
		if _, shown := answer[id]; shown {
			continue
		}
		_, err := w.client.GetServer(ctx, id)
		switch {
		case cloud.Is(err, cloud.NotFound):
			err = w.forward(cloud.Change{Gone: []string{id}})
		case err == nil: // it has a host, so its deletion will be among the changes
			delete(w.building, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
