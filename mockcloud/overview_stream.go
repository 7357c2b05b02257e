package mockcloud

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// overviewInterval is the time between two overviews on a stream.
const overviewInterval = time.Second

// handle handles GET /admin/overview?filter= with server-sent events. Each has
// the name of a part of the overview. The first overview is complete; later ones have
// the parts that have changed.
func (ov *overviewStreams) handle(w http.ResponseWriter, r *request) error {
	filter := r.URL.Query().Get("filter")
	if len(filter) > maxText {
		return invalid("filter is longer than %d bytes", maxText)
	}
	_, _, dropped := ov.events.after(0)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	// A browser reconnects after this many milliseconds.
	if _, err := fmt.Fprintf(w, "retry: %d\n\n", overviewInterval.Milliseconds()); err != nil {
		return fmt.Errorf("starting the overview: %w", err)
	}
	sent := map[string][]byte{}
	for {
		if err := ov.send(w, filter, sent); err != nil {
			// The status has been sent: an error cannot be reported to the client.
			return nil //nolint:nilerr // see above
		}
		select {
		case <-ov.core.clock.After(overviewInterval):
			ov.transitions.advance()
		case <-dropped:
			return nil
		case <-ov.core.closed:
			return nil
		case <-r.Context().Done():
			return nil
		}
	}
}

// send sends the parts of the overview that differ from those in sent, and
// updates it.
func (ov *overviewStreams) send(w http.ResponseWriter, filter string, sent map[string][]byte) error {
	now := ov.overview(filter)
	for _, part := range now.parts() {
		if bytes.Equal(sent[part.name], part.data) {
			continue
		}
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", part.name, part.data); err != nil {
			return fmt.Errorf("sending the overview: %w", err)
		}
		sent[part.name] = part.data
	}
	return http.NewResponseController(w).Flush()
}
