package rest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Bounds of what is kept of an answer, in characters. Those of names, hosts and ids
// are the bounds of the fields of a status that show them.
const (
	maxID         = 128
	maxName       = 253
	maxRange      = 128
	maxLabels     = 64
	maxLabelKey   = 317
	maxLabelValue = 1024
	maxNumber     = 64
	maxShared     = 1024
)

// maxEscape is the most bytes of JSON for one byte of a text.
const maxEscape = 6

// mibPerGiB is the number of MiB in a GiB.
const mibPerGiB = 1024

// ownLabels begin the keys of the labels that the operator itself sets. They are
// kept however many others a server has.
const ownLabels = "samplecontroller.k8s.io/"

// ownLabel is in these keys also as a cloud may alter them.
const ownLabel = "samplecontroller"

// reader reads the fields of one answer. An optional field of the wrong type, or
// with a value that makes no sense, is ignored: it counts as absent.
type reader struct {
	ignored *ignored
	// shared holds texts that many objects have, so that each is in memory once.
	shared map[string]string
	kept   kept
	// last, if it is not nil, is the map of the labels of the server that was read last, else
	// each server has a map of its own.
	last map[string]string
	// labelsIgnored is set when a label was ignored, or has no value.
	labelsIgnored bool
}

func newReader(into *ignored) *reader {
	return &reader{ignored: into, shared: map[string]string{}}
}

// kept estimates the memory of what was read of an answer, in bytes.
type kept int

// add counts what was read, and fails if it is more than most.
func (k *kept) add(size, most int) error {
	if *k += kept(size); int(*k) > most {
		return unusable(fmt.Sprintf("the answer takes more than %d MiB of memory", most>>20))
	}
	return nil
}

func tooLong(limit int) string { return fmt.Sprintf("longer than %d characters", limit) }

// text reads a text of at most maxName characters that many objects have. It is not cut: a
// part of it would mean something else.
func (r *reader) text(field string, value []byte) string {
	switch {
	case isNull(value):
		return ""
	case !isText(value):
		r.ignored.add(field, "not a string")
		return ""
	}
	text := r.share(unquoted(value))
	if utf8.RuneCountInString(text) > maxName {
		r.ignored.add(field, tooLong(maxName))
		return ""
	}
	return text
}

// share returns text as a string that all fields with this text share.
func (r *reader) share(text []byte) string {
	shared, known := r.shared[string(text)]
	if !known {
		shared = string(text)
		if len(r.shared) < maxShared && len(text) <= maxLabelKey {
			r.shared[shared] = shared
		}
	}
	return shared
}

// unnamed is why something has no name.
type unnamed string

func (u unnamed) Error() string { return string(u) }

// name reads a name, which must not be missing. A longer one than a status can show
// is cut, so that its object is not lost.
func (r *reader) name(value []byte) (string, error) {
	if !isNull(value) && !isText(value) {
		return "", unnamed("its name is not a string")
	}
	text := ""
	if isText(value) {
		text = unquote(value)
	}
	if text == "" {
		return "", unnamed("it has no name")
	}
	return r.cut("name", text, maxName), nil
}

// cut returns text without what follows the first limit characters.
func (r *reader) cut(field, text string, limit int) string {
	if len(text) <= limit || utf8.RuneCountInString(text) <= limit {
		return text
	}
	r.ignored.add(field, tooLong(limit))
	n := 0
	for at := range text {
		if n == limit {
			return strings.Clone(text[:at])
		}
		n++
	}
	return text
}

// networkID reads the id of the network that a server is attached to.
func (r *reader) networkID(value []byte) string {
	if isNull(value) || string(value) == `""` {
		return ""
	}
	id, err := identifier(value)
	if err != nil {
		r.ignored.add("networkId", "not an id")
		return ""
	}
	return id
}

// identifier reads an id: a string, or an integer, of which the digits count.
func identifier(value []byte) (string, error) {
	id := ""
	switch {
	case isText(value):
		id = unquote(value)
	case isNull(value):
	case isInteger(value):
		id = string(value)
	default:
		return "", errors.New("its id is neither a string nor an integer")
	}
	return id, checkID(id)
}

// number reads a JSON number. What is too large for a float is infinite.
func number(value []byte) (float64, bool) {
	if len(value) > maxNumber || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(value), 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}

