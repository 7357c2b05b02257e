package cloud

import (
	"errors"
	"fmt"
	"time"
)

// Kind says how a call ended when it did not succeed. Callers decide by Kind,
// never by the text.
type Kind string

const (
	// NotFound: the cloud answered, and what was asked for does not exist.
	NotFound Kind = "NotFound"
	// Prohibited: the name may not be used.
	Prohibited Kind = "Prohibited"
	// Taken: the name is in use.
	Taken Kind = "Taken"
	// KeyReused: the idempotency key belongs to a create with another body.
	KeyReused Kind = "KeyReused"
	// Quota: the cloud has no room left for this tenant.
	Quota Kind = "Quota"
	// Rejected: the cloud understood the request and refuses it for good.
	Rejected Kind = "Rejected"
	// Conflict: the thing is in a state that does not allow the change now.
	Conflict Kind = "Conflict"
	// Unauthorized: the credentials are missing, wrong or expired.
	Unauthorized Kind = "Unauthorized"
	// Untrusted: the endpoint's certificate could not be verified.
	Untrusted Kind = "Untrusted"
	// Throttled: nothing was done because there are too many calls; try after RetryAfter.
	Throttled Kind = "Throttled"
	// Unavailable: the cloud could not be reached or cannot serve; nothing is
	// known to have been done.
	Unavailable Kind = "Unavailable"
	// Unreadable: an answer came that cannot be understood.
	Unreadable Kind = "Unreadable"
	// Unsupported: this cloud lacks the capability; the call was not sent.
	Unsupported Kind = "Unsupported"
)

// Error is how every call of a Client fails. Its text holds no secret and
// nothing that changes from call to call (no request id, time or address).
type Error struct {
	Kind Kind
	// Op is what was being done, for people: `create server "web-1"`.
	Op string
	// Code is the cloud's own stable word for the failure, or empty.
	Code string
	// Detail is the cloud's or the transport's reason, bounded and redacted.
	Detail string
	// Status is the HTTP status, 0 where there was no answer.
	Status int
	// Uncertain tells that the request may have taken effect all the same: it
	// was sent, it changes something, and no trustworthy answer came back.
	Uncertain bool
	// RetryAfter is how long the cloud asked to be left alone; 0 if it did not.
	RetryAfter time.Duration
	// Err is the cause, where there is one.
	Err error
}

func (e *Error) Error() string {
	switch {
	case e.Detail != "":
		return fmt.Sprintf("%s: %s", e.Op, e.Detail)
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.Op, e.Err)
	default:
		return fmt.Sprintf("%s: %s", e.Op, e.Kind)
	}
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the Kind of the first *Error in err's chain, empty if none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// Is tells whether err is a cloud error of one of these kinds.
func Is(err error, kinds ...Kind) bool {
	kind := KindOf(err)
	for _, k := range kinds {
		if kind != "" && kind == k {
			return true
		}
	}
	return false
}

// Uncertain tells whether the request behind err may have taken effect.
func Uncertain(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Uncertain
}

// RetryAfter is how long the cloud asked to be left alone, 0 if it did not.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Away tells whether err says something of the cloud as a whole rather than of
// the one request: it cannot be reached, trusted, logged in to or asked now.
func Away(err error) bool {
	return Is(err, Unavailable, Unauthorized, Untrusted, Throttled)
}
