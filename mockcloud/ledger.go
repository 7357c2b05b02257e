package mockcloud

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Op is the kind of effect of a ledger entry.
type Op string

const (
	// OpCreate: a server was created.
	OpCreate Op = "create"
	// OpDelete: a deletion was accepted. If it is asynchronous, OpGone follows.
	OpDelete Op = "delete"
	// OpGone: an asynchronous deletion is complete.
	OpGone Op = "gone"
	// OpUpdate: a server was changed; Fields has the names of the fields.
	OpUpdate Op = "update"
	// OpCreateNetwork: a network was created. OpDeleteNetwork: one was deleted.
	OpCreateNetwork Op = "createNetwork"
	OpDeleteNetwork Op = "deleteNetwork"
	// OpCreateSnapshot: a snapshot of a server was created. OpDeleteSnapshot: one was
	// deleted. Those that go with their server have no entry.
	OpCreateSnapshot Op = "createSnapshot"
	OpDeleteSnapshot Op = "deleteSnapshot"
	// OpRevert: a server was reverted to a snapshot.
	OpRevert Op = "revert"
)

// The values of LedgerEntry.By.
const (
	// ByClient: a call of the REST API.
	ByClient = "client"
	// ByAdmin: a method of Cloud or an admin endpoint.
	ByAdmin = "admin"
)

// LedgerEntry records one effect. The ledger has all effects, including those
// whose response the client did not receive.
type LedgerEntry struct {
	// Seq is the number of the entry, from 1 without gaps.
	Seq  int       `json:"seq"`
	Time time.Time `json:"time"`
	Op   Op        `json:"op"`
	// By is ByClient or ByAdmin.
	By        string `json:"by"`
	ServerID  string `json:"serverId,omitempty"`
	NetworkID string `json:"networkId,omitempty"`
	// SnapshotID is that of a snapshot of the server.
	SnapshotID string `json:"snapshotId,omitempty"`

	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
	// Key is the Idempotency-Key of the create. Later entries of the server have it,
	// too.
	Key string `json:"key,omitempty"`
	// RequestID is the X-Request-Id of the call.
	RequestID string `json:"requestId,omitempty"`
	// Fields are the fields that an update changed.
	Fields []string `json:"fields,omitempty"`
	// KeptDisks are the names of the disks that were kept when the server was deleted, in the last entry of the deletion.
	KeptDisks []string `json:"keptDisks,omitempty"`
	// Final is set on a delete that is not asynchronous: OpGone does not follow.
	Final bool `json:"final,omitempty"`
}

// entry completes e and returns it with the change that stores it. The caller
// holds mu and appends the entry after it has stored the change.
func (c *core) entry(e LedgerEntry) (LedgerEntry, Change) {
	e.Seq = len(c.st.ledger) + 1
	if e.Time.IsZero() {
		e.Time = c.now()
	}
	if e.By == "" {
		e.By = ByClient
	}
	return e, encoded(bucketLedger, fmt.Sprintf("%012d", e.Seq), e)
}

// ledger has the effects of a cloud.
type ledger struct {
	core        *core
	transitions *transitions
}

func (l *ledger) all() []LedgerEntry {
	l.transitions.advance()
	l.core.mu.RLock()
	defer l.core.mu.RUnlock()
	return slices.Clone(l.core.st.ledger)
}

// MostAlive returns, for each value of a label, the maximum number of servers
// that were created with it and existed at the same time. More than 1 means that
// an owner had two servers.
func MostAlive(ledger []LedgerEntry, label string) map[string]int {
	alive, most := map[string]int{}, map[string]int{}
	owner := map[string]string{}
	for _, e := range ledger {
		switch {
		case e.Op == OpCreate:
			value, labelled := e.Labels[label]
			if !labelled {
				continue
			}
			owner[e.ServerID] = value
			alive[value]++
			most[value] = max(most[value], alive[value])
		case e.Op == OpGone, e.Op == OpDelete && e.Final:
			if value, known := owner[e.ServerID]; known {
				alive[value]--
				delete(owner, e.ServerID)
			}
		}
	}
	return most
}

// handle handles GET /ledger?since=SEQ with the entries after SEQ.
func (l *ledger) handle(w http.ResponseWriter, r *request) error {
	since := 0
	if text := r.URL.Query().Get("since"); text != "" {
		parsed, err := strconv.Atoi(text)
		if err != nil || parsed < 0 {
			return invalid("since is a sequence number")
		}
		since = parsed
	}
	entries := l.all()
	entries = entries[min(since, len(entries)):]
	if entries == nil {
		entries = []LedgerEntry{}
	}
	return writeJSON(w, http.StatusOK, entries)
}
