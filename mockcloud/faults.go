package mockcloud

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// The values of Fault.Answer.
const (
	// Before the effect: the handler does not run.
	Before = "before"
	// After the effect was committed: "500 but created".
	After = "after"
)

// The values of Fault.Corrupt.
const (
	// CorruptNulls makes every value inside the answer null.
	CorruptNulls = "nulls"
	// CorruptTypes gives every value inside the answer another type.
	CorruptTypes = "wrongTypes"
)

// Match says which calls a fault is for. All conditions must hold; the zero
// value matches every call.
type Match struct {
	// Method is an HTTP method.
	Method string `json:"method,omitempty"`
	// Path is a glob over the path as sent or the route's template: * is any
	// run without a slash, ** any run. /servers/* and /servers/{id} match the same.
	Path string `json:"path,omitempty"`
	// PathRegexp is a regular expression that finds something in the path as
	// sent or in the route's template.
	PathRegexp string `json:"pathRegexp,omitempty"`
	// Query is a regular expression that finds something in the raw query.
	Query string `json:"query,omitempty"`
	// Nth is the first matching call, from 1, at which the fault can fire.
	Nth int `json:"nth,omitempty"`
	// Count is how many times the fault fires. 0 stands for once where Nth is
	// set and for any number otherwise.
	Count int `json:"count,omitempty"`
	// Probability is the chance of firing at a matching call; 0 stands for 1.
	Probability float64 `json:"probability,omitempty"`
	// Seed makes the draws repeatable.
	Seed uint64 `json:"seed,omitempty"`
}

// Fault is one way of misbehaving. Effects can be combined; where two faults
// fire on one call, the delays add up and the first that answers wins.
type Fault struct {
	// ID is chosen by the cloud if empty.
	ID    string `json:"id,omitempty"`
	Match Match  `json:"match"`

	// Answer tells whether Delay, Hold, Reset, Redirect and Status come Before
	// (the default) or After the effect took place.
	Answer string `json:"answer,omitempty"`
	// Delay waits this long.
	Delay Duration `json:"delay,omitempty"`
	// Hold keeps the call until ReleaseFault, DropFault or the fault's removal.
	// The effect takes place then, even if the client is gone.
	Hold bool `json:"hold,omitempty"`
	// Reset cuts the connection (RST) in place of an answer.
	Reset bool `json:"reset,omitempty"`
	// Status answers with this instead, and a problem body unless one is given.
	Status int `json:"status,omitempty"`
	// Redirect answers with this Location, and status 307 unless one is given.
	Redirect string `json:"redirect,omitempty"`
	// RetryAfter is put into the header of that name, unchecked.
	RetryAfter string `json:"retryAfter,omitempty"`
	// Headers are added to the answer, whoever made it.
	Headers map[string]string `json:"headers,omitempty"`
	// Body replaces the answer's body. Without Status the handler runs and its
	// status stays. So do EmptyBody, HugeBytes and Depth.
	Body string `json:"body,omitempty"`
	// EmptyBody leaves the body out.
	EmptyBody bool `json:"emptyBody,omitempty"`
	// HugeBytes streams a JSON body with a string of so many bytes.
	HugeBytes int64 `json:"hugeBytes,omitempty"`
	// Depth sends arrays nested so deeply.
	Depth int `json:"depth,omitempty"`
	// Corrupt is CorruptNulls or CorruptTypes.
	Corrupt string `json:"corrupt,omitempty"`
	// Truncate cuts the body short.
	Truncate *Truncation `json:"truncate,omitempty"`
	// ContentType replaces the header of that name.
	ContentType string `json:"contentType,omitempty"`
	// BytesPerSecond slows the body down.
	BytesPerSecond int `json:"bytesPerSecond,omitempty"`
	// List distorts what GET /servers tells.
	List *ListFault `json:"list,omitempty"`
}

// Truncation cuts a body short.
type Truncation struct {
	// Keep is how many bytes are sent; negative counts from the end.
	Keep int `json:"keep"`
	// Clean announces the short length. Otherwise the full length is announced
	// and the connection cut.
	Clean bool `json:"clean,omitempty"`
}

// ListFault distorts GET /servers, and nothing else.
type ListFault struct {
	// HideYounger hides servers created less than this ago.
	HideYounger Duration `json:"hideYounger,omitempty"`
	// Drop hides this fraction of the servers, 0-1, the same ones on each call.
	Drop float64 `json:"drop,omitempty"`
	// Seed picks which ones Drop hides.
	Seed uint64 `json:"seed,omitempty"`
	// HideIDs hides these servers.
	HideIDs []string `json:"hideIds,omitempty"`
	// Empty hides all servers.
	Empty bool `json:"empty,omitempty"`
	// Duplicate begins each page with the last server of the page before; a
	// list of one page repeats its first server at the end.
	Duplicate bool `json:"duplicate,omitempty"`
	// Skip leaves out the first server of each page but the first; a list of
	// one page leaves out its middle one.
	Skip bool `json:"skip,omitempty"`
	// Loop returns the marker that came in, so that there is always a next page.
	Loop bool `json:"loop,omitempty"`
}

// FaultStatus is a fault and what it did so far.
type FaultStatus struct {
	Fault
	// Matched counts calls that matched, Fired those of them that it hit.
	Matched int `json:"matched"`
	Fired   int `json:"fired"`
	// Held is how many calls it holds now.
	Held int `json:"held"`
}

func (f *Fault) validate() error {
	share := func(p float64) bool { return p >= 0 && p <= 1 }
	switch {
	case !slices.Contains([]string{"", Before, After}, f.Answer):
		return fmt.Errorf("answer is %q or %q", Before, After)
	case f.Status != 0 && (f.Status < 200 || f.Status > 999):
		return fmt.Errorf("status is 200-999")
	case min(f.Match.Nth, f.Match.Count) < 0:
		return fmt.Errorf("nth and count must not be negative")
	case !share(f.Match.Probability):
		return fmt.Errorf("probability is 0-1")
	case f.Delay < 0, f.HugeBytes < 0, min(f.Depth, f.BytesPerSecond) < 0:
		return fmt.Errorf("delay, hugeBytes, depth and bytesPerSecond must not be negative")
	case !slices.Contains([]string{"", CorruptNulls, CorruptTypes}, f.Corrupt):
		return fmt.Errorf("corrupt is %q or %q", CorruptNulls, CorruptTypes)
	case f.List != nil && !share(f.List.Drop):
		return fmt.Errorf("list.drop is 0-1")
	}
	if _, err := url.Parse(f.Redirect); err != nil {
		return fmt.Errorf("redirect: %w", err)
	}
	return nil
}

// replaces tells whether the fault takes the place of the handler's answer,
// status and all.
func (f *Fault) replaces() bool { return f.Reset || f.Status != 0 || f.Redirect != "" }

// replacesBody tells whether the fault has a body of its own.
func (f *Fault) replacesBody() bool {
	return f.Body != "" || f.EmptyBody || f.HugeBytes > 0 || f.Depth > 0
}

// bends tells whether the fault changes an answer on its way out.
func (f *Fault) bends() bool {
	return f.replacesBody() || f.RetryAfter != "" || len(f.Headers) > 0 || f.Corrupt != "" ||
		f.Truncate != nil || f.ContentType != "" || f.BytesPerSecond > 0
}

func (f *Fault) status() int {
	switch {
	case f.Status != 0:
		return f.Status
	case f.Redirect != "":
		return http.StatusTemporaryRedirect
	}
	return http.StatusOK
}
