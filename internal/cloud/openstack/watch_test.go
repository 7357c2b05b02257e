package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// nova is a compute service whose servers change.
type nova struct {
	*stub
	mu sync.Mutex
	// pages are the answers to listings, one after the other; the last one is repeated.
	pages []string
	// queries are those of the listings.
	queries []string
}

// newNova returns a compute service that answers listings with these pages.
func newNova(t *testing.T, pages ...string) *nova {
	t.Helper()
	n := &nova{stub: newStub(t), pages: pages}
	n.handle("GET compute/servers/detail", n.list)
	return n
}

func (n *nova) list(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queries = append(n.queries, r.URL.RawQuery)
	body := n.pages[0]
	if len(n.pages) > 1 {
		n.pages = n.pages[1:]
	}
	switch body {
	case "cut":
		cut(w, r)
	case "half":
		w.Header().Set("Content-Length", "100000")
		_, _ = w.Write([]byte(strings.TrimSuffix(of(at("a", 1, "ACTIVE")), "]}") + ","))
		cut(w, r)
	default:
		_, _ = w.Write([]byte(body))
	}
}

func (n *nova) asked() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.queries)
}

// at returns a server that changed last at a second of a minute.
func at(id string, second int, status string) string {
	return fmt.Sprintf(`{"id": %q, "name": "n-%s", "status": %q, "updated": "2026-01-02T03:04:%02dZ"}`, id, id, status, second)
}

// of returns a page, the last one.
func of(servers ...string) string { return `{"servers": [` + strings.Join(servers, ",") + `]}` }

// more returns a page that another one follows.
func more(servers ...string) string {
	return `{"servers_links": [{"rel": "next"}], "servers": [` + strings.Join(servers, ",") + `]}`
}

// quick is a pace for tests.
var quick = pace{rest: time.Millisecond, brisk: time.Millisecond, lasting: time.Millisecond}

// reported is a change in a form that tests compare.
type reported struct {
	Set, More     bool
	Servers, Gone []string
}

func inShort(c cloud.Change) reported {
	short := reported{Set: c.Complete, More: c.More, Gone: c.Gone}
	for _, s := range c.Servers {
		short.Servers = append(short.Servers, s.ID+" "+string(s.State))
	}
	return short
}

// watchFor watches until the service was asked this many times for servers, and returns
// what was reported.
func watchFor(t *testing.T, n *nova, listings int) ([]reported, error) {
	t.Helper()
	c := n.client()
	c.pace = quick
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := n.answers["GET compute/servers/detail"]
	n.handle("GET compute/servers/detail", func(w http.ResponseWriter, r *http.Request) {
		if len(n.asked()) == listings {
			cancel()
			cut(w, r)
			return
		}
		last(w, r)
	})
	var all []reported
	err := c.Watch(ctx, func(change cloud.Change) error {
		if change.Complete == change.AsOf.IsZero() {
			t.Errorf("a change %+v as of %s, want a time of full sets alone", inShort(change), change.AsOf)
		}
		all = append(all, inShort(change))
		return nil
	})
	return all, err
}

