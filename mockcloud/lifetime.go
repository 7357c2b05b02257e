package mockcloud

import (
	"sync"
	"sync/atomic"
)

// lifetime ends a cloud: it closes, or is handed over to another process.
type lifetime struct {
	core *core
	// ownsStore is false for a store of the options.
	ownsStore bool
	// retired is set when another process has taken over.
	retired atomic.Bool

	stopOnce  sync.Once
	closeOnce sync.Once
	running   sync.WaitGroup
}

// stop ends calls that a fault holds, event streams and transitions.
func (l *lifetime) stop() {
	l.stopOnce.Do(func() {
		close(l.core.closed)
		l.running.Wait()
	})
}

func (l *lifetime) close() error {
	var err error
	l.stop()
	l.closeOnce.Do(func() {
		l.core.mu.Lock()
		defer l.core.mu.Unlock()
		if l.ownsStore {
			err = l.core.store.Close()
		}
	})
	return err
}
