package network

import (
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

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
