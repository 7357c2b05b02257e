package network

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// creates remembers, for each Network without a recorded id, when a create was
// last sent whose outcome is not known. Of what an earlier process did it knows
// nothing.
type creates struct {
	mu   sync.Mutex
	sent map[types.UID]time.Time
	// clear holds those of which nothing can come: their only create was refused.
	clear map[types.UID]struct{}
	// doomed is when a deletion was first seen here.
	doomed map[types.UID]time.Time
}

func newCreates() *creates {
	return &creates{sent: map[types.UID]time.Time{}, clear: map[types.UID]struct{}{}, doomed: map[types.UID]time.Time{}}
}

func (c *creates) mark(uid types.UID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[uid] = at
	delete(c.clear, uid)
}

// refused: no create of it is open, neither this one nor any before.
func (c *creates) refused(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear[uid] = struct{}{}
}

func (c *creates) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sent, uid)
	delete(c.clear, uid)
	delete(c.doomed, uid)
}

// doomedSince is when the Network's deletion was first seen in this process: now
// at the earliest call.
func (c *creates) doomedSince(uid types.UID, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.doomed[uid]; !known {
		c.doomed[uid] = now
	}
	return c.doomed[uid]
}

// uncertainSince is that time, or when this process began if there was none; the
// zero time if nothing can come of what was sent.
func (c *creates) uncertainSince(uid types.UID, began time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.clear[uid]; ok {
		return time.Time{}
	}
	if at, ok := c.sent[uid]; ok && at.After(began) {
		return at
	}
	return began
}

// quiet is how long a cloud that failed to list its networks is not asked again,
// however many Networks would.
const quiet = 3 * time.Second

// silences remembers, for each Cloud, the last failure to list its networks.
type silences struct {
	mu     sync.Mutex
	failed map[string]silence
}

type silence struct {
	until time.Time
	err   error
}

func newSilences() *silences { return &silences{failed: map[string]silence{}} }

// of returns the failure of which a Cloud is silent still, nil if it can be asked.
func (s *silences) of(cloudName string, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last, ok := s.failed[cloudName]; ok && now.Before(last.until) {
		return last.err
	}
	return nil
}

// heard notes how a listing ended. What ended a pass says nothing of the cloud.
func (s *silences) heard(cloudName string, now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		delete(s.failed, cloudName)
	case cloud.KindOf(err) != "":
		s.failed[cloudName] = silence{until: now.Add(max(quiet, cloud.RetryAfter(err))), err: err}
	}
}
