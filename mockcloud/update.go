package mockcloud

import (
	"maps"
	"net/http"
	"time"
)

// updateServer applies a PATCH and returns the changed server, or the operation that
// applies it.
func (c *Cloud) updateServer(id string, body patchServer, requestID string) (keyedAnswer, error) {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	r, err := c.records.changeable(id)
	if err != nil {
		return keyedAnswer{}, err
	}
	if err := body.checkGrowth(r); err != nil {
		return keyedAnswer{}, err
	}
	if err := body.checkSuspended(r); err != nil {
		return keyedAnswer{}, err
	}
	if c.core.behave.ResizeStopped && r.State != StateStopped && body.resizes(r) {
		return keyedAnswer{}, problem(http.StatusConflict, CodeNeedsStop, "the size can be changed only while the server is stopped")
	}
	if body.soft() && r.State == StateActive && matches(c.core.behave.NoGuestAgent, r.Name) {
		return keyedAnswer{}, problem(http.StatusConflict, CodeGuestUnavailable, "no agent runs in the guest that could shut it down")
	}
	if c.operations.operates() {
		return c.operations.start(operation{ServerID: id, Patch: &body, RequestID: requestID})
	}
	updated, err := c.updateNow(r, body, requestID)
	if err != nil {
		return keyedAnswer{}, err
	}
	return keyedAnswer{status: http.StatusOK, body: c.views.represent(updated, c.core.now())}, nil
}

// updateNow changes a server and returns it. The caller holds mu.
func (c *Cloud) updateNow(r *record, body patchServer, requestID string) (*record, error) {
	next := r.clone()
	fields := body.applyTo(next)
	if body.soft() && c.askToShutDown(next) {
		fields = append(fields, "powerOffMode")
	}
	if err := checkLabels(next.Labels); err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return r, nil
	}
	switch c.core.quirks.Load().IgnorePatch {
	case PatchUnchanged:
		return r, nil
	case PatchEcho:
		return next, nil
	}
	next.UpdatedAt = c.core.now()
	entry, change := c.core.entry(LedgerEntry{
		Op: OpUpdate, ServerID: r.ID, Name: next.Name, Labels: next.Labels,
		Key: keyOf(next.Key), RequestID: requestID, Fields: fields,
	})
	if err := c.records.replace(next, change); err != nil {
		return nil, err
	}
	c.core.st.ledger = append(c.core.st.ledger, entry)
	return next, nil
}

// resizes reports whether p changes the size of r.
func (p patchServer) resizes(r *record) bool {
	return p.CPU != nil && *p.CPU != r.CPU || p.Memory != nil && *p.Memory != r.Memory || p.changesDisks(r)
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
	if p.changesDisks(r) {
		r.Disks = withDisks(r.Disks, p.Disks)
		fields = append(fields, "disks")
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
