package reconciler

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// cacheLag is how long the cache may still show an object after its release.
const cacheLag = time.Minute

// releases holds the objects that were released within cacheLag. The cache may
// show them with their finalizer, and a reconcile would delete and release them
// once more. The zero value is ready for use.
type releases struct {
	mu sync.Mutex
	at map[types.UID]time.Time
}

func (r *releases) add(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[types.UID]time.Time{}
	}
	maps.DeleteFunc(r.at, func(_ types.UID, at time.Time) bool { return time.Since(at) > cacheLag })
	r.at[uid] = time.Now()
}

func (r *releases) has(uid types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[uid]
	return ok && time.Since(at) <= cacheLag
}
