package mockcloud

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// frozen is what a server was when a snapshot was taken.
type frozen struct {
	CPU        int    `json:"cpu"`
	Memory     int    `json:"memory"`
	PowerState string `json:"powerState"`
	Disks      []Disk `json:"disks,omitempty"`
}

// frozenAs returns the server with what it is now kept for a new snapshot. It is off after a
// revert to a snapshot without memory.
func frozenAs(r *record, made Snapshot) *record {
	next := r.clone()
	next.Frozen = maps.Clone(r.Frozen)
	if next.Frozen == nil {
		next.Frozen = map[string]frozen{}
	}
	was := frozen{CPU: r.CPU, Memory: r.Memory, PowerState: PowerOff, Disks: r.Disks}
	if made.Memory {
		was.PowerState = r.PowerState
	}
	next.Frozen[made.ID] = was
	return next
}

// handleRevert handles POST /servers/{id}/snapshots/{snapshotId}/revert.
func (c *Cloud) handleRevert(w http.ResponseWriter, r *request) error {
	about, err := json.Marshal(map[string]string{"server": r.vars[0], "revert": r.vars[1]})
	if err != nil {
		return err
	}
	key, err := c.keys.of(r, "reverts", about)
	if err != nil {
		return err
	}
	answer, err := c.revert(r.vars[0], r.vars[1], key, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

func (c *Cloud) revert(server, snapshot string, key *keyRecord, requestID string) (keyedAnswer, error) {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	if answer, found, err := c.keys.replay(key); found || err != nil {
		return answer, err
	}
	old, err := c.records.changeable(server)
	switch {
	case err != nil:
		return keyedAnswer{}, err
	case !slices.ContainsFunc(old.Snapshots, func(s Snapshot) bool { return s.ID == snapshot }):
		return keyedAnswer{}, notFound("snapshot", snapshot)
	}
	if c.operations.operates() {
		return c.operations.start(operation{ServerID: server, Revert: snapshot, Key: key, RequestID: requestID})
	}
	return c.revertNow(old, snapshot, key, requestID)
}

// revertNow makes a server what it was when a snapshot was taken. The caller holds mu.
func (c *Cloud) revertNow(r *record, snapshot string, key *keyRecord, requestID string) (keyedAnswer, error) {
	was, ok := r.Frozen[snapshot]
	if !ok {
		return keyedAnswer{}, notFound("snapshot", snapshot)
	}
	next := r.clone()
	next.CPU, next.Memory, next.PowerState, next.Disks = was.CPU, was.Memory, was.PowerState, was.Disks
	next.State, next.OffAt, next.UpdatedAt = stateFor(was.PowerState), time.Time{}, c.core.now()
	answer := keyedAnswer{status: http.StatusOK, body: c.views.represent(next, c.core.now())}
	entry, change := c.core.entry(LedgerEntry{Op: OpRevert, ServerID: r.ID, SnapshotID: snapshot, Name: r.Name, Labels: r.Labels, RequestID: requestID})
	changes := []Change{change}
	if key != nil {
		key.record(r.ID, answer, c.core.now())
		changes = append(changes, encoded(bucketKeys, key.Key, key))
	}
	if err := c.records.replace(next, changes...); err != nil {
		return keyedAnswer{}, err
	}
	if key != nil {
		c.core.st.keys[key.Key] = key
	}
	c.core.st.ledger = append(c.core.st.ledger, entry)
	return answer, nil
}
