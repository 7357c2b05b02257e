package mockcloud

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// keyRecord is the record of an Idempotency-Key. A keyRecord in the state is
// replaced and never changed.
type keyRecord struct {
	// Key is the collection, a slash, and the key that the client sent.
	Key string `json:"key"`
	// Hash is the hash of the canonical body.
	Hash string `json:"hash"`
	// ID is the ID of the server or network that was created.
	ID     string          `json:"id"`
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
	At     time.Time       `json:"at"`
	// GoneAt is the time when the server or network was deleted. The key is kept for
	// KeyRetention after it.
	GoneAt time.Time `json:"goneAt,omitzero"`
}

// keyedAnswer is the answer to a create, a change or a deletion.
type keyedAnswer struct {
	status int
	// body is nil for an answer without one.
	body any
	// operation is the id of the operation that makes the change, if there is one.
	operation string
}

func (a keyedAnswer) write(w http.ResponseWriter) error {
	if a.operation != "" {
		w.Header().Set("Location", "/operations/"+a.operation)
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		return nil
	}
	return writeJSON(w, a.status, a.body)
}

// maxKey is the maximum length of an Idempotency-Key in bytes.
const maxKey = 255

// keys has the Idempotency-Keys of calls.
type keys struct {
	core  *core
	views *views
	// inProgress are the routes and keys of the creates that are processed, for the quirk
	// keysInProgress.
	inProgress sync.Map
}

// of returns the key of a request, and nil if there is none or the capability
// is off.
func (k *keys) of(r *request, collection string, body []byte) (*keyRecord, error) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || !k.core.has(Idempotency) {
		return nil, nil //nolint:nilnil // a create without a key is valid
	}
	if len(key) > maxKey {
		return nil, invalid("Idempotency-Key is longer than %d bytes", maxKey)
	}
	hash, err := canonicalHash(body)
	if err != nil {
		return nil, err
	}
	return &keyRecord{Key: collection + "/" + key, Hash: hash}, nil
}

// begin records that a call is processed, until end is called. It reports false if another call
// with the same Idempotency-Key is processed; see Quirks.KeysInProgress.
func (k *keys) begin(r *request, to route) (end func(), ok bool) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || !k.core.quirks.Load().KeysInProgress {
		return func() {}, true
	}
	key = to.template + " " + key
	if _, processed := k.inProgress.LoadOrStore(key, true); processed {
		return nil, false
	}
	return func() { k.inProgress.Delete(key) }, true
}

// keyInProgress answers a call whose Idempotency-Key is in progress.
func keyInProgress(http.ResponseWriter, *request) error {
	return problem(http.StatusConflict, CodeKeyInProgress, "another request with this Idempotency-Key is in progress")
}

// canonicalHash returns the same hash for bodies that differ only in white space, in the
// order of fields and in userData.
func canonicalHash(body []byte) (string, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", invalid("body: %v", err)
	}
	if fields, ok := value.(map[string]any); ok {
		delete(fields, "userData")
	}
	canonical, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encoding canonical body: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// replay returns the response of the first create with this key, if there was one.
// The caller holds core.mu.
func (k *keys) replay(key *keyRecord) (keyedAnswer, bool, error) {
	if key == nil {
		return keyedAnswer{}, false, nil
	}
	if open := k.core.st.creating(key.Key); open != nil {
		if open.Key.Hash != key.Hash {
			return keyedAnswer{}, true, problem(http.StatusUnprocessableEntity, CodeKeyReused,
				"this Idempotency-Key was used with another body")
		}
		return open.answer(), true, nil
	}
	known := k.core.st.keys[key.Key]
	if known == nil {
		return keyedAnswer{}, false, nil
	}
	if known.Hash != key.Hash {
		return keyedAnswer{}, true, problem(http.StatusUnprocessableEntity, CodeKeyReused,
			"this Idempotency-Key was used with another body")
	}
	collection, _, _ := strings.Cut(known.Key, "/")
	r, n := k.core.st.servers[known.ID], k.core.st.networks[known.ID]
	reverted := r != nil && collection == "reverts" && !r.CreatedAt.After(known.At)
	switch { // another one may have the ID of one that is gone
	case r != nil && r.Key == known.Key, reverted:
		return keyedAnswer{status: known.Status, body: k.views.represent(r, k.core.now())}, true, nil
	case n != nil && collection == "networks" && known.GoneAt.IsZero():
		return keyedAnswer{status: known.Status, body: k.core.shownNetwork(n)}, true, nil
	}
	return keyedAnswer{status: known.Status, body: known.Body}, true, nil
}

// record sets the result of the create. The key must not be in the state yet.
func (k *keyRecord) record(id string, answer keyedAnswer, now time.Time) {
	k.ID, k.Status, k.At = id, answer.status, now
	k.Body = encoded(bucketKeys, k.Key, answer.body).Value
}

func (k *keyRecord) goneAt(at time.Time) *keyRecord {
	next := *k
	next.GoneAt = at
	return &next
}

// keyOf returns the key as the client sent it.
func keyOf(recorded string) string {
	_, key, _ := strings.Cut(recorded, "/")
	return key
}
