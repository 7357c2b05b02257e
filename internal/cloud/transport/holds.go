package transport

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// RefusalHolds is how long refused credentials are not tried again, so that many
	// calls are no reason for a cloud to lock the account. It doubles with each refusal of
	// the same credentials, up to MaxRefusalHolds.
	RefusalHolds    = 30 * time.Second
	MaxRefusalHolds = 15 * time.Minute
	// maxHolds bounds the credentials of one Cloud whose holds are kept.
	maxHolds = 8
)

// Holds keeps, beyond the life of a client, what a cloud asked clients with the
// same credentials to wait for: the end of a Retry-After, and the time until which
// refused credentials are not tried again. It is safe for concurrent use. A nil Holds
// keeps nothing.
type Holds struct {
	// salt makes fingerprints useless to whoever sees them.
	salt [sha256.Size]byte

	mu     sync.Mutex
	clouds map[string][]*Held
}

// Held is what clients with the same endpoint and credentials share.
type Held struct {
	Requests Hold
	Login    Login

	fingerprint [sha256.Size]byte
}

func newHeld() *Held { return &Held{Login: Login{turn: make(chan struct{}, 1)}} }

// NewHolds returns Holds that keep nothing yet.
func NewHolds() *Holds {
	h := &Holds{clouds: map[string][]*Held{}}
	_, _ = rand.Read(h.salt[:]) // never fails
	return h
}

// Forget drops what is kept for a Cloud that is gone.
func (h *Holds) Forget(cloudName string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clouds, cloudName)
}

// Format covers every verb of fmt: what is held quotes answers of clouds.
func (h *Holds) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("holds")) }

// Of returns what is held for a Cloud with this endpoint and these credentials. Of more
// than eight per Cloud it drops those that were not asked for the longest.
func (h *Holds) Of(cloudName, endpoint string, credentials ...string) *Held {
	if h == nil {
		return newHeld()
	}
	fingerprint := h.fingerprint(endpoint, credentials)
	h.mu.Lock()
	defer h.mu.Unlock()
	var found *Held
	var others []*Held
	for _, known := range h.clouds[cloudName] {
		if known.fingerprint == fingerprint {
			found = known
		} else {
			others = append(others, known)
		}
	}
	if found == nil {
		found = newHeld()
		found.fingerprint = fingerprint
	}
	others = append(others, found)
	h.clouds[cloudName] = others[max(0, len(others)-maxHolds):]
	return found
}

func (h *Holds) fingerprint(endpoint string, credentials []string) [sha256.Size]byte {
	mac := hmac.New(sha256.New, h.salt[:])
	for _, text := range append([]string{endpoint}, credentials...) {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(text), text)
	}
	return [sha256.Size]byte(mac.Sum(nil))
}

// Login is what clients with the same credentials share about logging in.
type Login struct {
	// turn is held by the one call that logs in; the others wait for it.
	turn chan struct{}

	mu sync.Mutex
	// refusal is the answer to refused credentials. It holds until refusedUntil, and the
	// next one for nextHold.
	refusal      *cloud.Error
	refusedUntil time.Time
	nextHold     time.Duration
}

// Begin waits until no other call logs in. It returns the error of ctx if that ends
// before. The caller calls end unless there is an error.
func (l *Login) Begin(ctx context.Context) (end func(), err error) {
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Refused returns why no login is tried now, nil if one may be.
func (l *Login) Refused() *cloud.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refusal == nil || !time.Now().Before(l.refusedUntil) {
		return nil
	}
	refusal := *l.refusal
	return &refusal
}

// Refuse begins a hold with the answer to refused credentials.
func (l *Login) Refuse(refusal *cloud.Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hold := max(RefusalHolds, l.nextHold)
	l.refusal, l.refusedUntil, l.nextHold = refusal, time.Now().Add(hold), min(2*hold, MaxRefusalHolds)
}

// Accept ends the hold.
func (l *Login) Accept() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal, l.nextHold = nil, 0
}
