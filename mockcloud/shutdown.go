package mockcloud

import "time"

// The values of patchServer.PowerOffMode.
const (
	PowerOffHard = "Hard"
	PowerOffSoft = "Soft"
)

// soft reports whether the guest is to be asked to shut down.
func (p patchServer) soft() bool { return p.PowerOffMode != nil && *p.PowerOffMode == PowerOffSoft }

func (p patchServer) checkPowerState() error {
	switch {
	case p.PowerState != nil && *p.PowerState != PowerOn && *p.PowerState != PowerOff && !p.suspends():
		return invalid("powerState is On, Off or Suspended")
	case p.PowerOffMode == nil:
		return nil
	case *p.PowerOffMode != PowerOffHard && *p.PowerOffMode != PowerOffSoft:
		return invalid("powerOffMode is Hard or Soft")
	case p.PowerState == nil || *p.PowerState != PowerOff:
		return invalid("powerOffMode needs the powerState Off")
	}
	return nil
}

// askToShutDown asks the guest of r, and reports whether that changed r. The caller holds core.mu.
func (s *servers) askToShutDown(r *record) bool {
	takes := time.Duration(s.core.behave.ShutdownTime)
	switch {
	case r.State != StateActive || !r.OffAt.IsZero() || matches(s.core.behave.IgnoreShutdown, r.Name):
		return false
	case takes == 0:
		r.PowerState, r.State = PowerOff, StateStopped
	default:
		r.OffAt = s.core.now().Add(takes)
	}
	return true
}

// shutDown returns the record once its guest has shut down.
func (r *record) shutDown(at time.Time) *record {
	next := r.clone()
	next.OffAt, next.UpdatedAt = time.Time{}, at
	if next.State == StateActive {
		next.PowerState, next.State = PowerOff, StateStopped
	}
	return next
}

// matches reports whether name is that of a pattern, a name or glob; an empty one matches none.
func matches(pattern, name string) bool {
	return pattern != "" && parseGlobs([]string{pattern}).match(name)
}
