package reconciler

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// cacheLag is how long the cache may still show an object after its release. It
// is longer than claimWindow: an object that was abandoned and released must not
// be taken for abandoned once more.
const cacheLag = claimWindow + time.Minute

// releases holds the objects that were released within cacheLag. The cache may
// show them with their finalizer, and a reconcile would delete and release them
// once more. The zero value is ready for use.
type releases struct{ recent recent }

func (r *releases) add(uid types.UID)      { r.recent.add(uid, cacheLag) }
func (r *releases) has(uid types.UID) bool { return r.recent.has(uid, cacheLag) }

// recent holds when objects were added. The zero value is ready for use.
type recent struct {
	mu sync.Mutex
	at map[types.UID]time.Time
	// swept is when the entries that were too old were last removed.
	swept time.Time
}

// add adds an object, and removes what is older than keep.
func (r *recent) add(uid types.UID, keep time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[types.UID]time.Time{}
	}
	if time.Since(r.swept) > keep/10 {
		maps.DeleteFunc(r.at, func(_ types.UID, at time.Time) bool { return time.Since(at) > keep })
		r.swept = time.Now()
	}
	r.at[uid] = time.Now()
}

// has reports whether the object was added within keep.
func (r *recent) has(uid types.UID, keep time.Duration) bool { return r.left(uid, keep) > 0 }

// left returns how much of keep is left since the object was added; 0 if it was not.
func (r *recent) left(uid types.UID, keep time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[uid]
	if !ok {
		return 0
	}
	return max(0, keep-time.Since(at))
}
