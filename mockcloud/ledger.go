package mockcloud

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Op is what a ledger entry says was done.
type Op string

const (
	// OpCreate: a server came to be.
	OpCreate Op = "create"
	// OpDelete: a deletion was accepted. The server is gone with it, unless
	// the deletion takes its time; then OpGone follows.
	OpDelete Op = "delete"
	// OpGone: a deletion that took its time is complete.
	OpGone Op = "gone"
	// OpUpdate: a change was accepted; Fields tells of what.
	OpUpdate Op = "update"
	// OpCreateNetwork and OpDeleteNetwork are of networks, not servers.
	OpCreateNetwork Op = "createNetwork"
	OpDeleteNetwork Op = "deleteNetwork"
)

// Who brought a ledger entry about.
const (
	// ByClient: a call of the REST API.
	ByClient = "client"
	// ByAdmin: a test, behind the client's back.
	ByAdmin = "admin"
)

// LedgerEntry records one effect. What is in the ledger happened, whatever the
// client was told.
type LedgerEntry struct {
	// Seq counts from 1 without gaps.
	Seq  int       `json:"seq"`
	Time time.Time `json:"time"`
	Op   Op        `json:"op"`
	// By is ByClient or ByAdmin.
	By        string            `json:"by"`
	ServerID  string            `json:"serverId,omitempty"`
	NetworkID string            `json:"networkId,omitempty"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels,omitempty"`
	// Key is the Idempotency-Key of the create, on later entries as well.
	Key string `json:"key,omitempty"`
	// RequestID is the X-Request-Id of the call.
	RequestID string `json:"requestId,omitempty"`
	// Fields are what an update changed.
	Fields []string `json:"fields,omitempty"`
	// Final is set on a delete that took no time: no gone follows.
	Final bool `json:"final,omitempty"`
}

// entry completes e and returns it with the change that stores it. The caller
// holds mu and appends the entry once it is stored.
func (c *Cloud) entry(e LedgerEntry) (LedgerEntry, Change) {
	e.Seq = len(c.st.ledger) + 1
	if e.Time.IsZero() {
		e.Time = c.now()
	}
	if e.By == "" {
		e.By = ByClient
	}
	return e, encoded(bucketLedger, fmt.Sprintf("%012d", e.Seq), e)
}

// Ledger returns every effect so far, oldest first.
func (c *Cloud) Ledger() []LedgerEntry {
	c.advance()
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Clone(c.st.ledger)
}

// MostAlive tells, for each value of a label, how many servers that carried it
// from their create on were alive at the same time at worst. It answers
// whether an owner ever had two.
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

// handleLedger answers GET /ledger?since=SEQ with the entries after SEQ.
func (c *Cloud) handleLedger(w http.ResponseWriter, r *request) error {
	since := 0
	if text := r.URL.Query().Get("since"); text != "" {
		parsed, err := strconv.Atoi(text)
		if err != nil || parsed < 0 {
			return invalid("since is a sequence number")
		}
		since = parsed
	}
	entries := c.Ledger()
	entries = entries[min(since, len(entries)):]
	if entries == nil {
		entries = []LedgerEntry{}
	}
	return writeJSON(w, http.StatusOK, entries)
}
