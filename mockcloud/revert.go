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
	// RootDisk is nil in a snapshot of an earlier release.
	RootDisk *RootDisk `json:"rootDisk,omitempty"`
}

// frozenAs returns the server with what it is now kept for a new snapshot. It is off after a
// revert to a snapshot without memory.
func frozenAs(r *record, made Snapshot) *record {
	next := r.clone()
	next.Frozen = maps.Clone(r.Frozen)
	if next.Frozen == nil {
		next.Frozen = map[string]frozen{}
	}
	was := frozen{CPU: r.CPU, Memory: r.Memory, PowerState: PowerOff, Disks: r.Disks, RootDisk: r.RootDisk}
	if made.Memory {
		was.PowerState = r.PowerState
	}
	next.Frozen[made.ID] = was
	return next
}

// handleRevert handles POST /servers/{id}/snapshots/{snapshotId}/revert.
func (sn *snapshots) handleRevert(w http.ResponseWriter, r *request) error {
	about, err := json.Marshal(map[string]string{"server": r.vars[0], "revert": r.vars[1]})
	if err != nil {
		return err
	}
	key, err := sn.keys.of(r, "reverts", about)
	if err != nil {
		return err
	}
	answer, err := sn.revert(r.vars[0], r.vars[1], key, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

func (sn *snapshots) revert(server, snapshot string, key *keyRecord, requestID string) (keyedAnswer, error) {
	sn.core.mu.Lock()
	defer sn.core.mu.Unlock()
	if answer, found, err := sn.keys.replay(key); found || err != nil {
		return answer, err
	}
	old, err := sn.records.changeable(server)
	switch {
	case err != nil:
		return keyedAnswer{}, err
	case !slices.ContainsFunc(old.Snapshots, func(s Snapshot) bool { return s.ID == snapshot }):
		return keyedAnswer{}, notFound("snapshot", snapshot)
	}
	if sn.operations.operates() {
		return sn.operations.start(operation{ServerID: server, Revert: snapshot, Key: key, RequestID: requestID})
	}
	return sn.revertNow(old, snapshot, key, requestID)
}

// revertNow makes a server what it was when a snapshot was taken. The caller holds core.mu.
func (sn *snapshots) revertNow(r *record, snapshot string, key *keyRecord, requestID string) (keyedAnswer, error) {
	was, ok := r.Frozen[snapshot]
	if !ok {
		return keyedAnswer{}, notFound("snapshot", snapshot)
	}
	next := r.clone()
	next.CPU, next.Memory, next.PowerState, next.Disks = was.CPU, was.Memory, was.PowerState, reverted(was.Disks, r.Disks)
	if was.RootDisk != nil {
		next.RootDisk = was.RootDisk
	}
	next.State, next.OffAt, next.UpdatedAt = stateFor(was.PowerState), time.Time{}, sn.core.now()
	answer := keyedAnswer{status: http.StatusOK, body: sn.views.represent(next, sn.core.now())}
	entry, change := sn.core.entry(LedgerEntry{Op: OpRevert, ServerID: r.ID, SnapshotID: snapshot, Name: r.Name, Labels: r.Labels, RequestID: requestID})
	changes := []Change{change}
	if key != nil {
		key.record(r.ID, answer, sn.core.now())
		changes = append(changes, encoded(bucketKeys, key.Key, key))
	}
	if err := sn.records.replace(next, changes...); err != nil {
		return keyedAnswer{}, err
	}
	if key != nil {
		sn.core.st.keys[key.Key] = key
	}
	sn.core.st.ledger = append(sn.core.st.ledger, entry)
	return answer, nil
}
