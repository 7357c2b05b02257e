package cloud

import (
	"errors"
	"fmt"
	"time"
)

// Kind is the way in which a call failed. Callers decide by Kind, never by the
// text.
type Kind string

const (
	// NotFound: the cloud answered, with its own code, that the object does not exist.
	NotFound Kind = "NotFound"
	// NotFoundUnproven: an answer that may not be the cloud's own, such as the 404 of
	// a gateway, says that the object does not exist. Only a complete listing that
	// lacks the object proves it.
	NotFoundUnproven Kind = "NotFoundUnproven"
	// Displaced: the object exists in a place where this client does not change it, such as
	// outside of the part of the cloud that belongs to the operator. Detail says where it is.
	Displaced Kind = "Displaced"
	// Prohibited: the name may not be used.
	Prohibited Kind = "Prohibited"
	// Taken: the name is in use.
	Taken Kind = "Taken"
	// KeyReused: the idempotency key belongs to a create with another body.
	KeyReused Kind = "KeyReused"
	// Quota: the cloud has no room left for this tenant.
	Quota Kind = "Quota"
	// NoHost: no host has room for the server where its zone and its anti-affinity allow it.
	NoHost Kind = "NoHost"
	// Rejected: the cloud understood the request and refuses it for good.
	Rejected Kind = "Rejected"
	// Forbidden: the cloud refuses the call for lack of a right, or of payment. Somebody may
	// grant it: the same call may succeed later.
	Forbidden Kind = "Forbidden"
	// Conflict: something else that exists forbids the change, such as servers that are
	// attached to a network.
	Conflict Kind = "Conflict"
	// Failed: a change that was accepted failed later, for a reason of the cloud's own.
	Failed Kind = "Failed"
	// Busy: the state of the object forbids the call now, mostly because the cloud works
	// on it. It says nothing about the cloud as a whole.
	Busy Kind = "Busy"
	// NeedsStop: the change is possible only while the server is stopped.
	NeedsStop Kind = "NeedsStop"
	// GuestUnavailable: the guest cannot be asked, mostly because no agent runs in it.
	GuestUnavailable Kind = "GuestUnavailable"
	// Misconfigured: the settings of the Cloud name something that the cloud does not
	// have, such as a datastore. Only its administrator can correct that.
	Misconfigured Kind = "Misconfigured"
	// Unauthorized: the credentials are missing, wrong or expired.
	Unauthorized Kind = "Unauthorized"
	// Untrusted: the certificate of the cloud's endpoint could not be verified.
	Untrusted Kind = "Untrusted"
	// Throttled: nothing was done because there are too many calls; retry after RetryAfter.
	Throttled Kind = "Throttled"
	// Unavailable: the cloud could not be reached or cannot serve requests.
	Unavailable Kind = "Unavailable"
	// Unreadable: the cloud's answer cannot be understood.
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
	// Code is the cloud's own stable code for the failure, or empty.
	Code string
	// Detail is the reason, the cloud's or the operator's, bounded and redacted.
	Detail string
	// Uncertain is set when the request may have taken effect all the same: it
	// was sent, it changes something, and no trustworthy answer came back.
	Uncertain bool
	// RetryAfter is how long to wait before the next call; 0 if that is up to the caller.
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

// opOf returns what was being done, empty if err does not say so.
func opOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Op
	}
	return ""
}

// KindOf returns the Kind of the first *Error in err's chain, empty if none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// CodeOf returns the cloud's own code of err, empty if there is none.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Is reports whether err is a cloud error of one of these kinds.
func Is(err error, kinds ...Kind) bool {
	kind := KindOf(err)
	for _, k := range kinds {
		if kind != "" && kind == k {
			return true
		}
	}
	return false
}

// Uncertain reports whether the request behind err may have taken effect.
func Uncertain(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Uncertain
}

// RetryAfter returns how long to wait before the next call, 0 if that is up to
// the caller.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
