// Package clouds keeps the clients of clouds: one for each Cloud, shared by all
// callers in this process. Each type of cloud plugs in by a Dialer.
//
//	clients.go  which client a caller gets, and when a client is replaced
//	entry.go    what is held for one Cloud, and for how long
//	closing.go  how clients are closed: replaced, unused, of a deleted Cloud, at the end
//	dialer.go   what each type of cloud has to implement
//	inputs.go   what a client is made from: spec and Secret
//	secret.go   the Secret, and what is kept of it
package clouds

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// errClosed is returned when the process ends.
var errClosed = errors.New("the clients of clouds are closed: the operator stops")

// Options configure Clients.
type Options struct {
	// Secrets reads from the API server, since the cache must not hold Secrets.
	Secrets client.Reader
	// Namespace is the operator's own. Secrets are read from no other namespace.
	Namespace string
	// Dialers are the types of clouds that are served.
	Dialers map[pcapi.CloudType]Dialer
	// Clock returns the current time.
	Clock func() time.Time
}

// Clients holds the clients of this process. It is safe for concurrent use.
//
// A client that others use is replaced in two steps, so that a change of the
// credentials does not interrupt them: Get makes a candidate, and Commit makes it
// the current client once it has answered.
type Clients struct {
	opts Options

	mu      sync.Mutex
	entries map[string]*entry
	// secrets are those of the Clouds, by the name of the Cloud, until it is forgotten.
	secrets map[string]*credentials
	closed  bool
	// closing counts what runs in the background. ended is closed when it is 0; nil
	// if nobody waits for that.
	closing int
	ended   chan struct{}
}

// New returns Clients that hold no client yet.
func New(opts Options) *Clients {
	return &Clients{opts: opts, entries: map[string]*entry{}, secrets: map[string]*credentials{}}
}

// Get returns the client for the spec and the Secret of a Cloud as they are now:
// the current client, or a candidate if they have changed, also by the annotation
// reconcile-requested-at. The caller MUST call Commit once a candidate has answered,
// and Drop or DropAll if it failed. Until then, the current client stays in use, but only if
// nothing other than the Secret, the limits and the annotation has changed: with
// another endpoint, for example, it may be a client of another cloud, and Get closes
// it, even if Get fails.
//
// Get returns an *UnusableError if no client can be made from the inputs, or
// the API server's error. It closes the clients if the Secret is missing or not for
// this Cloud, unless the Cloud is being deleted and this process has read the Secret before.
//
// Calling Get keeps the client for all callers: from then on GetShared returns it
// without looking at the Secret.
func (s *Clients) Get(ctx context.Context, c *pcapi.Cloud) (cloud.Client, error) {
	e, unlock, err := s.lock(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	in, identity, err := s.inputsOf(ctx, c, e)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known := e.madeFrom(in)
	if known != nil && known == e.current {
		s.retire(e.takeCandidate())
	}
	if known != nil {
		e.check(s.opts.Clock(), c)
		e.kept = true
		s.mu.Unlock()
		return known.client, nil
	}
	s.mu.Unlock()
	fresh, err := s.dial(c, in, identity)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.retire(fresh)
		return nil, errClosed
	}
	s.retire(e.takeCandidate())
	e.candidate, e.kept = fresh, true
	e.check(s.opts.Clock(), c)
	return fresh.client, nil
}

// Commit makes a client that Get returned the current one, and closes the previous
// one in the background, after its calls under way. It does nothing for a client
// that is replaced or closed already.
func (s *Clients) Commit(name string, connected cloud.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if e == nil || e.candidate == nil || e.candidate.client != connected {
		return
	}
	previous := e.current
	e.current = e.takeCandidate()
	s.retire(previous)
}

// InUse reports whether a client is the one that all callers share, and may be used
// on while a candidate fails.
func (s *Clients) InUse(name string, current cloud.Client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	return e != nil && e.current != nil && e.current.client == current
}

// GetShared returns the client of a Cloud for a single call: the current one, or
// the candidate of Get if there is none. If nobody calls Get in this process, as in
// a standby, GetShared makes the client on demand and compares it with the Secret
// once per pollInterval. It returns the same errors as Get.
func (s *Clients) GetShared(ctx context.Context, c *pcapi.Cloud) (cloud.Client, error) {
	if shared := s.shared(c); shared != nil {
		return shared, nil
	}
	s.forgetUnused(c.Name)
	e, unlock, err := s.lock(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another caller may have made the client in the meantime.
	if shared := s.shared(c); shared != nil {
		return shared, nil
	}
	return s.refresh(ctx, c, e)
}

// shared returns the client that GetShared may return unchecked, else nil.
func (s *Clients) shared(c *pcapi.Cloud) cloud.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[c.Name]
	if e == nil {
		return nil
	}
	now := s.opts.Clock()
	e.used = now
	switch recent := e.key == keyOf(c) && now.Sub(e.checked) < c.Spec.PollInterval.Duration; {
	case !e.kept && !recent:
		return nil
	case e.current != nil:
		return e.current.client
	case e.kept && e.candidate != nil:
		return e.candidate.client
	}
	return nil
}

// refresh replaces a client that nobody keeps if its inputs have changed. The
// caller holds the entry's lock.
func (s *Clients) refresh(ctx context.Context, c *pcapi.Cloud, e *entry) (cloud.Client, error) {
	in, identity, err := s.inputsOf(ctx, c, e)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known := e.madeFrom(in)
	s.mu.Unlock()
	if known == nil {
		if known, err = s.dial(c, in, identity); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.retire(known)
		return nil, errClosed
	}
	if known != e.current && known != e.candidate {
		s.retire(e.current)
		e.current = known
	}
	e.check(s.opts.Clock(), c)
	return known.client, nil
}

// inputsOf reads what a client of a Cloud is made from. It closes the clients that
// may be of another cloud, and all if the Secret is missing or not for this Cloud. The
// caller holds the entry's lock.
func (s *Clients) inputsOf(ctx context.Context, c *pcapi.Cloud, e *entry) (inputs, fingerprint, error) {
	identity, err := identityOf(c)
	if err != nil {
		return inputs{}, identity, err
	}
	s.mu.Lock()
	s.retire(e.endOther(identity)...)
	s.mu.Unlock()
	in, err := s.read(ctx, c, identity)
	if _, withdrawn := errors.AsType[*UnusableError](err); withdrawn {
		s.mu.Lock()
		s.retire(e.takeAll()...)
		s.mu.Unlock()
	}
	return in, identity, err
}

func (s *Clients) dial(c *pcapi.Cloud, in inputs, identity fingerprint) (*made, error) {
	fresh, err := in.dialer.Dial(c, in.secret)
	if err != nil {
		return nil, &UnusableError{Reason: pcapi.InvalidConfigurationReason, Malformed: true, Err: err}
	}
	return &made{client: fresh, inputs: in.fingerprint, identity: identity}, nil
}
