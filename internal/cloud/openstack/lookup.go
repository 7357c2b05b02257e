package openstack

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxLookups bounds the names whose ids are kept.
const maxLookups = 1000

// looksLikeID matches ids of images and networks.
var looksLikeID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// lookup finds the ids of images or networks by name, and keeps them for a while.
type lookup struct {
	session *session
	// noun is what is looked up, and choose what to do if several have one name, in messages.
	noun, choose string

	mu  sync.Mutex
	ids map[string]found
}

type found struct {
	id string
	at time.Time
}

func newLookup(s *session, noun string) *lookup {
	return &lookup{session: s, noun: noun, choose: "give the id of one, or rename the others", ids: map[string]found{}}
}

func (l *lookup) get(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := l.ids[name]; time.Since(f.at) < transport.NameLifetime {
		return f.id
	}
	return ""
}

func (l *lookup) put(name, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ids) >= maxLookups {
		clear(l.ids)
	}
	l.ids[name] = found{id: id, at: time.Now()}
}

func (l *lookup) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.ids)
}

// named is an image or network of a listing.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// idOf returns the id of what a call lists by name. An id is used as it is: the create
// says whether it exists.
func (l *lookup) idOf(ctx context.Context, call *call, name string, listed func() []named) (string, *cloud.Error) {
	if looksLikeID.MatchString(name) {
		return name, nil
	}
	if id := l.get(name); id != "" {
		return id, nil
	}
	if err := l.session.do(ctx, call); err != nil {
		err.Detail = "looking for " + l.noun + " " + quote(name) + ": " + err.Detail
		return "", err
	}
	matches := slices.DeleteFunc(listed(), func(n named) bool { return n.Name != name })
	switch {
	case len(matches) == 0:
		return "", refuse(call.op, cloud.Rejected, "no %s that can be used is named %s; %s", l.noun, quote(name), l.others(ctx, call, listed))
	case len(matches) > 1:
		return "", refuse(call.op, cloud.Rejected, "%d %ss are named %s: %s", len(matches), l.noun, quote(name), l.choose)
	case !isID(matches[0].ID):
		return "", unreadable(call, "the "+l.noun+" has no id")
	}
	l.put(name, matches[0].ID)
	return matches[0].ID, nil
}

// others says what a call lists under other names.
func (l *lookup) others(ctx context.Context, call *call, listed func() []named) string {
	all := *call
	all.query = maps.Clone(call.query)
	all.query.Del("name")
	all.query.Set("limit", strconv.Itoa(pageSize))
	if err := l.session.do(ctx, &all); err != nil {
		return "what there is cannot be listed"
	}
	var names []string
	for _, n := range listed() {
		names = append(names, transport.Printable(n.Name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return "there are none"
	}
	return transport.Truncate("there are: "+strings.Join(names, ", "), 2*maxReason)
}
