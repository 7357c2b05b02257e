package mockcloud

import "net/http"

// suspends reports whether the server is to be suspended.
func (p patchServer) suspends() bool { return p.PowerState != nil && *p.PowerState == PowerSuspended }

// checkSuspended returns why a server that is suspended cannot be changed so, or one that does
// not run be suspended. Its memory would be lost, or not match its size.
func (p patchServer) checkSuspended(r *record) error {
	powersOff := p.PowerState != nil && *p.PowerState == PowerOff
	switch {
	case r.State == StateSuspended && (powersOff || p.resizes(r)), r.State == StateStopped && p.suspends():
		return problem(http.StatusConflict, CodeInvalidState, "the server is %s", r.State)
	}
	return nil
}
