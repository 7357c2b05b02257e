package gpuinfo

import (
	"container/heap"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// claims holds the reservations of all GPUInfos, with their sum for each host, so that
// a choice does not look at each of them. An index of the cache could list them, but
// not sum them up.
//
// It holds what the cache holds. The events of GPUInfos report which objects to read
// again. They are handled some time after the cache has changed, so what this process
// wrote last is read again before each choice.
type claims struct {
	reader client.Reader
	clock  func() time.Time
	ends   *ends

	mu sync.Mutex
	// unread are the GPUInfos that the cache may hold in a newer state.
	unread map[types.NamespacedName]bool
	held   map[types.NamespacedName]*heldClaim
	hosts  map[hostKey]*hostClaims
	// start is the start of the monotonic clock by which the ends were computed.
	start time.Time
}

// hostKey is a host of a Cloud.
type hostKey struct{ cloud, name string }

// heldClaim is a claim as claims holds it.
type heldClaim struct {
	claim
	key types.NamespacedName
	of  hostKey
	// end is when it is over by both clocks, in seconds, rounded up.
	end int64
	// at is its index in hostClaims.lasting; -1 if it is over.
	at int
}

// hostClaims are the claims on one host that are not over, as a heap: the one that
// ends next is the first. sum is that of their ends.
type hostClaims struct {
	lasting []*heldClaim
	sum     int64
}

func newClaims(reader client.Reader, clock func() time.Time, e *ends) *claims {
	return &claims{
		reader: reader, clock: clock, ends: e,
		unread: map[types.NamespacedName]bool{}, held: map[types.NamespacedName]*heldClaim{}, hosts: map[hostKey]*hostClaims{},
	}
}

// follow reads a GPUInfo again after an event of it.
func (c *claims) follow(ctx context.Context, key types.NamespacedName) {
	if err := c.read(ctx, key, false); err != nil {
		log.FromContext(ctx).Error(err, "read a GPUInfo whose reservation may have changed; it is read again before the next choice")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unread[key] = true
	}
}

// catchUp waits until the cache has the writes of this client, and reads the GPUInfos
// again that may have changed. The GPUInfo with this key is one of them from now on: its
// reconcile may write a reservation.
func (c *claims) catchUp(ctx context.Context, next types.NamespacedName) error {
	for _, key := range c.pending() {
		var written pcapi.GPUInfo
		if err := c.reader.Get(ctx, key, &written, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("wait for the reservation of GPUInfo %s: %w", key, err)
		}
		if err := c.read(ctx, key, true); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread[next] = true
	return nil
}

func (c *claims) pending() []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := make([]types.NamespacedName, 0, len(c.unread))
	for key := range c.unread {
		keys = append(keys, key)
	}
	return keys
}

// read takes over what the cache holds of a GPUInfo. It reads under the lock, so that an
// older state never replaces a newer one. complete is whether the cache has the writes of
// this client.
func (c *claims) read(ctx context.Context, key types.NamespacedName, complete bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gpu pcapi.GPUInfo
	err := c.reader.Get(ctx, key, &gpu, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	switch {
	case apierrors.IsNotFound(err):
		c.remove(key)
	case err != nil:
		return fmt.Errorf("read GPUInfo %s: %w", key, err)
	default:
		c.set(key, &gpu)
	}
	if complete {
		delete(c.unread, key)
	}
	return nil
}

// set replaces the claim of a GPUInfo. The caller holds the lock.
func (c *claims) set(key types.NamespacedName, gpu *pcapi.GPUInfo) {
	now := c.clock()
	c.ends.observe(gpu, now)
	c.remove(key)
	if held := reservationOf(gpu); held != nil {
		is := &heldClaim{claim: claimOf(gpu), key: key, of: hostKey{held.Cloud, held.Host}}
		c.held[key] = is
		c.add(is, now)
	}
}

// add computes the end of a claim and counts it on its host. The caller holds the lock.
func (c *claims) add(is *heldClaim, now time.Time) {
	is.end = ceil(is.until.Add(c.ends.after(is.uid, is.since, is.until, now)))
	on := c.hosts[is.of]
	if on == nil {
		on = &hostClaims{}
		c.hosts[is.of] = on
	}
	heap.Push(on, is)
}

// remove drops the claim of a GPUInfo. The caller holds the lock.
func (c *claims) remove(key types.NamespacedName) {
	was := c.held[key]
	if was == nil {
		return
	}
	delete(c.held, key)
	on := c.hosts[was.of]
	if was.at >= 0 {
		heap.Remove(on, was.at)
	}
	if on != nil && len(on.lasting) == 0 {
		delete(c.hosts, was.of)
	}
}

// adjust computes all ends again if one of the clocks was set, or has drifted, since that
// was done. The caller holds the lock.
func (c *claims) adjust(now time.Time) {
	start := c.ends.start(now)
	if start.Sub(c.start).Abs() <= clockTolerance {
		return
	}
	c.start, c.hosts = start, map[hostKey]*hostClaims{}
	for _, is := range c.held {
		c.add(is, now)
	}
}

// on returns the claims on a host that are not over; nil if there are none. The caller
// holds the lock.
func (c *claims) on(at hostKey, now time.Time) *hostClaims {
	c.adjust(now)
	on := c.hosts[at]
	if on == nil {
		return nil
	}
	for len(on.lasting) > 0 && on.lasting[0].end <= ceil(now) {
		heap.Pop(on)
	}
	if len(on.lasting) == 0 {
		delete(c.hosts, at)
		return nil
	}
	return on
}

// taken returns the seconds that GPUInfos other than the one with this key have reserved
// on a host.
func (c *claims) taken(at hostKey, but types.NamespacedName, now time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	on := c.on(at, now)
	if on == nil {
		return 0
	}
	seconds := on.left(now)
	if mine := c.held[but]; mine != nil && mine.of == at && mine.at >= 0 {
		seconds -= mine.end - ceil(now)
	}
	return seconds
}

// others returns the claims of GPUInfos other than the one with this key on a host.
func (c *claims) others(at hostKey, but types.NamespacedName, now time.Time) []claim {
	var others []claim
	c.each(at, now, func(is *heldClaim) {
		if is.key != but {
			others = append(others, is.lasting())
		}
	})
	return others
}

// later returns requests for the GPUInfos whose claims on a host are later than a claim.
func (c *claims) later(at hostKey, than claim, now time.Time) []reconcile.Request {
	var requests []reconcile.Request
	c.each(at, now, func(is *heldClaim) {
		if than.before(is.claim) {
			requests = append(requests, reconcile.Request{NamespacedName: is.key})
		}
	})
	return requests
}

func (c *claims) each(at hostKey, now time.Time, do func(*heldClaim)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if on := c.on(at, now); on != nil {
		for _, is := range on.lasting {
			do(is)
		}
	}
}

// lasting returns the claim with the end by both clocks.
func (h *heldClaim) lasting() claim {
	is := h.claim
	is.until = time.Unix(h.end, 0)
	return is
}

// left returns the seconds that are left of all claims.
func (h *hostClaims) left(now time.Time) int64 { return h.sum - int64(len(h.lasting))*ceil(now) }

func (h *hostClaims) Len() int { return len(h.lasting) }

func (h *hostClaims) Less(i, j int) bool { return h.lasting[i].end < h.lasting[j].end }

func (h *hostClaims) Swap(i, j int) {
	h.lasting[i], h.lasting[j] = h.lasting[j], h.lasting[i]
	h.lasting[i].at, h.lasting[j].at = i, j
}

// Push is for container/heap.
func (h *hostClaims) Push(x any) {
	is := x.(*heldClaim)
	is.at = len(h.lasting)
	h.lasting = append(h.lasting, is)
	h.sum += is.end
}

// Pop is for container/heap.
func (h *hostClaims) Pop() any {
	last := len(h.lasting) - 1
	is := h.lasting[last]
	h.lasting[last] = nil
	h.lasting = h.lasting[:last]
	is.at = -1
	h.sum -= is.end
	return is
}

// ceil returns a time in whole seconds, rounded up: with it, a claim that ends with a
// second has as many seconds left as claim.left counts.
func ceil(t time.Time) int64 {
	seconds := t.Unix()
	if t.Nanosecond() > 0 {
		seconds++
	}
	return seconds
}
