package mockcloud

import (
	"net/http"
	"time"
)

// records stores changes of servers, with their entries in the ledger and their events.
type records struct {
	core   *core
	events *broker
	views  *views
}

func (rs *records) lookup(id string) (*record, error) {
	rs.core.mu.RLock()
	defer rs.core.mu.RUnlock()
	if r := rs.core.st.servers[id]; r != nil {
		return r, nil
	}
	return nil, notFound("server", id)
}

// changeable returns the server of this id, or why it cannot be changed now: it does not exist,
// is being built or deleted, or has an operation in progress. The caller holds core.mu.
func (rs *records) changeable(id string) (*record, error) {
	r := rs.core.st.servers[id]
	switch {
	case r == nil:
		return nil, notFound("server", id)
	case r.State == StateBuilding || r.State == StateDeleting:
		return nil, problem(http.StatusConflict, CodeInvalidState, "the server is %s", r.State)
	}
	return r, rs.core.st.idle(id)
}

// insert stores a new server. The caller holds core.mu.
func (rs *records) insert(r *record, status int, key *keyRecord, how LedgerEntry) (keyedAnswer, error) {
	r.countBoots(nil)
	how.ServerID, how.Name, how.Labels, how.Key = r.ID, r.Name, r.Labels, keyOf(r.Key)
	entry, change := rs.core.entry(how)
	changes := []Change{change, encoded(bucketServers, r.ID, r)}
	answer := keyedAnswer{status: status, body: rs.views.represent(r, rs.core.now())}
	if key != nil {
		key.record(r.ID, answer, rs.core.now())
		changes = append(changes, encoded(bucketKeys, key.Key, key))
	}
	if err := rs.core.store.Write(changes...); err != nil {
		return keyedAnswer{}, err
	}
	if key != nil {
		rs.core.st.keys[key.Key] = key
	}
	rs.core.st.ledger = append(rs.core.st.ledger, entry)
	rs.remember(r.ID)
	rs.core.st.put(r)
	rs.core.st.schedule(r)
	rs.core.updateNextDue()
	rs.events.publish(rs.core.now(), EventCreated, r)
	return answer, nil
}

// replace stores a changed server and publishes an event. The caller holds core.mu.
func (rs *records) replace(next *record, changes ...Change) error {
	next.countBoots(rs.core.st.servers[next.ID])
	changes = append(changes, encoded(bucketServers, next.ID, next))
	if err := rs.core.store.Write(changes...); err != nil {
		return err
	}
	rs.remember(next.ID)
	rs.core.st.put(next)
	rs.core.st.schedule(next)
	rs.core.updateNextDue()
	rs.events.publish(rs.core.now(), EventUpdated, next)
	return nil
}

// remove deletes a server at the given time. It completes the ledger entry with
// the fields of the server. The caller holds core.mu.
func (rs *records) remove(r *record, at time.Time, how LedgerEntry) error {
	how.ServerID, how.Name, how.Labels, how.Key = r.ID, r.Name, r.Labels, keyOf(r.Key)
	how.KeptDisks = keptDisks(r.Disks)
	entry, change := rs.core.entry(how)
	changes := []Change{change, {Bucket: bucketServers, Key: r.ID}}
	var key *keyRecord
	if known := rs.core.st.keys[r.Key]; known != nil {
		key = known.goneAt(at)
		changes = append(changes, encoded(bucketKeys, key.Key, key))
	}
	if err := rs.core.store.Write(changes...); err != nil {
		return err
	}
	if key != nil {
		rs.core.st.keys[key.Key] = key
		rs.core.st.due.add(due{at: at.Add(rs.core.retention), what: dueForget, id: key.Key})
	}
	rs.core.st.ledger = append(rs.core.st.ledger, entry)
	rs.remember(r.ID)
	rs.core.st.forget(r.ID)
	rs.core.updateNextDue()
	rs.events.publish(at, EventDeleted, r)
	return nil
}

// remember records the present version of a server before it changes, for reads
// that lag. The caller holds core.mu.
func (rs *records) remember(id string) {
	rs.core.st.pastServers.add(rs.core.now(), rs.core.quirks.Load().keep(), id, rs.core.st.servers[id])
}
