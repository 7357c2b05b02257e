package rest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxHolds bounds the credentials of one Cloud whose holds are kept.
const maxHolds = 8

// Holds keeps, beyond the life of a client, what a cloud asked clients with the
// same credentials to wait for: the end of a Retry-After, and the time until which
// a refused password is not tried again. It is safe for concurrent use. A nil Holds
// keeps nothing.
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
	login       login
}

// NewHolds returns Holds that keep nothing yet.
func NewHolds() *Holds {
	h := &Holds{clouds: map[string][]*held{}}
	_, _ = rand.Read(h.salt[:]) // never fails
	return h
}

// Forget drops what is kept for a Cloud that is gone.
func (h *Holds) Forget(cloud string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clouds, cloud)
}

// Format covers every verb of fmt: what is held quotes answers of clouds.
func (h *Holds) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("holds")) }

// of returns what is held for the credentials of a Config. Of more than maxHolds
// it drops those that were not asked for the longest.
func (h *Holds) of(cfg Config) *held {
	if h == nil {
		return &held{login: newLogin()}
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
		found = &held{fingerprint: fingerprint, login: newLogin()}
	}
	others = append(others, found)
	h.clouds[cfg.Name] = others[max(0, len(others)-maxHolds):]
	return found
}

func (h *Holds) fingerprint(cfg Config) [sha256.Size]byte {
	mac := hmac.New(sha256.New, h.salt[:])
	text, err := json.Marshal([]string{cfg.Endpoint, cfg.Credentials.Token, cfg.Credentials.Username, cfg.Credentials.Password})
	if err != nil {
		panic(fmt.Sprintf("rest: encoding strings: %v", err)) // cannot happen
	}
	_, _ = mac.Write(text)
	return [sha256.Size]byte(mac.Sum(nil))
}

// login is what clients with the same password share about logging in.
type login struct {
	// turn is held by the one call that logs in; the others wait for it.
	turn chan struct{}

	mu sync.Mutex
	// refusal is the answer to refused credentials. It holds until refusedUntil.
	refusal      *failure
	refusedUntil time.Time
}

func newLogin() login { return login{turn: make(chan struct{}, 1)} }

// held returns why no login is tried now, nil if it may be.
func (l *login) held() *failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusal != nil && time.Now().Before(l.refusedUntil) {
		return l.refusal
	}
	return nil
}

// accepted ends the hold; refused begins one.
func (l *login) accepted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal = nil
}

func (l *login) refused(refusal *failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal, l.refusedUntil = refusal, time.Now().Add(refusalHolds)
}
