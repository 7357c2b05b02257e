package mockcloud

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// The values of Fault.Answer.
const (
	// Before is before the effect: the handler does not run.
	Before = "before"
	// After is after the effect was stored, such as 500 although it was created.
	After = "after"
)

// The values of Fault.Corrupt.
const (
	// CorruptNulls replaces every value in the response with null.
	CorruptNulls = "nulls"
	// CorruptTypes replaces every value in the response with one of another type.
	CorruptTypes = "wrongTypes"
)

// Match selects the calls that a fault affects. All conditions must hold; the zero
// value matches every call.
type Match struct {
	// Method is an HTTP method.
	Method string `json:"method,omitempty"`
	// Path is a glob that matches the path as sent or the template of the route: *
	// matches any characters but a slash, ** any characters. /servers/* and
	// /servers/{id} match the same calls.
	Path string `json:"path,omitempty"`
	// PathRegexp is a regular expression that matches part of the path as sent or of
	// the template of the route.
	PathRegexp string `json:"pathRegexp,omitempty"`
	// Query is a regular expression that matches part of the raw query.
	Query string `json:"query,omitempty"`
	// Nth is the number of the first matching call, from 1, for which the fault can
	// fire.
	Nth int `json:"nth,omitempty"`
	// Count is the number of times that the fault fires. 0 means once if Nth is set,
	// and no limit otherwise.
	Count int `json:"count,omitempty"`
	// Probability is the probability to fire for a matching call; 0 means 1.
	Probability float64 `json:"probability,omitempty"`
	// Seed makes the random numbers repeatable.
	Seed uint64 `json:"seed,omitempty"`
}

// Fault makes calls fail. Its fields can be combined. If two faults fire for one
// call, the delays add up, and the first fault that has a response decides it.
type Fault struct {
	// ID is generated if empty.
	ID    string `json:"id,omitempty"`
	Match Match  `json:"match"`

	// Answer is Before (the default) or After: whether Delay, Hold, Reset, Redirect
	// and Status apply before or after the effect.
	Answer string `json:"answer,omitempty"`
	// Delay delays the call.
	Delay Duration `json:"delay,omitempty"`
	// Hold holds the call until ReleaseFault, DropFault or the removal of the fault.
	// The call has its effect even if the client has disconnected.
	Hold bool `json:"hold,omitempty"`
	// Reset resets the connection (RST) instead of a response.
	Reset bool `json:"reset,omitempty"`
	// Status is the status of the response, which has a problem body unless Body is
	// set.
	Status int `json:"status,omitempty"`
	// Redirect is the Location of the response, whose status is 307 unless Status is
	// set.
	Redirect string `json:"redirect,omitempty"`
	// RetryAfter is the value of the header of that name. It is not checked.
	RetryAfter string `json:"retryAfter,omitempty"`
	// Headers are added to the response of the handler or the fault.
	Headers map[string]string `json:"headers,omitempty"`
	// Body replaces the body of the response. Without Status, the handler runs and
	// its status is kept. The same holds for EmptyBody, HugeBytes, Depth and Repeat.
	Body string `json:"body,omitempty"`
	// EmptyBody removes the body.
	EmptyBody bool `json:"emptyBody,omitempty"`
	// HugeBytes replaces the body with JSON that has a string of this many bytes.
	HugeBytes int64 `json:"hugeBytes,omitempty"`
	// Depth replaces the body with arrays nested this deep.
	Depth int `json:"depth,omitempty"`
	// Repeat replaces the body with one that repeats a part.
	Repeat *Repetition `json:"repeat,omitempty"`
	// Gzip compresses the body, whatever the client accepts.
	Gzip bool `json:"gzip,omitempty"`
	// Corrupt is CorruptNulls or CorruptTypes.
	Corrupt string `json:"corrupt,omitempty"`
	// Truncate truncates the body.
	Truncate *Truncation `json:"truncate,omitempty"`
	// ContentType replaces the header of that name.
	ContentType string `json:"contentType,omitempty"`
	// BytesPerSecond limits the rate at which the body is sent.
	BytesPerSecond int `json:"bytesPerSecond,omitempty"`
	// List changes the response to GET /servers.
	List *ListFault `json:"list,omitempty"`
}

// Truncation truncates a body.
type Truncation struct {
	// Keep is the number of bytes that are sent; a negative number counts from the
	// end.
	Keep int `json:"keep"`
	// Clean sends the truncated length as Content-Length. Otherwise the full length
	// is sent and the connection is closed.
	Clean bool `json:"clean,omitempty"`
}

// Repetition is a body that repeats a part. In all texts, {call} stands for the number
// of bodies that the fault has sent; in Part, {n} stands for the number of the part.
// Both begin with 1.
type Repetition struct {
	// Start is sent first.
	Start string `json:"start,omitempty"`
	// Part is sent again and again.
	Part string `json:"part"`
	// Times is how often Part is sent. 0 is without end.
	Times int `json:"times,omitempty"`
	// End is sent last.
	End string `json:"end,omitempty"`
}

// ListFault changes the response to GET /servers.
type ListFault struct {
	// HideYounger hides servers created less than this ago.
	HideYounger Duration `json:"hideYounger,omitempty"`
	// Drop hides this fraction of the servers, 0-1, the same ones on each call.
	Drop float64 `json:"drop,omitempty"`
	// Seed selects the servers that Drop hides.
	Seed uint64 `json:"seed,omitempty"`
	// HideIDs hides these servers.
	HideIDs []string `json:"hideIds,omitempty"`
	// Empty hides all servers.
	Empty bool `json:"empty,omitempty"`
	// Duplicate starts each page with the last server of the previous page. A list of
	// one page repeats its first server at the end.
	Duplicate bool `json:"duplicate,omitempty"`
	// Skip omits the first server of each page but the first. A list of one page omits
	// the server in the middle.
	Skip bool `json:"skip,omitempty"`
	// Loop returns the marker of the request, so that there is always a next page.
	Loop bool `json:"loop,omitempty"`
}

// FaultStatus is a fault with its counters.
type FaultStatus struct {
	Fault
	// Matched is the number of calls that matched, Fired the number of those for which
	// the fault fired.
	Matched int `json:"matched"`
	Fired   int `json:"fired"`
	// Held is the number of calls that it holds now.
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
	case f.Repeat != nil && (f.Repeat.Part == "" || f.Repeat.Times < 0):
		return fmt.Errorf("repeat.part must not be empty, and repeat.times must not be negative")
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

// replaces reports whether the fault replaces the whole response of the handler.
func (f *Fault) replaces() bool { return f.Reset || f.Status != 0 || f.Redirect != "" }

// replacesBody reports whether the fault replaces the body of the response.
func (f *Fault) replacesBody() bool {
	return f.Body != "" || f.EmptyBody || f.HugeBytes > 0 || f.Depth > 0 || f.Repeat != nil
}

// changesResponse reports whether the fault changes the response.
func (f *Fault) changesResponse() bool {
	return f.replacesBody() || f.RetryAfter != "" || len(f.Headers) > 0 || f.Corrupt != "" ||
		f.Truncate != nil || f.ContentType != "" || f.BytesPerSecond > 0 || f.Gzip
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
