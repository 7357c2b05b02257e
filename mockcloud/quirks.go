package mockcloud

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The values of Quirks.IgnorePatch.
const (
	// PatchUnchanged answers with the unchanged server or network.
	PatchUnchanged = "unchanged"
	// PatchEcho answers as if the change was applied.
	PatchEcho = "echo"
)

// Quirks are the ways in which a cloud can differ from the OpenAPI document, or
// from what a client may expect of it. Each can be switched on alone. The zero
// value is a cloud as documented. In JSON, false, 0, "0s" and "" are off.
type Quirks struct {
	// Seed selects what varies from server to server.
	Seed uint64 `json:"seed,omitempty"`
	// ReadLag is how late GET and LIST show creates, changes and deletes of servers
	// and networks, which take effect at once. The lag of each server is between half
	// of ReadLag and all of it.
	ReadLag Duration `json:"readLag,omitempty"`
	// ReplicaLag makes every second GET or LIST lag by this time. The others are up
	// to date.
	ReplicaLag Duration `json:"replicaLag,omitempty"`
	// NormalizeNames shows names in lower case and trimmed, and compares them so.
	NormalizeNames bool `json:"normalizeNames,omitempty"`
	// DomainNames shows names of servers, networks and snapshots with the domain of the cloud.
	DomainNames bool `json:"domainNames,omitempty"`
	// CutNames is the maximum number of characters of these names in answers.
	CutNames int `json:"cutNames,omitempty"`
	// DecomposedNames shows these names in the Unicode normal form D.
	DecomposedNames bool `json:"decomposedNames,omitempty"`
	// CutLabels is the maximum number of characters of values of labels in answers.
	CutLabels int `json:"cutLabels,omitempty"`
	// DropLabels shows servers without labels.
	DropLabels bool `json:"dropLabels,omitempty"`
	// KeysInProgress answers 409 to a create while another one with the same
	// Idempotency-Key is processed, which a fault can hold.
	KeysInProgress bool `json:"keysInProgress,omitempty"`
	// NumericIDs gives new servers and networks a number above 2^53 as ID, which JSON
	// bodies have as a number.
	NumericIDs bool `json:"numericIDs,omitempty"`
	// ReusesIDs gives new servers, networks and snapshots the lowest number that no other
	// one has as ID. An ID is free as soon as a deletion takes effect, before its answer.
	ReusesIDs bool `json:"reusesIDs,omitempty"`
	// ExtraFields adds unknown fields to JSON objects. Some differ from known fields
	// only in case and have values without sense.
	ExtraFields bool `json:"extraFields,omitempty"`
	// WrongTypes gives optional fields of servers another type. Servers that no client
	// has labelled have a list of labels. The core profile shows these fields, too.
	WrongTypes bool `json:"wrongTypes,omitempty"`
	// WrongLabels shows the labels of every server as a list.
	WrongLabels bool `json:"wrongLabels,omitempty"`
	// LowerCaseStates shows states in lower case.
	LowerCaseStates bool `json:"lowerCaseStates,omitempty"`
	// ContentType is the content type of JSON bodies: text/json,
	// application/octet-stream, or none for no header.
	ContentType string `json:"contentType,omitempty"`
	// Plain404 is the body of answers with status 404: empty, or json, html or text
	// without a code.
	Plain404 string `json:"plain404,omitempty"`
	// NoCodes removes the codes from problem documents.
	NoCodes bool `json:"noCodes,omitempty"`
	// Capabilities is the answer to GET /capabilities: the status 400, 401, 403, 405,
	// 500 or 501, html for status 200 with a page, or empty for {}.
	Capabilities string `json:"capabilities,omitempty"`
	// ListCap is the maximum number of servers that a listing shows on all its pages:
	// the oldest ones.
	ListCap int `json:"listCap,omitempty"`
	// LongHost shows a host of 254 characters. The core profile shows it, too.
	LongHost bool `json:"longHost,omitempty"`
	// ReplayResets resets a connection that had a call before, after a POST has taken
	// effect. Go's HTTP client sends a POST with an Idempotency-Key again then.
	ReplayResets bool `json:"replayResets,omitempty"`
	// IgnorePatch answers 200 to a PATCH that is not applied: PatchUnchanged or
	// PatchEcho.
	IgnorePatch string `json:"ignorePatch,omitempty"`
	// StuckBuilding is a name or glob: new servers of these names stay BUILDING.
	StuckBuilding string `json:"stuckBuilding,omitempty"`
	// RetryAfterDate answers 429 to each tenth call. Retry-After is a date, of a clock
	// that is ahead by this time, and there is no header Date.
	RetryAfterDate Duration `json:"retryAfterDate,omitempty"`
	// HugeListing adds this many made-up servers to each listing, all on one page.
	HugeListing int `json:"hugeListing,omitempty"`
	// GzipBomb answers a listing with a small gzip body of empty objects that has this
	// many bytes when it is decompressed.
	GzipBomb int64 `json:"gzipBomb,omitempty"`
	// ExistingOnCreate answers 200 with the oldest server of the name to a create
	// whose name is in use.
	ExistingOnCreate bool `json:"existingOnCreate,omitempty"`
}

// ParseQuirks reads the form of the flag --quirks: names and name=value, separated
// by commas. It returns an error for unknown quirks and values.
func ParseQuirks(text string) (Quirks, error) {
	var q Quirks
	for item := range strings.SplitSeq(text, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" && !given {
			continue
		}
		k, err := quirkNamed(name)
		if err != nil {
			return Quirks{}, err
		}
		if value == "" && given {
			return Quirks{}, fmt.Errorf("quirk %s: the value is missing", name)
		}
		if err := k.set(&q, value); err != nil {
			return Quirks{}, fmt.Errorf("quirk %s: %w", name, err)
		}
	}
	if err := q.validate(); err != nil {
		return Quirks{}, err
	}
	return q, nil
}

// String returns the quirks that are on in the form of the flag --quirks.
func (q Quirks) String() string {
	var on []string
	for _, k := range quirkKinds {
		switch value, is := k.value(q); {
		case is && value == "":
			on = append(on, k.name)
		case is:
			on = append(on, k.name+"="+value)
		}
	}
	return strings.Join(on, ",")
}

// UnmarshalJSON changes the quirks that are in data and keeps the others.
func (q *Quirks) UnmarshalJSON(data []byte) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		return fmt.Errorf("quirks are an object: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, err := quirkNamed(name); err != nil {
			return err
		}
	}
	type plain Quirks
	next := plain(*q)
	if err := json.Unmarshal(data, &next); err != nil {
		return fmt.Errorf("quirks: %w", err)
	}
	*q = Quirks(next)
	return nil
}

func (q *Quirks) validate() error {
	if min(q.ReadLag, q.ReplicaLag, q.RetryAfterDate) < 0 {
		return fmt.Errorf("quirks readLag, replicaLag and retryAfterDate must not be negative")
	}
	if min(q.ListCap, q.HugeListing, q.CutNames, q.CutLabels) < 0 || q.GzipBomb < 0 {
		return fmt.Errorf("quirks listCap, hugeListing, gzipBomb, cutNames and cutLabels must not be negative")
	}
	for _, k := range quirkKinds {
		value, on := k.value(*q)
		if on && len(k.choices) > 0 && !slices.Contains(k.choices, value) {
			return fmt.Errorf("quirk %s: %q is not one of %s", k.name, value, strings.Join(k.choices, ", "))
		}
	}
	return nil
}

// keep is how long former versions of servers and networks are needed.
func (q *Quirks) keep() time.Duration { return time.Duration(max(q.ReadLag, q.ReplicaLag)) }
