package reconciler

import (
	"errors"
	"fmt"
	"time"
)

// WaitError: a step was taken, or cannot be taken yet; look again after After
// (0: something else wakes the object).
type WaitError struct {
	After   time.Duration
	Reason  string
	Message string
	// Quiet leaves the status as it is for now: what is awaited is expected
	// before anybody would read it.
	Quiet bool
}

func (e *WaitError) Error() string { return e.Message }

// BlockedError: nothing can be done until On changes, and that wakes the object.
// Where something ends by itself meanwhile, it is looked at again after Again.
type BlockedError struct {
	On      string
	Reason  string
	Message string
	Again   time.Duration
}

func (e *BlockedError) Error() string { return e.Message }

// StalledError: nothing will change until somebody acts. Looked at again when
// the spec changes, and after Recheck where that is not 0.
type StalledError struct {
	Reason  string
	Cause   error
	Recheck time.Duration
}

func (e *StalledError) Error() string { return e.Cause.Error() }
func (e *StalledError) Unwrap() error { return e.Cause }

// ErrUnknown ends a pass that could learn nothing: the status stays as it is,
// and whatever brings news wakes the object.
var ErrUnknown = errors.New("nothing is known yet")

// Wait has the object looked at again after a time.
func Wait(after time.Duration, reason, format string, args ...any) error {
	return &WaitError{After: after, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Blocked waits for something to wake the object.
func Blocked(on, reason, format string, args ...any) error {
	return &BlockedError{On: on, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Stalled gives up until the spec changes.
func Stalled(reason string, cause error) error {
	return &StalledError{Reason: reason, Cause: cause}
}

// Reason is the reason that a verdict carries, empty for any other error.
func Reason(verdict error) string {
	if e, ok := errors.AsType[*WaitError](verdict); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*BlockedError](verdict); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*StalledError](verdict); ok {
		return e.Reason
	}
	return ""
}
