package mockcloud

import (
	"net/http"
	"slices"
	"time"
)

// Snapshot is a snapshot of a server. It goes with its server.
type Snapshot struct {
	// ID is a version 4 UUID.
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Memory      bool      `json:"memory"`
	Quiesced    bool      `json:"quiesced"`
	SizeBytes   int64     `json:"sizeBytes"`
	CreatedAt   time.Time `json:"createdAt"`
}

type createSnapshot struct {
	Name           string `json:"name"`
	Description    string `json:"description"`
	Memory         bool   `json:"memory"`
	QuiesceSeconds int    `json:"quiesceSeconds"`
}

// diskSnapshot is the size of a snapshot without memory.
const diskSnapshot = 64 << 20

// snapshots are the snapshots of servers.
type snapshots struct {
	core       *core
	views      *views
	reads      *reads
	keys       *keys
	operations *operations
	records    *records
}

// handleList handles GET /servers/{id}/snapshots: all of them, oldest first.
func (sn *snapshots) handleList(w http.ResponseWriter, r *request) error {
	server, err := sn.reads.server(r.vars[0])
	if err != nil {
		return err
	}
	shown, q := make([]Snapshot, 0, len(server.Snapshots)), sn.core.quirks.Load()
	for _, s := range server.Snapshots {
		shown = append(shown, q.shapeSnapshot(s))
	}
	return writeJSON(w, http.StatusOK, map[string]any{"snapshots": shown})
}

// handleCreate handles POST /servers/{id}/snapshots.
func (sn *snapshots) handleCreate(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body createSnapshot
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	if err := checkName(body.Name); err != nil {
		return err
	}
	if body.QuiesceSeconds < 0 {
		return invalid("quiesceSeconds is %d, and must not be negative", body.QuiesceSeconds)
	}
	key, err := sn.keys.of(r, "snapshots", data)
	if err != nil {
		return err
	}
	answer, err := sn.create(r.vars[0], body, key, r.id)
	if err != nil {
		return err
	}
	return answer.write(w)
}

func (sn *snapshots) create(server string, body createSnapshot, key *keyRecord, requestID string) (keyedAnswer, error) {
	sn.core.mu.Lock()
	defer sn.core.mu.Unlock()
	if answer, found, err := sn.keys.replay(key); found || err != nil {
		return answer, err
	}
	old, err := sn.records.changeable(server)
	if err != nil {
		return keyedAnswer{}, err
	}
	now := sn.core.now()
	made := Snapshot{
		ID: sn.core.newID(sn.core.st.hasSnapshot), Name: body.Name, Description: body.Description, Memory: body.Memory,
		Quiesced: body.QuiesceSeconds > 0, SizeBytes: diskSnapshot, CreatedAt: now,
	}
	if made.Memory {
		made.SizeBytes += int64(old.Memory) << 30
	}
	answer, how := keyedAnswer{status: http.StatusCreated, body: sn.core.quirks.Load().shapeSnapshot(made)}, LedgerEntry{Op: OpCreateSnapshot, RequestID: requestID}
	var changes []Change
	if key != nil {
		how.Key = keyOf(key.Key)
		key.record(made.ID, answer, now)
		changes = append(changes, encoded(bucketKeys, key.Key, key))
	}
	err = sn.replace(frozenAs(old, made), append(slices.Clone(old.Snapshots), made), made, how, changes...)
	if err == nil && key != nil {
		sn.core.st.keys[key.Key] = key
	}
	return answer, err
}

// handleDelete handles DELETE /servers/{id}/snapshots/{snapshotId}.
func (sn *snapshots) handleDelete(w http.ResponseWriter, r *request) error {
	sn.core.mu.Lock()
	defer sn.core.mu.Unlock()
	old := sn.core.st.servers[r.vars[0]]
	if old == nil {
		return notFound("server", r.vars[0])
	}
	at := slices.IndexFunc(old.Snapshots, func(s Snapshot) bool { return s.ID == r.vars[1] })
	if at < 0 {
		return notFound("snapshot", r.vars[1])
	}
	kept := slices.Delete(slices.Clone(old.Snapshots), at, at+1)
	if err := sn.replace(old, kept, old.Snapshots[at], LedgerEntry{Op: OpDeleteSnapshot, RequestID: r.id}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// replace stores the snapshots of a server, and records the change of one of
// them. The caller holds core.mu.
func (sn *snapshots) replace(old *record, all []Snapshot, changed Snapshot, how LedgerEntry, changes ...Change) error {
	how.ServerID, how.SnapshotID, how.Name = old.ID, changed.ID, changed.Name
	entry, change := sn.core.entry(how)
	next := old.clone()
	next.Snapshots = all
	if err := sn.records.replace(next, append(changes, change)...); err != nil {
		return err
	}
	sn.core.st.ledger = append(sn.core.st.ledger, entry)
	return nil
}

func (sn *snapshots) all(server string) []Snapshot {
	sn.core.mu.RLock()
	defer sn.core.mu.RUnlock()
	if r := sn.core.st.servers[server]; r != nil {
		return slices.Clone(r.Snapshots)
	}
	return nil
}
