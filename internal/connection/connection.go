// Package connection keeps the connections to clouds: one for each Cloud, and
// the same for all of this process who call it.
//
//	connection.go  who gets which connection, and when it is made anew
//	config.go      Secret and spec → what a connection is made from
package connection

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

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/rest"
)

// goodbye bounds the end of a connection that is not used any more.
const goodbye = 10 * time.Second

// Options are what all connections have in common.
type Options struct {
	// Secrets reads past the cache, which must not hold Secrets.
	Secrets client.Reader
	// Namespace is the operator's own: Secrets are read there and nowhere else.
	Namespace string
	// Base is version, timeout, log and metrics of every connection.
	Base rest.Config
	// Clock tells the time.
	Clock func() time.Time
	// Dial makes a connection, without a call: rest.New but in tests.
	Dial func(rest.Config) (cloud.Client, error)
}

// Connections are those of one process. They are safe for concurrent use.
type Connections struct {
	Options

	mu     sync.Mutex
	byName map[string]*link
}

// link is the connection to one Cloud.
type link struct {
	// making is held by the one who makes the connection, or looks whether it is
	// as the Cloud says.
	making chan struct{}
	// client is nil where there is no connection.
	client cloud.Client
	// made is the fingerprint of what the client was made from.
	made [sha256.Size]byte
	// looked is when that was last compared, and with which Cloud.
	looked time.Time
	of     edition
	// kept tells that somebody calls To.
	kept bool
}

// edition is a Cloud as far as a connection depends on it, but for the Secret.
type edition struct {
	uid         types.UID
	generation  int64
	requestedAt string
}

func editionOf(c *v1alpha1.Cloud) edition {
	return edition{uid: c.UID, generation: c.Generation, requestedAt: c.Annotations[v1alpha1.ReconcileRequestedAtAnnotation]}
}

// New returns no connection yet.
func New(opts Options) *Connections {
	if opts.Dial == nil {
		opts.Dial = func(config rest.Config) (cloud.Client, error) { return rest.New(config) }
	}
	return &Connections{Options: opts, byName: map[string]*link{}}
}

// To returns the connection to a Cloud, made anew when spec or Secret have
// changed; the one before is closed then. Who calls it keeps the connection for
// all others: from then on, Borrow changes nothing. It fails with an
// *UnusableError, which leaves the connection before as it is, or with what the
// API server said.
func (s *Connections) To(ctx context.Context, c *v1alpha1.Cloud) (cloud.Client, error) {
	l, release, err := s.take(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	way, err := s.refresh(ctx, c, l)
	if err == nil {
		s.mu.Lock()
		l.kept = true
		s.mu.Unlock()
	}
	return way, err
}

// Borrow returns the connection to a Cloud for one call. It is the one that is
// kept by calls of To. Where nobody calls To, as in a standby, it is made at
// need, and compared with the Secret once a pollInterval. It fails as To does.
func (s *Connections) Borrow(ctx context.Context, c *v1alpha1.Cloud) (cloud.Client, error) {
	l := s.link(c.Name)
	if way := s.current(c, l); way != nil {
		return way, nil
	}
	l, release, err := s.take(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	// Somebody else may have made it meanwhile.
	if way := s.current(c, l); way != nil {
		return way, nil
	}
	return s.refresh(ctx, c, l)
}

// Drop closes the connection to a Cloud, if there is one; the next call makes another.
func (s *Connections) Drop(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	l, release, err := s.take(ctx, name)
	if err != nil {
		return
	}
	defer release()
	s.mu.Lock()
	old := l.client
	l.client, l.kept = nil, false
	s.mu.Unlock()
	if old != nil {
		old.Close(ctx)
	}
}

// Forget drops the connection to a Cloud that is gone, and its metrics.
func (s *Connections) Forget(ctx context.Context, name string) {
	s.Drop(ctx, name)
	s.Base.Metrics.Forget(name)
}

// Follow forgets the Clouds that the cache sees go, so that a standby, which makes
// no passes over them, closes its connections, too.
func (s *Connections) Follow(ctx context.Context, clouds cache.Informers) error {
	informer, err := clouds.GetInformer(ctx, &v1alpha1.Cloud{})
	if err != nil {
		return fmt.Errorf("follow Clouds: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(gone any) {
		if name, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(gone); err == nil {
			go s.Forget(context.WithoutCancel(ctx), name)
		}
	}})
	if err != nil {
		return fmt.Errorf("follow Clouds: %w", err)
	}
	return nil
}

func (s *Connections) link(name string) *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byName[name]
	if l == nil {
		// It stays when its Cloud goes: whoever waits for it must not make a second one.
		l = &link{making: make(chan struct{}, 1)}
		s.byName[name] = l
	}
	return l
}

// take returns the link of a name, with the right to change it until it is released.
func (s *Connections) take(ctx context.Context, name string) (*link, func(), error) {
	l := s.link(name)
	select {
	case l.making <- struct{}{}:
		return l, func() { <-l.making }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// current returns the connection if it may be used as it is.
func (s *Connections) current(c *v1alpha1.Cloud, l *link) cloud.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := l.of == editionOf(c) && s.Clock().Sub(l.looked) < c.Spec.PollInterval.Duration
	if l.kept || fresh {
		return l.client
	}
	return nil
}

// refresh brings the connection up to date. The caller holds the link.
func (s *Connections) refresh(ctx context.Context, c *v1alpha1.Cloud, l *link) (cloud.Client, error) {
	config, err := s.config(ctx, c)
	if err != nil {
		return nil, err
	}
	made := fingerprint(config, c.Annotations[v1alpha1.ReconcileRequestedAtAnnotation])
	s.mu.Lock()
	old, same := l.client, l.client != nil && l.made == made
	s.mu.Unlock()
	fresh := old
	if !same {
		if fresh, err = s.Dial(config); err != nil {
			return nil, &UnusableError{Reason: v1alpha1.InvalidConfigurationReason, Err: err}
		}
	}
	s.mu.Lock()
	l.client, l.made, l.looked, l.of = fresh, made, s.Clock(), editionOf(c)
	s.mu.Unlock()
	if !same && old != nil {
		go func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, goodbye)
			defer cancel()
			old.Close(ctx)
		}(context.WithoutCancel(ctx))
	}
	return fresh, nil
}
