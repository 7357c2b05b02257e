package reconciler

import (
	"errors"
	"fmt"
	"time"
)

// WaitError is the outcome of a reconcile whose effect takes time, or that
// cannot go on yet. The object is reconciled again after After; 0 means that an
// event enqueues it.
type WaitError struct {
	After   time.Duration
	Reason  string
	Message string
	// Quiet leaves the status as it is: what is awaited is expected before
	// anybody would read the status.
	Quiet bool
}

func (e *WaitError) Error() string { return e.Message }

// BlockedError is the outcome of a reconcile that can do nothing until On
// changes, which enqueues the object.
type BlockedError struct {
	// On names the object that must change, as Kind/name.
	On      string
	Reason  string
	Message string
	// RequeueAfter reconciles the object also after this time, where something
	// ends by itself; 0 for never.
	RequeueAfter time.Duration
}

func (e *BlockedError) Error() string { return e.Message }

// StalledError is the outcome of a reconcile that can do nothing until a person
// acts. The object is reconciled again when its spec changes, and after Recheck
// if that is not 0.
type StalledError struct {
	Reason  string
	Cause   error
	Recheck time.Duration
}

func (e *StalledError) Error() string { return e.Cause.Error() }
func (e *StalledError) Unwrap() error { return e.Cause }

// ErrUnknown is the outcome of a reconcile that could observe nothing: the
// status stays as it is, and a later event enqueues the object.
var ErrUnknown = errors.New("nothing is known yet")

// Wait returns a WaitError.
func Wait(after time.Duration, reason, format string, args ...any) error {
	return &WaitError{After: after, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Blocked returns a BlockedError.
func Blocked(on, reason, format string, args ...any) error {
	return &BlockedError{On: on, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Stalled returns a StalledError that is reconciled again after recheck; 0 for
// only when the spec changes.
func Stalled(reason string, recheck time.Duration, cause error) error {
	return &StalledError{Reason: reason, Cause: cause, Recheck: recheck}
}

// IsStalled reports whether an outcome is a StalledError.
func IsStalled(outcome error) bool {
	_, stalled := errors.AsType[*StalledError](outcome)
	return stalled
}

// Reason returns the reason that an outcome carries, empty for any other error.
func Reason(outcome error) string {
	if e, ok := errors.AsType[*WaitError](outcome); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*BlockedError](outcome); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*StalledError](outcome); ok {
		return e.Reason
	}
	return ""
}