func TestWatchReportsWhatChanged(t *testing.T) {
	set := of(at("a", 30, "ACTIVE"), at("b", 20, "ACTIVE"))
	tests := map[string]struct {
		pages []string
		want  []reported
	}{
		"nothing": {
			pages: []string{set, of(at("a", 30, "ACTIVE")), of(at("a", 30, "ACTIVE"))},
			want:  []reported{{Set: true, Servers: []string{"a ACTIVE", "b ACTIVE"}}},
		},
		"a server, and it is repeated": {
			pages: []string{set, of(at("b", 40, "SHUTOFF")), of(at("b", 40, "SHUTOFF"))},
			want:  []reported{{Set: true, Servers: []string{"a ACTIVE", "b ACTIVE"}}, {Servers: []string{"b STOPPED"}}},
		},
		"a server twice within one second": {
			pages: []string{set, of(at("b", 40, "SHUTOFF")), of(at("b", 40, "ACTIVE"))},
			want: []reported{
				{Set: true, Servers: []string{"a ACTIVE", "b ACTIVE"}}, {Servers: []string{"b STOPPED"}}, {Servers: []string{"b ACTIVE"}},
			},
		},
		"deletions, and they are repeated": {
			pages: []string{set, of(at("a", 41, "DELETED"), at("b", 41, "SOFT_DELETED")), of(at("a", 41, "DELETED"), at("b", 41, "SOFT_DELETED"))},
			want:  []reported{{Set: true, Servers: []string{"a ACTIVE", "b ACTIVE"}}, {Gone: []string{"a", "b"}}},
		},
		"all of several pages": {
			pages: []string{more(at("a", 30, "ACTIVE")), of(at("b", 20, "ACTIVE")), more(at("c", 41, "BUILD")), of(at("b", 42, "DELETED")), of()},
			want: []reported{
				{Set: true, More: true, Servers: []string{"a ACTIVE"}}, {Set: true, Servers: []string{"b ACTIVE"}},
				{Servers: []string{"c BUILDING"}}, {Gone: []string{"b"}},
			},
		},
		"a page that breaks and is read again": {
			pages: []string{set, "half", of(at("a", 1, "ACTIVE"), at("b", 40, "SHUTOFF"))},
			want:  []reported{{Set: true, Servers: []string{"a ACTIVE", "b ACTIVE"}}, {Servers: []string{"a ACTIVE", "b STOPPED"}}},
		},
		"the first server of a project": {
			pages: []string{of(), of(), of(at("a", 30, "ACTIVE")), of(at("a", 35, "DELETED"))},
			want:  []reported{{Set: true}, {Servers: []string{"a ACTIVE"}}, {Gone: []string{"a"}}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNova(t, tc.pages...)
			n.on("GET compute/servers/c", `{"server": `+at("c", 41, "BUILD")+`}`)
			got, err := watchFor(t, n, len(tc.pages))
			if diff := cmp.Diff(tc.want, got); diff != "" || !cloud.Is(err, cloud.Unavailable) {
				t.Errorf("%v, reported (-want +got):\n%s", err, diff)
			}
		})
	}
}

// What changes while an answer is made can be missing in it, though it shows later changes.
func TestWatchAsksFromTheBeginOfTheAnswerBefore(t *testing.T) {
	n := newNova(t,
		more(at("a", 30, "ACTIVE")), of(at("b", 45, "ACTIVE")), // 45 - 2 × 5 - 10
		more(at("b", 50, "ACTIVE")), of(at("a", 59, "ACTIVE")), // 59 - 2 × 5 - 10
		of(at("a", 41, "ACTIVE")), // 41 - 5 - 10 is before that
		of(), of())
	list := n.list
	n.handle("GET compute/servers/detail", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(5 * time.Second)
		list(w, r)
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		c := n.client(func(c *Config) { c.Base = inMemory{n.stub} })
		if err := c.Watch(ctx, func(cloud.Change) error { return nil }); !cloud.Is(err, cloud.Unavailable) {
			t.Errorf("Watch: %v", err)
		}
	})
	var got []string
	for _, query := range n.asked()[:6] {
		got = append(got, strings.NewReplacer("changes-since=2026-01-02T03%3A04%3A", "since ", "Z", "").Replace(query))
	}
	if diff := cmp.Diff([]string{"", "limit=1000&marker=a", "since 25", "since 25&marker=b", "since 39", "since 39"}, got); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestWatchOfAProjectWithoutServersAsksForAll(t *testing.T) {
	n := newNova(t, of(), of(), of(at("a", 30, "ACTIVE")), of())
	if _, err := watchFor(t, n, 4); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("Watch: %v", err)
	}
	// The part of a second that an answer takes makes it one second earlier.
	if diff := cmp.Diff([]string{"", "", "", "changes-since=2026-01-02T03%3A04%3A19Z"}, n.asked()); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