// count reads a whole number within 0 to 2^31-1.
func (r *reader) count(field string, value []byte) int {
	if isNull(value) {
		return 0
	}
	n, ok := number(value)
	switch {
	case !ok:
		r.ignored.add(field, "not a number")
	case n < 0 || n > math.MaxInt32:
		r.ignored.add(field, "not within 0 to 2147483647")
	case n != math.Trunc(n):
		r.ignored.add(field, "not a whole number")
	default:
		return int(n)
	}
	return 0
}

// memory reads GiB, of which the cloud may have fractions, as MiB.
func (r *reader) memory(field string, value []byte) int {
	if isNull(value) {
		return 0
	}
	n, ok := number(value)
	switch mib := n * mibPerGiB; {
	case !ok:
		r.ignored.add(field, "not a number")
	case n < 0 || n > math.MaxInt32:
		r.ignored.add(field, "not within 0 to 2147483647")
	case mib != math.Trunc(mib):
		r.ignored.add(field, "not a whole number of MiB")
	default:
		return int(mib)
	}
	return 0
}

// percent reads a number within 0 to 100, rounded; nil where absent.
func (r *reader) percent(field string, value []byte) *int {
	if isNull(value) {
		return nil
	}
	n, ok := number(value)
	switch {
	case !ok:
		r.ignored.add(field, "not a number")
	case n < 0 || n > 100:
		r.ignored.add(field, "not within 0 to 100")
	default:
		return new(int(math.Round(n)))
	}
	return nil
}

// time reads a time of RFC 3339, zero where absent.
func (r *reader) time(field string, value []byte) time.Time {
	if isNull(value) {
		return time.Time{}
	}
	if isText(value) && len(value) <= maxNumber {
		if parsed, err := time.Parse(time.RFC3339, unquote(value)); err == nil {
			return parsed.UTC()
		}
	}
	r.ignored.add(field, "not a time of RFC 3339")
	return time.Time{}
}

// state reads a state in any case, and the cloud's word for it if it is not known. None means ACTIVE.
func (r *reader) state(value []byte) (state cloud.State, word string) {
	switch {
	case isNull(value):
		return cloud.StateActive, ""
	case !isText(value):
		r.ignored.add("state", "not a string")
		return cloud.StateActive, ""
	}
	text := unquoted(value)
	if state = stateOf(text); state == cloud.StateUnknown {
		word = r.share([]byte(transport.Truncate(transport.Printable(string(text)), cloud.MaxStateWord)))
	}
	return state, word
}

// synonyms are words of other APIs that mean one of states.
var synonyms = map[string]cloud.State{"RUNNING": cloud.StateActive, "SHUTOFF": cloud.StateStopped, "BUILD": cloud.StateBuilding}

var states = []cloud.State{cloud.StateBuilding, cloud.StateActive, cloud.StateStopped, cloud.StateSuspended, cloud.StateDeleting, cloud.StateError}

func stateOf(text []byte) cloud.State {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return cloud.StateActive
	}
	for _, s := range states {
		if bytes.EqualFold(text, []byte(s)) {
			return s
		}
	}
	for word, s := range synonyms {
		if bytes.EqualFold(text, []byte(word)) {
			return s
		}
	}
	return cloud.StateUnknown
}

// labels reads the labels of a server. A value of null is none.
func (r *reader) labels(value []byte) map[string]string {
	if isNull(value) {
		return nil
	}
	clear(r.last)
	var labels map[string]string
	counts := map[bool]int{}
	object := fields(value, func(key, value []byte) {
		switch {
		case isNull(value):
			r.labelsIgnored = true // it may be one of the operator's
			return
		case !isText(value):
			r.ignoreLabels("a value that is not a string")
			return
		case len(key) > maxLabelKey || len(value) > maxEscape*maxLabelValue+len(`""`):
			r.ignoreLabels("a key or value that is too long")
			return
		}
		text := unquote(value)
		if len(text) > maxLabelValue {
			r.ignoreLabels("a key or value that is too long")
			return
		}
		own := bytes.HasPrefix(key, []byte(ownLabels))
		counts[own]++
		if counts[own] > maxLabels {
			r.ignoreLabels(fmt.Sprintf("more than %d", maxLabels))
			return
		}
		if labels == nil {
			labels = r.newLabels()
		}
		labels[r.share(key)] = text
	})
	if !object {
		r.ignoreLabels("not an object")
	}
	return labels
}

func (r *reader) newLabels() map[string]string {
	if r.last != nil {
		return r.last
	}
	return map[string]string{}
}

func (r *reader) ignoreLabels(why string) {
	r.labelsIgnored = true
	r.ignored.add("labels", why)
}
