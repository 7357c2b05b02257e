package clouds

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// entry holds the clients of one Cloud. It exists while it holds a client or is in
// use. All fields but lock are guarded by Clients.mu.
type entry struct {
	// lock has room for one. Whoever fills it may make a client.
	lock chan struct{}
	// users counts those that hold the lock or wait for it.
	users int
	// current is the client that all callers share, and candidate is the one that
	// Get made to replace it; nil if there is none.
	current, candidate *made
	// checked is when the clients were last compared with the inputs, and key is the
	// revision of the Cloud that they were compared with.
	checked time.Time
	key     key
	// used is when GetShared was last called.
	used time.Time
	// kept is set once Get has returned a client.
	kept bool
}

// made is a client and what it was made from.
type made struct {
	client cloud.Client
	// inputs covers everything, and identity what does not change with the credentials.
	inputs, identity fingerprint
	// committed is set once the client has answered.
	committed bool
}

// key identifies a revision of a Cloud. It does not cover the Secret.
type key struct {
	uid         types.UID
	generation  int64
	requestedAt string
}

func keyOf(c *pcapi.Cloud) key {
	return key{uid: c.UID, generation: c.Generation, requestedAt: c.Annotations[pcapi.ReconcileRequestedAtAnnotation]}
}

// check records that the clients were compared with the inputs.
func (e *entry) check(now time.Time, c *pcapi.Cloud) {
	e.checked, e.used, e.key = now, now, keyOf(c)
}

// madeFrom returns the client that was made from these inputs, nil if there is none.
func (e *entry) madeFrom(in inputs) *made {
	for _, m := range []*made{e.candidate, e.current} {
		if m != nil && m.inputs == in.fingerprint {
			return m
		}
	}
	return nil
}

// endOther removes and returns the clients that may be of another cloud.
func (e *entry) endOther(identity fingerprint) []*made {
	var ended []*made
	if e.current != nil && e.current.identity != identity {
		ended, e.current = append(ended, e.current), nil
	}
	if e.candidate != nil && e.candidate.identity != identity {
		ended = append(ended, e.takeCandidate())
	}
	return ended
}

// takeCandidate removes and returns the candidate, nil if there is none.
func (e *entry) takeCandidate() *made {
	candidate := e.candidate
	e.candidate = nil
	return candidate
}

// takeAll removes and returns all clients.
func (e *entry) takeAll() []*made {
	all := []*made{e.current, e.takeCandidate()}
	e.current, e.kept = nil, false
	return all
}

// lock returns the entry of a name, locked for making a client until unlock is
// called. It fails after Close.
func (s *Clients) lock(ctx context.Context, name string) (e *entry, unlock func(), err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, errClosed
	}
	e = s.entries[name]
	if e == nil {
		e = &entry{lock: make(chan struct{}, 1)}
		s.entries[name] = e
	}
	e.users++
	s.mu.Unlock()
	select {
	case e.lock <- struct{}{}:
		return e, func() {
			<-e.lock
			s.release(name, e)
		}, nil
	case <-ctx.Done():
		s.release(name, e)
		return nil, nil, ctx.Err()
	}
}

// release ends a use of an entry, and drops the entry if nothing is left of it.
func (s *Clients) release(name string, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.users--
	if e.users == 0 && e.current == nil && e.candidate == nil && s.entries[name] == e {
		delete(s.entries, name)
	}
}