// The service forgets a server that is deleted before it has a host.
func TestServerThatVanishesWhileItIsBuiltIsGone(t *testing.T) {
	const missing = `{"itemNotFound": {"message": "Instance could not be found.", "code": 404}}`
	set := []reported{{Set: true, Servers: []string{"a BUILDING"}}}
	tests := map[string]struct {
		answer string
		status int
		want   []reported
		kind   cloud.Kind
	}{
		"it does not exist":                   {answer: missing, status: 404, want: append(slices.Clone(set), reported{Gone: []string{"a"}}), kind: cloud.Unavailable},
		"it exists":                           {answer: `{"server": ` + at("a", 1, "BUILD") + `}`, status: 200, want: set, kind: cloud.Unavailable},
		"somebody else answers":               {answer: `<html>`, status: 404, want: set, kind: cloud.NotFoundUnproven},
		"its cell does not answer":            {answer: `{"server": {"id": "a", "status": "UNKNOWN"}}`, status: 200, want: set, kind: cloud.Unreadable},
		"the service does not answer in time": {answer: ``, status: 503, want: set, kind: cloud.Unavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNova(t, of(at("a", 30, "BUILD")), of(at("a", 31, "BUILD")), of())
			n.on("GET compute/servers/a", tc.answer, tc.status)
			got, err := watchFor(t, n, 5)
			// The time of a server without a host is always the current one.
			got = slices.DeleteFunc(got, func(r reported) bool { return !r.Set && len(r.Servers) > 0 })
			if diff := cmp.Diff(tc.want, got); diff != "" || cloud.KindOf(err) != tc.kind {
				t.Errorf("%v, want %s, reported (-want +got):\n%s", err, tc.kind, diff)
			}
		})
	}
}

func TestWatchEndsWhereItCannotContinue(t *testing.T) {
	set := of(at("a", 30, "ACTIVE"))
	tests := map[string]struct {
		pages   []string
		kind    cloud.Kind
		says    string
		changes int
	}{
		"the set cannot be read":               {pages: []string{`{}`}, kind: cloud.Unreadable, says: "no list of servers"},
		"a cell does not answer":               {pages: []string{of(at("a", 30, "ACTIVE"), `{"id": "b", "status": "UNKNOWN"}`)}, kind: cloud.Unreadable, says: "does not answer"},
		"the set breaks between its pages":     {pages: []string{more(at("a", 30, "ACTIVE")), "cut", "cut", "cut"}, kind: cloud.Unavailable, changes: 1},
		"the set does not end":                 {pages: []string{more(at("a", 30, "ACTIVE"))}, kind: cloud.Unreadable, says: "does not end", changes: maxWatchPages},
		"changes do not end":                   {pages: []string{set, more(at("a", 30, "ACTIVE"))}, kind: cloud.Unreadable, says: "does not end", changes: 1},
		"changes break":                        {pages: []string{set, "cut", "cut", "cut"}, kind: cloud.Unavailable, changes: 1},
		"changes cannot be read":               {pages: []string{set, `[]`}, kind: cloud.Unreadable, says: "not the JSON of a listing", changes: 1},
		"servers have no time of their change": {pages: []string{of(serverJSON())}, kind: cloud.Unreadable, says: "no time of their last change", changes: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := watchFor(t, newNova(t, tc.pages...), 2*maxWatchPages)
			if cloud.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says) || len(got) != tc.changes {
				t.Errorf("%v after %d changes, want %s with %q after %d", err, len(got), tc.kind, tc.says, tc.changes)
			}
			for _, r := range got {
				if len(r.Gone) > 0 {
					t.Errorf("reported as gone: %v", r.Gone)
				}
			}
		})
	}
}

