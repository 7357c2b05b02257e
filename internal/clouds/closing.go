package clouds

import (
	"context"
	"fmt"
	"sync"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// closeTimeout bounds Close of a client that no caller waits for any more.
	closeTimeout = 10 * time.Second
	// retireTimeout bounds Close of a client that was replaced, whose calls under
	// way end first.
	retireTimeout = time.Minute
	// unusedTimeout is after how long a client is closed that was made on demand and
	// is not used.
	unusedTimeout = 15 * time.Minute
)

// retire closes clients in the background. The caller holds s.mu.
func (s *Clients) retire(clients ...*made) {
	for _, m := range clients {
		if m == nil {
			continue
		}
		s.background(func() {
			ctx, cancel := context.WithTimeout(context.Background(), retireTimeout)
			defer cancel()
			m.client.Close(ctx)
		})
	}
}

// background runs f in a goroutine that Close waits for. The caller holds s.mu.
func (s *Clients) background(f func()) {
	s.closing++
	go func() {
		f()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closing--
		if s.closing == 0 && s.ended != nil {
			close(s.ended)
			s.ended = nil
		}
	}()
}

// Drop closes the candidate that Get made, if there is one: the next Get makes
// another. The current client stays in use.
func (s *Clients) Drop(ctx context.Context, name string) {
	s.drop(ctx, name, func(e *entry) []*made { return []*made{e.takeCandidate()} }, func() {})
}

// DropAll closes the candidate and the current client of a Cloud: none of them may
// be used on.
func (s *Clients) DropAll(ctx context.Context, name string) {
	s.drop(ctx, name, (*entry).takeAll, func() {})
}

// Forget closes the clients of a Cloud that is deleted, and drops everything that
// the Dialers hold for it, such as its metrics.
func (s *Clients) Forget(ctx context.Context, name string) {
	s.drop(ctx, name, (*entry).takeAll, func() {
		s.forgetSecret(name)
		// The Cloud may have had another type before.
		for _, d := range s.opts.Dialers {
			d.Forget(name)
		}
	})
}

// drop closes the clients that take removes from the entry of a name, and calls
// then before another client can be made for it.
func (s *Clients) drop(ctx context.Context, name string, take func(*entry) []*made, then func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	e, unlock, err := s.lock(ctx, name)
	if err != nil {
		return
	}
	defer unlock()
	s.mu.Lock()
	taken := take(e)
	s.mu.Unlock()
	closeAll(ctx, taken)
	then()
}

// forgetUnused forgets, in the background, the clients other than this one that
// were made on demand and are not used: their Clouds may be gone.
func (s *Clients) forgetUnused(but string) {
	unused := func(e *entry) bool {
		return !e.kept && e.users == 0 && s.opts.Clock().Sub(e.used) > unusedTimeout
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.entries {
		if name != but && unused(e) {
			s.background(func() { s.Forget(context.Background(), name) })
		}
	}
}

// Follow calls Forget for each Cloud that the cache sees deleted, also one whose
// finalizer somebody removed, and in a standby, which does not reconcile Clouds.
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

// Close closes all clients and ends with ctx. Later calls of Get and GetShared fail.
func (s *Clients) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	var all []*made
	for _, e := range s.entries {
		all = append(all, e.takeAll()...)
	}
	clear(s.entries)
	clear(s.secrets)
	ended := make(chan struct{})
	if s.closing == 0 || s.ended != nil {
		close(ended)
	} else {
		s.ended = ended
	}
	s.mu.Unlock()
	closeAll(ctx, all)
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// closeAll closes clients concurrently and returns when all are closed.
func closeAll(ctx context.Context, clients []*made) {
	var all sync.WaitGroup
	for _, m := range clients {
		if m != nil {
			all.Go(func() { m.client.Close(ctx) })
		}
	}
	all.Wait()
}

// Closer returns a runnable that closes all clients when the manager has stopped
// its controllers, within 10 s. The manager stops runnables group by group; Closer
// is in the group of the caches, which stops after the controllers.
func (s *Clients) Closer(informers cache.Cache) manager.Runnable {
	return closer{clients: s, informers: informers}
}

type closer struct {
	clients   *Clients
	informers cache.Cache
}

// GetCache makes the manager put the runnable into the group of the caches.
func (c closer) GetCache() cache.Cache { return c.informers }

// Start waits for the end of the manager and closes the clients.
func (c closer) Start(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	c.clients.Close(ctx)
	return nil
}
