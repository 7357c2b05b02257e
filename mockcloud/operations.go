package mockcloud

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

// operationRetention is how long an operation is known after it ended.
const operationRetention = 24 * time.Hour

// operation is a change of a server that takes effect when it ends. An operation in
// the state is replaced and never changed.
type operation struct {
	ID string `json:"id"`
	// ServerID is the server; empty for a create that has not ended.
	ServerID string `json:"serverId,omitempty"`
	// Create, Patch, Delete or Revert is what is to be done.
	Create *createServer `json:"create,omitempty"`
	Patch  *patchServer  `json:"patch,omitempty"`
	Delete bool          `json:"delete,omitempty"`
	// Revert is the ID of a snapshot.
	Revert string `json:"revert,omitempty"`
	// Key is that of the create or the revert, nil if there is none.
	Key       *keyRecord `json:"key,omitempty"`
	RequestID string     `json:"requestId"`
	// Fail is whether it is to fail.
	Fail   bool      `json:"fail,omitempty"`
	Began  time.Time `json:"began"`
	EndsAt time.Time `json:"endsAt"`
	Done   bool      `json:"done,omitempty"`
	Error  *Problem  `json:"error,omitempty"`
}

// due is when the operation ends or, once it has, when it is forgotten.
func (o *operation) due() due {
	at := o.EndsAt
	if o.Done {
		at = at.Add(operationRetention)
	}
	return due{at: at, what: dueOperation, id: o.ID}
}

func (o *operation) answer() keyedAnswer {
	return keyedAnswer{status: http.StatusAccepted, body: map[string]string{"operation": o.ID}, operation: o.ID}
}

// operations accepts changes of servers that take time.
type operations struct {
	core *core
}

// operates reports whether changes are answered with operations. The caller holds core.mu.
func (op *operations) operates() bool {
	return op.core.has(Operations) && op.core.behave.OperationTime > 0
}

// creating returns the open create or revert with a key, nil if there is none. The caller holds core.mu.
func (s *state) creating(key string) *operation {
	for _, o := range s.operations {
		if !o.Done && o.Key != nil && o.Key.Key == key {
			return o
		}
	}
	return nil
}

// idle returns an error if an operation about a server is open. The caller holds core.mu.
func (s *state) idle(id string) error {
	for _, o := range s.operations {
		if !o.Done && o.ServerID == id {
			return problem(http.StatusConflict, CodeInvalidState, "an operation of the server is in progress")
		}
	}
	return nil
}

// start accepts a change. The caller holds core.mu.
func (op *operations) start(o operation) (keyedAnswer, error) {
	name := ""
	if o.Create != nil {
		name = o.Create.Name
	} else if r := op.core.st.servers[o.ServerID]; r != nil {
		name = r.Name
	}
	o.ID, o.Began = uuid.NewString(), op.core.now()
	o.EndsAt = o.Began.Add(time.Duration(op.core.behave.OperationTime))
	o.Fail = matches(op.core.behave.FailOperations, name)
	if err := op.core.store.Write(encoded(bucketOperations, o.ID, &o)); err != nil {
		return keyedAnswer{}, err
	}
	op.core.st.operations[o.ID] = &o
	op.core.st.due.add(o.due())
	op.core.updateNextDue()
	return o.answer(), nil
}

// endOperation makes the change of an operation, or forgets one that ended long ago.
// The caller holds core.mu.
func (t *transitions) endOperation(id string, at time.Time) error {
	open := t.core.st.operations[id]
	if open == nil {
		return nil
	}
	if open.Done {
		delete(t.core.st.operations, id)
		return t.core.store.Write(Change{Bucket: bucketOperations, Key: id})
	}
	ended := *open
	ended.Done, ended.EndsAt = true, at
	if ended.Fail {
		ended.Error = problem(http.StatusForbidden, CodeQuotaExceeded, "there is no space left for the server")
	} else if err := t.perform(&ended); err != nil {
		cause, ok := errors.AsType[*Problem](err)
		if !ok {
			return fmt.Errorf("operation %s: %w", id, err)
		}
		ended.Error = cause
	}
	t.core.st.operations[id] = &ended
	t.core.st.due.add(ended.due())
	return t.core.store.Write(encoded(bucketOperations, id, &ended))
}

// endOperations ends all open operations now, as if their time had passed.
func (t *transitions) endOperations() error {
	t.core.mu.Lock()
	defer t.core.mu.Unlock()
	for id, o := range t.core.st.operations {
		if o.Done {
			continue
		}
		if err := t.endOperation(id, t.core.now()); err != nil {
			return err
		}
	}
	t.core.updateNextDue()
	return nil
}

// perform makes the change of an operation. The caller holds core.mu.
func (t *transitions) perform(o *operation) error {
	if o.Create != nil {
		id, err := t.performCreate(o)
		o.ServerID = id
		return err
	}
	r := t.core.st.servers[o.ServerID]
	if r == nil {
		return notFound("server", o.ServerID)
	}
	if o.Delete {
		return t.records.remove(r, t.core.now(), LedgerEntry{Op: OpDelete, By: ByClient, RequestID: o.RequestID, Final: true})
	}
	if o.Revert != "" {
		_, err := t.snapshots.revertNow(r, o.Revert, o.Key, o.RequestID)
		return err
	}
	_, err := t.servers.updateNow(r, *o.Patch, o.RequestID)
	return err
}

func (t *transitions) performCreate(o *operation) (string, error) {
	if err := t.core.st.admitAttachments(*o.Create); err != nil {
		return "", err
	}
	before := len(t.core.st.ledger)
	if _, err := t.servers.createNow(*o.Create, o.Key, o.RequestID); err != nil {
		return "", err
	}
	return t.core.st.ledger[before].ServerID, nil
}

// handleGet handles GET /operations/{id}.
func (op *operations) handleGet(w http.ResponseWriter, r *request) error {
	op.core.mu.RLock()
	o := op.core.st.operations[r.vars[0]]
	op.core.mu.RUnlock()
	if o == nil {
		return notFound("operation", r.vars[0])
	}
	body := map[string]any{"id": o.ID, "done": o.Done, "progress": o.progress(op.core.now())}
	if o.ServerID != "" {
		body["serverId"] = o.ServerID
	}
	if o.Error != nil {
		body["error"] = o.Error
	}
	return writeJSON(w, http.StatusOK, body)
}

// progress returns how much of the operation is done in percent.
func (o *operation) progress(now time.Time) int {
	if o.Done {
		return 100
	}
	return int(min(99, 100*now.Sub(o.Began)/o.EndsAt.Sub(o.Began)))
}

func (op *operations) forgetAll() error {
	op.core.mu.Lock()
	defer op.core.mu.Unlock()
	for id := range op.core.st.operations {
		if err := op.core.store.Write(Change{Bucket: bucketOperations, Key: id}); err != nil {
			return err
		}
		delete(op.core.st.operations, id)
	}
	return nil
}