func TestWatchEndsWithTheErrorOfItsCaller(t *testing.T) {
	cause := errors.New("full")
	c := newNova(t, of()).client()
	if err := c.Watch(t.Context(), func(cloud.Change) error { return cause }); !errors.Is(err, cause) || !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("%v, want Unavailable because of the error of the caller", err)
	}
}

// inMemory sends requests to a stub without a connection.
type inMemory struct{ *stub }

func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder, served := httptest.NewRecorder(), r.Clone(r.Context())
	if served.Body == nil {
		served.Body = http.NoBody
	}
	m.serve(recorder, served)
	return recorder.Result(), nil
}

func TestWatchAsksMoreOftenWhileServersChange(t *testing.T) {
	n := newNova(t, of(at("a", 30, "ACTIVE")))
	n.on("DELETE compute/servers/"+someID, ``, 204)
	n.on("GET compute/servers/"+someID, ``, 500)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := n.client(func(c *Config) { c.Base = inMemory{n.stub} })
		ended := make(chan error, 1)
		go func() { ended <- c.Watch(ctx, func(cloud.Change) error { return nil }) }()
		during := func(d time.Duration) int {
			before := len(n.asked())
			time.Sleep(d)
			synctest.Wait()
			return len(n.asked()) - before
		}
		synctest.Wait()
		if got := during(time.Minute); got != 12 {
			t.Errorf("asked %d times in a minute while nothing changes, want 12", got)
		}
		n.mu.Lock()
		n.pages = []string{of(at("a", 40, "SHUTOFF"))}
		n.mu.Unlock()
		if got := during(5 * time.Second); got != 1 {
			t.Errorf("asked %d times in 5 s in which something changes, want once", got)
		}
		if got := during(30 * time.Second); got < 29 || got > 31 {
			t.Errorf("asked %d times in the 30 s after a change, want 30", got)
		}
		during(30 * time.Second)
		if got := during(time.Minute); got != 12 {
			t.Errorf("asked %d times in the minute after that, want 12", got)
		}
		during(500 * time.Millisecond)
		if _, err := c.DeleteServer(ctx, someID); err != nil {
			t.Errorf("DeleteServer: %v", err)
		}
		if got := during(3 * time.Second); got < 2 {
			t.Errorf("asked %d times in the 3 s after a change by this client, want each second", got)
		}
		cancel()
		if err := <-ended; !cloud.Is(err, cloud.Unavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("Watch: %v, want Unavailable", err)
		}
	})
}

// A service that is slow is not asked all the time.
func TestWatchPausesAfterASlowAnswer(t *testing.T) {
	n := newNova(t, of())
	synctest.Test(t, func(t *testing.T) {
		c := n.client(func(c *Config) { c.Base = inMemory{n.stub} })
		w := &watch{client: c, changedAt: time.Now()}
		for took, want := range map[time.Duration]time.Duration{0: time.Second, 4 * time.Second: 4 * time.Second} {
			w.changedAt = time.Now()
			began := time.Now()
			if err := w.pause(t.Context(), took); err != nil || time.Since(began) != want {
				t.Errorf("paused %s after an answer that took %s, %v, want %s", time.Since(began), took, err, want)
			}
		}
	})
}

func TestDigestsOfServersDifferInEachField(t *testing.T) {
	whole := func(text string) cloud.Server {
		var s server
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		return s.domain()
	}
	seen := map[digest]string{}
	for _, text := range []string{
		at("a", 1, "ACTIVE"), at("a", 2, "ACTIVE"), at("b", 1, "ACTIVE"), at("a", 1, "SHUTOFF"),
		strings.Replace(at("a", 1, "ACTIVE"), "{", `{"metadata": {"k": "v"}, `, 1), strings.Replace(at("a", 1, "ACTIVE"), "{", `{"metadata": {"k": "w"}, `, 1),
	} {
		d := digestOf(whole(text))
		if other, known := seen[d]; known || d == (digest{}) {
			t.Errorf("%s has the digest of %s", text, other)
		}
		seen[d] = text
	}
}
