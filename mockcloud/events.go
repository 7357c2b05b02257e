package mockcloud

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// The types of events.
const (
	EventReady   = "ready"
	EventCreated = "server.created"
	EventUpdated = "server.updated"
	EventDeleted = "server.deleted"
)

// eventsKept is the number of events that a client can resume from.
const eventsKept = 10_000

// heartbeat is the interval of comments on an idle stream, so that proxies do not
// close it.
const heartbeat = 15 * time.Second

// event is one change.
type event struct {
	seq  uint64
	kind string
	at   time.Time
	r    *record
}

type eventBody struct {
	Token string    `json:"token"`
	Type  string    `json:"type"`
	At    time.Time `json:"at"`
	ID    any       `json:"id,omitempty"`
	// Server is absent if the server was deleted.
	Server any `json:"server,omitempty"`
}

// broker has the last events and notifies the streams.
type broker struct {
	mu sync.Mutex
	// epoch is part of the tokens. Events are not stored, so that tokens from before a
	// restart must be rejected.
	epoch   string
	seq     uint64
	events  []event
	changed chan struct{}
	// dropped is closed to end all open streams.
	dropped chan struct{}
	// lost is the number of next events that are not sent.
	lost int
}

func newBroker() *broker {
	return &broker{epoch: uuid.NewString()[:8], changed: make(chan struct{}), dropped: make(chan struct{})}
}

func (b *broker) publish(at time.Time, kind string, r *record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	if b.lost > 0 {
		b.lost--
		return
	}
	b.events = append(b.events, event{seq: b.seq, kind: kind, at: at, r: r})
	if len(b.events) > 2*eventsKept {
		b.events = append([]event(nil), b.events[len(b.events)-eventsKept:]...)
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *broker) token(seq uint64) string { return fmt.Sprintf("%s-%d", b.epoch, seq) }

// resume returns the sequence number of a token; that of the last event if it is
// empty.
func (b *broker) resume(token string) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if token == "" {
		return b.seq, nil
	}
	epoch, text, _ := strings.Cut(token, "-")
	seq, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, invalid("since is not a token of this cloud")
	}
	old := len(b.events) >= eventsKept && seq+1 < b.events[0].seq
	if epoch != b.epoch || seq > b.seq || old {
		return 0, problem(http.StatusGone, CodeTokenExpired, "the events after this token are no longer available; list again")
	}
	return seq, nil
}

// after returns the events after seq, a channel that is closed on the next event,
// and one that is closed when streams are dropped.
func (b *broker) after(seq uint64) ([]event, chan struct{}, chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := len(b.events)
	for from > 0 && b.events[from-1].seq > seq {
		from--
	}
	return append([]event(nil), b.events[from:]...), b.changed, b.dropped
}

// streams sends events.
type streams struct {
	core   *core
	events *broker
	views  *views
}

// handle handles GET /events?since= with server-sent events. The first is
// EventReady: the stream has all events after its token.
func (s *streams) handle(w http.ResponseWriter, r *request) error {
	since := r.URL.Query().Get("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		since = last
	}
	seq, err := s.events.resume(since)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	// The status has been sent: an error cannot be reported to the client.
	_ = s.follow(w, r, seq)
	return nil
}

// follow sends the events after seq until the client disconnects, the stream is
// dropped or the cloud closes.
func (s *streams) follow(w http.ResponseWriter, r *request, seq uint64) error {
	_, _, dropped := s.events.after(seq)
	stream := http.NewResponseController(w)
	if err := s.send(w, event{seq: seq, kind: EventReady, at: s.core.now()}); err != nil {
		return err
	}
	for {
		_ = stream.Flush()
		events, changed, _ := s.events.after(seq)
		if len(events) == 0 {
			select {
			case <-changed:
			case <-dropped:
				return nil
			case <-s.core.closed:
				return nil
			case <-r.Context().Done():
				return nil
			case <-s.core.clock.After(heartbeat):
				if _, err := fmt.Fprint(w, ": still here\n\n"); err != nil {
					return err
				}
			}
			continue
		}
		for _, e := range events {
			if err := s.send(w, e); err != nil {
				return err
			}
			seq = e.seq
		}
	}
}

func (s *streams) send(w http.ResponseWriter, e event) error {
	body := eventBody{Token: s.events.token(e.seq), Type: e.kind, At: e.at}
	if e.r != nil {
		body.ID = e.r.ID
		if s.core.quirks.Load().NumericIDs {
			body.ID = unquoted(json.RawMessage(encoded("", "id", e.r.ID).Value))
		}
		if e.kind != EventDeleted {
			body.Server = s.views.represent(e.r, s.core.now())
		}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding event: %w", err)
	}
	_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", body.Token, body.Type, data)
	return err
}

func (b *broker) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.dropped)
	b.dropped = make(chan struct{})
}

func (b *broker) lose(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = max(0, n)
}
