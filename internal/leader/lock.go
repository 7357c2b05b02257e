// Package leader is the lease of leader election, with a statement of how fresh
// it is. client-go's leader election notices only after its renew deadline that
// a process which was stopped has lost its lease.
package leader

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// Lock is the resource lock of a leader election. It is safe for concurrent use.
type Lock struct {
	resourcelock.Interface

	term  time.Duration
	now   func() time.Time
	close func()

	mu sync.Mutex
	// renewed is when the request was sent that last renewed the lease; zero if
	// this process does not hold it.
	renewed time.Time
}

// Config describes a lease.
type Config struct {
	// Rest reaches the API server. It is not changed.
	Rest *rest.Config
	// Scheme has the kinds of Kubernetes.
	Scheme *runtime.Scheme
	// Namespace and Name are those of the lease.
	Namespace, Name string
	// Term is for how long a renewal lets this process act. It must be shorter than
	// the lease's duration, after which another process acquires the lease.
	Term time.Duration
}

// New returns the Lock of a lease. Close it after the election has ended.
func New(cfg Config) (*Lock, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("make an identity for leader election: %w", err)
	}
	config := rest.AddUserAgent(rest.CopyConfig(cfg.Rest), "leader-election")
	// A request that hangs must leave time for another one.
	config.Timeout = max(cfg.Term/2, time.Second)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for leader election: %w", err)
	}
	identity := host + "_" + string(uuid.NewUUID())
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, cfg.Namespace, cfg.Name, client.CoreV1(), client.CoordinationV1(),
		resourcelock.ResourceLockConfig{
			Identity: identity, EventRecorder: broadcaster.NewRecorder(cfg.Scheme, corev1.EventSource{Component: identity}),
		})
	if err != nil {
		broadcaster.Shutdown()
		return nil, fmt.Errorf("make the lock of leader election: %w", err)
	}
	return Wrap(lock, cfg.Term, time.Now, broadcaster.Shutdown), nil
}

// Wrap returns the Lock of another one. now returns the time, and closing is
// called by Close.
func Wrap(lock resourcelock.Interface, term time.Duration, now func() time.Time, closing func()) *Lock {
	return &Lock{Interface: lock, term: term, now: now, close: closing}
}

// Close ends the recording of events.
func (l *Lock) Close() { l.close() }

// Leading reports whether this process holds the lease and renewed it within its
// term. It compares the monotonic clock, which continues while a process is
// stopped, and the wall clock, which continues while a machine is suspended.
func (l *Lock) Leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return false
	}
	now := l.now()
	return now.Sub(l.renewed) < l.term && now.Round(0).Sub(l.renewed.Round(0)) < l.term
}

// Get returns the lease. If another process holds it, this one does not lead.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	held, raw, err := l.Interface.Get(ctx)
	if err == nil && held.HolderIdentity != l.Identity() {
		l.set(time.Time{})
	}
	return held, raw, err //nolint:wrapcheck // client-go compares it
}

// Create creates the lease.
func (l *Lock) Create(ctx context.Context, held resourcelock.LeaderElectionRecord) error {
	return l.write(held, func() error { return l.Interface.Create(ctx, held) })
}

// Update renews, acquires or releases the lease.
func (l *Lock) Update(ctx context.Context, held resourcelock.LeaderElectionRecord) error {
	return l.write(held, func() error { return l.Interface.Update(ctx, held) })
}

// write counts the term from before the request was sent, since others count the
// lease's duration from when they read it.
func (l *Lock) write(held resourcelock.LeaderElectionRecord, send func() error) error {
	sent := l.now()
	mine := held.HolderIdentity == l.Identity()
	if !mine {
		l.set(time.Time{})
	}
	err := send()
	if err == nil && mine {
		l.set(sent)
	}
	return err
}

func (l *Lock) set(renewed time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed = renewed
}
