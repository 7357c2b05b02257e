// Package clouds keeps the clients of clouds: one for each Cloud, shared by all
// callers in this process. Each type of cloud plugs in by a Dialer.
//
//	clients.go  which client a caller gets, and when a client is replaced
//	dialer.go   what each type of cloud has to implement
//	inputs.go   what a client is made from: spec and Secret
package clouds

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// closeTimeout bounds Close of a client that is no longer used.
const closeTimeout = 10 * time.Second

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
type Clients struct {
	opts Options

	mu      sync.Mutex
	entries map[string]*entry
}

// entry holds the client of one Cloud. All fields but lock are guarded by Clients.mu.
type entry struct {
	// lock has room for one. Whoever fills it may replace the client.
	lock chan struct{}
	// client is nil if there is none.
	client cloud.Client
	// made is the fingerprint of the inputs that the client was made from.
	made [sha256.Size]byte
	// checked is when made was last compared with the inputs, and key is the
	// revision of the Cloud that it was compared with.
	checked time.Time
	key     key
	// kept is set once Get has returned the client.
	kept bool
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

// New returns Clients that hold no client yet.
func New(opts Options) *Clients {
	return &Clients{opts: opts, entries: map[string]*entry{}}
}

// Get returns the client of a Cloud. If the spec, the Secret or the annotation
// reconcile-requested-at has changed, Get makes a new client and closes the
// previous one. Calling Get keeps the client for all callers: from then on
// GetShared returns it without looking at the Secret.
//
// Get returns an *UnusableError if no client can be made from the inputs, or
// the API server's error. The previous client stays open in both cases.
func (s *Clients) Get(ctx context.Context, c *pcapi.Cloud) (cloud.Client, error) {
	e, unlock, err := s.lock(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	fresh, err := s.refresh(ctx, c, e)
	if err == nil {
		s.mu.Lock()
		e.kept = true
		s.mu.Unlock()
	}
	return fresh, err
}

// GetShared returns the client of a Cloud for a single call: the one that Get
// keeps. If nobody calls Get in this process, as in a standby, GetShared makes
// the client on demand and compares it with the Secret once per pollInterval.
// It returns the same errors as Get.
func (s *Clients) GetShared(ctx context.Context, c *pcapi.Cloud) (cloud.Client, error) {
	if current := s.current(c, s.entry(c.Name)); current != nil {
		return current, nil
	}
	e, unlock, err := s.lock(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another caller may have made the client in the meantime.
	if current := s.current(c, e); current != nil {
		return current, nil
	}
	return s.refresh(ctx, c, e)
}

// Drop closes the client of a Cloud, if there is one. The next Get makes a new one.
func (s *Clients) Drop(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	e, unlock, err := s.lock(ctx, name)
	if err != nil {
		return
	}
	defer unlock()
	s.mu.Lock()
	old := e.client
	e.client, e.kept = nil, false
	s.mu.Unlock()
	if old != nil {
		old.Close(ctx)
	}
}

// Forget drops the client of a Cloud that is deleted, and everything that the
// Dialers hold for it, such as its metrics.
func (s *Clients) Forget(ctx context.Context, name string) {
	s.Drop(ctx, name)
	// The Cloud may have had another type before.
	for _, d := range s.opts.Dialers {
		d.Forget(name)
	}
}

// Follow calls Forget for each Cloud that the cache sees deleted, so that a
// standby, which does not reconcile Clouds, closes its clients as well.
func (s *Clients) Follow(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &pcapi.Cloud{})
	if err != nil {
		return fmt.Errorf("follow Clouds: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(deleted any) {
		if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(deleted); err == nil {
			go s.Forget(context.WithoutCancel(ctx), name)
		}
	}})
	if err != nil {
		return fmt.Errorf("follow Clouds: %w", err)
	}
	return nil
}

func (s *Clients) entry(name string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if e == nil {
		// An entry outlives its Cloud, so that those who wait for its lock cannot
		// make a second client.
		e = &entry{lock: make(chan struct{}, 1)}
		s.entries[name] = e
	}
	return e
}

// lock returns the entry of a name, locked for replacing its client until
// unlock is called.
func (s *Clients) lock(ctx context.Context, name string) (e *entry, unlock func(), err error) {
	e = s.entry(name)
	select {
	case e.lock <- struct{}{}:
		return e, func() { <-e.lock }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// current returns the client if GetShared may return it unchecked, else nil.
func (s *Clients) current(c *pcapi.Cloud, e *entry) cloud.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	recent := e.key == keyOf(c) && s.opts.Clock().Sub(e.checked) < c.Spec.PollInterval.Duration
	if e.kept || recent {
		return e.client
	}
	return nil
}

// refresh replaces the client if its inputs have changed. The caller holds the
// entry's lock.
func (s *Clients) refresh(ctx context.Context, c *pcapi.Cloud, e *entry) (cloud.Client, error) {
	in, err := s.read(ctx, c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	old, same := e.client, e.client != nil && e.made == in.fingerprint
	s.mu.Unlock()
	fresh := old
	if !same {
		if fresh, err = in.dialer.Dial(c, in.secret); err != nil {
			return nil, &UnusableError{Reason: pcapi.InvalidConfigurationReason, Err: err}
		}
	}
	s.mu.Lock()
	e.client, e.made, e.checked, e.key = fresh, in.fingerprint, s.opts.Clock(), keyOf(c)
	s.mu.Unlock()
	if !same && old != nil {
		go func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, closeTimeout)
			defer cancel()
			old.Close(ctx)
		}(context.WithoutCancel(ctx))
	}
	return fresh, nil
}
