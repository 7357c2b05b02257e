package mockcloud

import (
	"maps"
	"net/http"
	"slices"
	"time"
)

// update applies a PATCH and returns the changed server, or the operation that
// applies it.
func (s *servers) update(id string, body patchServer, requestID string) (keyedAnswer, error) {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	r, err := s.records.changeable(id)
	if err != nil {
		return keyedAnswer{}, err
	}
	if err := body.checkGrowth(r); err != nil {
		return keyedAnswer{}, err
	}
	if err := body.checkSuspended(r); err != nil {
		return keyedAnswer{}, err
	}
	if err := s.core.admitReach(r, body); err != nil {
		return keyedAnswer{}, err
	}
	if s.core.behave.ResizeStopped && r.State != StateStopped && body.resizes(r) {
		return keyedAnswer{}, problem(http.StatusConflict, CodeNeedsStop, "the size can be changed only while the server is stopped")
	}
	if body.soft() && r.State == StateActive && matches(s.core.behave.NoGuestAgent, r.Name) {
		return keyedAnswer{}, problem(http.StatusConflict, CodeGuestUnavailable, "no agent runs in the guest that could shut it down")
	}
	if s.operations.operates() {
		return s.operations.start(operation{ServerID: id, Patch: &body, RequestID: requestID})
	}
	updated, err := s.updateNow(r, body, requestID)
	if err != nil {
		return keyedAnswer{}, err
	}
	return keyedAnswer{status: http.StatusOK, body: s.views.represent(updated, s.core.now())}, nil
}

// updateNow changes a server and returns it. The caller holds core.mu.
func (s *servers) updateNow(r *record, body patchServer, requestID string) (*record, error) {
	next := r.clone()
	fields := append(body.applyTo(next), s.core.st.applyReach(next, body)...)
	if body.soft() && s.askToShutDown(next) {
		fields = append(fields, "powerOffMode")
	}
	if err := checkLabels(next.Labels); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return r, nil
	}
	switch s.core.quirks.Load().IgnorePatch {
	case PatchUnchanged:
		return r, nil
	case PatchEcho:
		return next, nil
	}
	next.UpdatedAt = s.core.now()
	entry, change := s.core.entry(LedgerEntry{
		Op: OpUpdate, ServerID: r.ID, Name: next.Name, Labels: next.Labels,
		Key: keyOf(next.Key), RequestID: requestID, Fields: fields,
	})
	if err := s.records.replace(next, change); err != nil {
		return nil, err
	}
	s.core.st.ledger = append(s.core.st.ledger, entry)
	return next, nil
}

// resizes reports whether p changes the size of r.
func (p patchServer) resizes(r *record) bool {
	return p.CPU != nil && *p.CPU != r.CPU || p.Memory != nil && *p.Memory != r.Memory || p.resizesDisks(r) || p.changesRootDisk(r)
}

// applyTo changes r and returns the names of the changed fields.
func (p patchServer) applyTo(r *record) []string {
	var fields []string
	if p.CPU != nil && *p.CPU != r.CPU {
		r.CPU = *p.CPU
		fields = append(fields, "cpu")
	}
	if p.Memory != nil && *p.Memory != r.Memory {
		r.Memory = *p.Memory
		fields = append(fields, "memory")
	}
	if p.PowerState != nil && *p.PowerState != r.PowerState && !p.soft() {
		r.PowerState, r.OffAt = *p.PowerState, time.Time{}
		if r.State == StateActive || r.State == StateStopped || r.State == StateSuspended {
			r.State = stateFor(r.PowerState)
		}
		fields = append(fields, "powerState")
	}
	if disks := p.withDisks(r.Disks); !slices.Equal(disks, r.Disks) {
		r.Disks = disks
		fields = append(fields, "disks")
	}
	if p.changesRootDisk(r) {
		r.RootDisk = &RootDisk{Size: p.RootDisk.Size, Type: deref(r.RootDisk, RootDisk{}).Type}
		fields = append(fields, "rootDisk")
	}
	before := maps.Clone(r.Labels)
	for key, value := range p.Labels {
		if value == nil {
			delete(r.Labels, key)
			continue
		}
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		r.Labels[key] = *value
	}
	if !maps.Equal(before, r.Labels) {
		fields, r.Labelled = append(fields, "labels"), true
	}
	return fields
}
