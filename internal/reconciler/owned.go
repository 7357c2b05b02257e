package reconciler

import (
	"cmp"
	"errors"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// own reports whether an object is this manager's. If it is, the effects of the
// reconcile end as soon as it is not any more. If that cannot be found out yet, own
// returns the time until the next reconcile.
func (r *Reconciler[T, S]) own(w *work, obj T) (owned bool, after time.Duration, err error) {
	if r.Owns == nil {
		return true, 0, nil
	}
	owns, err := r.Owns(w.ctx, obj)
	if wait, ok := errors.AsType[*WaitError](err); ok {
		return false, wait.After, nil
	}
	if err != nil {
		return false, 0, err
	}
	if !owns() {
		r.rejections.forget(obj.GetUID())
		if r.Disowned != nil {
			r.Disowned(obj)
		}
		return false, 0, nil
	}
	w.owned = owns
	permitted := func() bool { return r.mayAct(w) }
	w.ctx, w.effects = cloud.WithPermit(w.ctx, permitted), cloud.WithPermit(w.effects, permitted)
	return true, 0, nil
}

// mayAct reports whether the reconcile may have an effect at the moment.
func (r *Reconciler[T, S]) mayAct(w *work) bool {
	return r.leading() && (w.owned == nil || w.owned())
}

// earliest returns the shorter of two times that are not 0.
func earliest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}

// errDisowned is the outcome of an abandoned object whose Cloud is another
// manager's now. That manager does not know the object.
var errDisowned = Blocked("", "", "its Cloud is another manager's now")
