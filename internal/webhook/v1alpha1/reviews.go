package v1alpha1

import "sync"

const (
	// maxReviews bounds the checks that are under way in this process.
	maxReviews = 32
	// maxReviewsOfNamespace bounds those of one namespace.
	maxReviewsOfNamespace = 8
)

// reviews counts the checks under way. The zero value is ready for use.
type reviews struct {
	mu          sync.Mutex
	all         int
	byNamespace map[string]int
}

// begin counts a check of a namespace until end is called. It returns false, and
// counts nothing, if there are too many already: a check that waited for others
// would end after the webhook's timeout, and would hold memory until then.
func (r *reviews) begin(namespace string) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all >= maxReviews || r.byNamespace[namespace] >= maxReviewsOfNamespace {
		return nil, false
	}
	if r.byNamespace == nil {
		r.byNamespace = map[string]int{}
	}
	r.all++
	r.byNamespace[namespace]++
	return func() { r.end(namespace) }, true
}

func (r *reviews) end(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all--
	r.byNamespace[namespace]--
	if r.byNamespace[namespace] == 0 {
		delete(r.byNamespace, namespace)
	}
}
