package mockcloud

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxPage is the maximum number of servers on a page, and the default.
const maxPage = 1000

// listQuery has the parameters of GET /servers in the extended profile.
type listQuery struct {
	limit   int
	after   *position
	marker  string
	labels  map[string]string
	name    string
	updated time.Time
	// never matches no server: one label was given with two values.
	never bool
	// shown returns a name as answers have it.
	shown func(string) string
}

type serverPage struct {
	Servers []any  `json:"servers"`
	Next    string `json:"next,omitempty"`
}

// listings list servers.
type listings struct {
	core  *core
	views *views
	reads *reads
	names *names
}

// handle handles GET /servers.
func (l *listings) handle(w http.ResponseWriter, r *request) error {
	listFaults := listFaultsOf(r.Context())
	now := l.core.now()
	if l.core.profile == Core {
		records, _ := l.page(listQuery{limit: -1, shown: l.names.shown}, now, listFaults)
		return writeJSON(w, http.StatusOK, l.views.representAll(listFaults.applyToPage(records), now))
	}
	query, err := l.parse(r.URL.Query())
	if err != nil {
		return err
	}
	records, next := l.page(query, now, listFaults)
	if next == "" && query.after == nil {
		records = listFaults.applyToPage(records)
	}
	if listFaults.loops() {
		next = query.marker
		if next == "" {
			next = position{}.marker()
		}
	}
	body := serverPage{Servers: l.views.representAll(records, now), Next: next}
	return writeJSON(w, http.StatusOK, l.core.quirks.Load().shapeList(body, "Servers", "SERVERS", "Total", "Next"))
}

func (v *views) representAll(records []*record, now time.Time) []any {
	out := make([]any, len(records))
	for i, r := range records {
		out[i] = v.represent(r, now)
	}
	return out
}

func (l *listings) parse(values url.Values) (listQuery, error) {
	q := listQuery{limit: maxPage, name: values.Get("name"), marker: values.Get("marker"), shown: l.names.shown}
	if text := values.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 {
			return q, invalid("limit is a number of 1-%d", maxPage)
		}
		q.limit = min(limit, maxPage)
	}
	if q.marker != "" {
		after, err := parseMarker(q.marker)
		if err != nil {
			return q, err
		}
		q.after = &after
	}
	if text := values.Get("updatedSince"); text != "" {
		since, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return q, invalid("updatedSince is an RFC 3339 time")
		}
		q.updated = since
	}
	filters := values["label"]
	if len(filters) > 0 && !l.core.has(Labels) {
		return q, unsupported("labels")
	}
	q.labels = make(map[string]string, len(filters))
	for _, filter := range filters {
		key, value, found := strings.Cut(filter, "=")
		if !found || key == "" {
			return q, invalid("label is key=value")
		}
		if other, twice := q.labels[key]; twice && other != value {
			q.never = true
		}
		q.labels[key] = value
	}
	return q, nil
}

func (q *listQuery) matches(r *record) bool {
	if q.never || (q.name != "" && q.shown(r.Name) != q.shown(q.name)) {
		return false
	}
	if !q.updated.IsZero() && r.UpdatedAt.Before(q.updated) {
		return false
	}
	for key, value := range q.labels {
		if got, carried := r.Labels[key]; !carried || got != value {
			return false
		}
	}
	return true
}

// page returns the servers that match the query, at most limit of them unless it
// is negative, and the marker of the next page.
func (l *listings) page(q listQuery, now time.Time, d listFaults) ([]*record, string) {
	l.core.mu.RLock()
	defer l.core.mu.RUnlock()
	all := l.reads.listing(q, now)
	from := 0
	if q.after != nil {
		from = all.resume(q, d)
	}
	records := make([]*record, 0, max(0, min(q.limit, len(all.order)-from)))
	for _, p := range all.order[from:] {
		r := all.servers[p.id]
		if !q.matches(r) || d.hides(r, now) {
			continue
		}
		if len(records) == q.limit {
			return records, records[len(records)-1].position().marker()
		}
		records = append(records, r)
	}
	return records, ""
}

// resume returns the index where the page after the marker begins. A fault can move
// it by one matching server.
func (l listed) resume(q listQuery, d listFaults) int {
	from, found := slices.BinarySearchFunc(l.order, *q.after, position.compare)
	if found {
		from++
	}
	matches := func(i int) bool { return q.matches(l.servers[l.order[i].id]) }
	if d.duplicates() {
		for i := from - 1; i >= 0; i-- {
			if matches(i) {
				return i
			}
		}
	}
	if d.skips() {
		for i := from; i < len(l.order); i++ {
			if matches(i) {
				return i + 1
			}
		}
	}
	return from
}

// marker returns the marker of the page after this position. It remains valid when
// the server at the position is deleted.
func (p position) marker() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d|%s", p.created, p.id))
}

func parseMarker(text string) (position, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return position{}, invalid("marker is not one of this cloud")
	}
	created, id, found := strings.Cut(string(data), "|")
	nanos, err := strconv.ParseInt(created, 10, 64)
	if err != nil || !found {
		return position{}, invalid("marker is not one of this cloud")
	}
	return position{created: nanos, id: id}, nil
}
