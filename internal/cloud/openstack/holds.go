package openstack

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// maxHolds bounds the credentials of one Cloud whose holds are kept.
	maxHolds = 8
	// refusalHolds is how long refused credentials are not tried again, so that the
	// cloud does not lock the account.
	refusalHolds = 30 * time.Second
)

// Holds keeps, beyond the life of a client, what clients with the same credentials wait
// for: the end of a Retry-After, and the time until which refused credentials are not
// tried again. It is safe for concurrent use. A nil Holds keeps nothing.
type Holds struct {
	// salt makes fingerprints useless to whoever sees them.
	salt [sha256.Size]byte

	mu     sync.Mutex
	clouds map[string][]*held
}

// held is what clients with the same endpoint and credentials share.
type held struct {
	fingerprint [sha256.Size]byte
	requests    transport.Hold
	login       refusal
}

// NewHolds returns Holds that keep nothing yet.
func NewHolds() *Holds {
	h := &Holds{clouds: map[string][]*held{}}
	_, _ = rand.Read(h.salt[:]) // never fails
	return h
}

// Forget drops what is kept for a Cloud that is gone.
func (h *Holds) Forget(name string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clouds, name)
}

// Format covers every verb of fmt: what is held quotes answers of clouds.
func (h *Holds) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("holds")) }

// of returns what is held for the credentials of a Config. Of more than maxHolds it
// drops those that were not asked for the longest.
func (h *Holds) of(cfg Config) *held {
	if h == nil {
		return &held{}
	}
	fingerprint := h.fingerprint(cfg)
	h.mu.Lock()
	defer h.mu.Unlock()
	found := &held{fingerprint: fingerprint}
	var all []*held
	for _, known := range h.clouds[cfg.Name] {
		if known.fingerprint == fingerprint {
			found = known
		} else {
			all = append(all, known)
		}
	}
	all = append(all, found)
	h.clouds[cfg.Name] = all[max(0, len(all)-maxHolds):]
	return found
}

func (h *Holds) fingerprint(cfg Config) [sha256.Size]byte {
	c := cfg.Credentials
	text, err := json.Marshal([]string{
		cfg.Endpoint, cfg.Project, cfg.Domain, c.ApplicationCredentialID, c.ApplicationCredentialSecret, c.Username, c.Password,
	})
	if err != nil {
		panic(fmt.Sprintf("openstack: encoding strings: %v", err)) // cannot happen
	}
	mac := hmac.New(sha256.New, h.salt[:])
	_, _ = mac.Write(text)
	return [sha256.Size]byte(mac.Sum(nil))
}

// refusal is the answer to refused credentials, for as long as it holds.
type refusal struct {
	mu    sync.Mutex
	err   *cloud.Error
	until time.Time
}

// held returns why no login is tried now, nil if one may be.
func (r *refusal) held() *cloud.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil && time.Now().Before(r.until) {
		return r.err
	}
	return nil
}

// set begins the hold, or ends it if err is nil.
func (r *refusal) set(err *cloud.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err, r.until = err, time.Now().Add(refusalHolds)
}
