package fairqueue

// goroutines is how many workers a controller has for each one that a namespace may have
// on a Cloud. Workers that wait for a cloud cost only memory.
const goroutines = 32

// limits bound the workers.
type limits struct {
	// namespace is how many one namespace may have on one Cloud, cloud how many a Cloud
	// may have, and all how many there are.
	namespace, cloud, all int
}

// limitsOf returns the limits for a number of workers of one namespace on one Cloud. Half
// as many more are kept for other namespaces on the same Cloud.
func limitsOf(workers int) limits {
	return limits{namespace: workers, cloud: workers + (workers+1)/2, all: Workers(workers)}
}

// Workers returns how many goroutines a controller needs for a queue of New.
func Workers(workers int) int { return workers * goroutines }

// allow reports whether a namespace may have another worker of a Cloud while so many are
// occupied in all. A Cloud gets half of those that it has and that are free, so that
// however many Clouds do not answer, there are some left for the next.
func (l limits) allow(s *share, of *line, occupied int) bool {
	free := l.all - occupied
	forCloud := min(l.cloud, (s.running+free+1)/2)
	forNamespace := (forCloud*l.namespace + l.cloud - 1) / l.cloud
	return free > 0 && s.running < forCloud && of.running < forNamespace
}
