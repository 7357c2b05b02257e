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

// maxPage is the most servers on a page, and how many there are without limit=.
const maxPage = 1000

// listQuery is what a client of the extended profile asks of GET /servers.
type listQuery struct {
	limit   int
	after   *position
	marker  string
	labels  map[string]string
	name    string
	updated time.Time
	// never matches no server: two values were asked of one label.
	never bool
}

type serverPage struct {
	Servers []any  `json:"servers"`
	Next    string `json:"next,omitempty"`
}

// handleListServers answers GET /servers.
func (c *Cloud) handleListServers(w http.ResponseWriter, r *request) error {
	distortion := distortionOf(r.Context())
	now := c.now()
	if c.opts.Profile == Core {
		records, _ := c.page(listQuery{limit: -1}, now, distortion)
		return writeJSON(w, http.StatusOK, c.representAll(distortion.bend(records), now))
	}
	query, err := c.parseListQuery(r.URL.Query())
	if err != nil {
		return err
	}
	records, next := c.page(query, now, distortion)
	if next == "" && query.after == nil {
		records = distortion.bend(records)
	}
	if distortion.loops() {
		next = query.marker
		if next == "" {
			next = position{}.marker()
		}
	}
	return writeJSON(w, http.StatusOK, serverPage{Servers: c.representAll(records, now), Next: next})
}

func (c *Cloud) representAll(records []*record, now time.Time) []any {
	out := make([]any, len(records))
	for i, r := range records {
		out[i] = c.represent(r, now)
	}
	return out
}

func (c *Cloud) parseListQuery(values url.Values) (listQuery, error) {
	q := listQuery{limit: maxPage, name: values.Get("name"), marker: values.Get("marker")}
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
	if len(filters) > 0 && !c.has(Labels) {
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
	if q.never || (q.name != "" && r.Name != q.name) {
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

// page collects what the query asks for, at most limit of it if that is not
// negative, and the marker of the next page.
func (c *Cloud) page(q listQuery, now time.Time, d distortion) ([]*record, string) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	from := 0
	if q.after != nil {
		from = c.resume(q, d)
	}
	records := make([]*record, 0, max(0, min(q.limit, len(c.st.order)-from)))
	for _, p := range c.st.order[from:] {
		r := c.st.servers[p.id]
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

// resume finds where the page after the marker begins, which a fault may move
// by one matching server. The caller holds mu.
func (c *Cloud) resume(q listQuery, d distortion) int {
	from, found := slices.BinarySearchFunc(c.st.order, *q.after, position.compare)
	if found {
		from++
	}
	matches := func(i int) bool { return q.matches(c.st.servers[c.st.order[i].id]) }
	if d.duplicates() {
		for i := from - 1; i >= 0; i-- {
			if matches(i) {
				return i
			}
		}
	}
	if d.skips() {
		for i := from; i < len(c.st.order); i++ {
			if matches(i) {
				return i + 1
			}
		}
	}
	return from
}

// marker is opaque to clients: the position of the last server of a page. It
// stays good when that server is deleted.
func (p position) marker() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d|%s", p.created, p.id))
}

func parseMarker(text string) (position, error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return position{}, invalid("marker is none of ours")
	}
	created, id, found := strings.Cut(string(data), "|")
	nanos, err := strconv.ParseInt(created, 10, 64)
	if err != nil || !found {
		return position{}, invalid("marker is none of ours")
	}
	return position{created: nanos, id: id}, nil
}
