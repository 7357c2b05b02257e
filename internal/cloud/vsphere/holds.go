package vsphere

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
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
	// vCenter does not lock the account.
	refusalHolds = 30 * time.Second
)

// Holds keeps, beyond the life of a client, what clients with the same credentials
// wait for: the end of a Retry-After, and the time until which refused credentials are
// not tried again. It is safe for concurrent use. A nil Holds keeps nothing.
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

	mu sync.Mutex
	// refusal is the answer to refused credentials. It holds until refusedUntil.
	refusal      *cloud.Error
	refusedUntil time.Time
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
	var found *held
	var others []*held
	for _, known := range h.clouds[cfg.Name] {
		if known.fingerprint == fingerprint {
			found = known
		} else {
			others = append(others, known)
		}
	}
	if found == nil {
		found = &held{fingerprint: fingerprint}
	}
	others = append(others, found)
	h.clouds[cfg.Name] = others[max(0, len(others)-maxHolds):]
	return found
}

func (h *Holds) fingerprint(cfg Config) [sha256.Size]byte {
	mac := hmac.New(sha256.New, h.salt[:])
	c := cfg.Credentials
	for _, text := range []string{cfg.Endpoint, c.Username, c.Password, c.Token, string(c.Certificate), string(c.Key)} {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(text), text)
	}
	return [sha256.Size]byte(mac.Sum(nil))
}

// refused returns why the credentials are not tried now, nil if they may be.
func (h *held) refused() *cloud.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusal == nil || !time.Now().Before(h.refusedUntil) {
		return nil
	}
	refusal := *h.refusal
	return &refusal
}

// refuse begins a hold, and accept ends it.
func (h *held) refuse(refusal *cloud.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusal, h.refusedUntil = refusal, time.Now().Add(refusalHolds)
}

func (h *held) accept() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.refusal = nil
}
