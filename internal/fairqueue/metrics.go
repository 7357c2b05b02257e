package fairqueue

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// collectors are the metrics of all queues of the process.
type collectors struct {
	depth *prometheus.GaugeVec
	wait  *prometheus.HistogramVec
}

var registered = sync.OnceValue(func() collectors {
	labels := []string{"controller", "cloud"}
	c := collectors{
		depth: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "privatecloud", Name: "requests_waiting", Help: "Objects that wait for a worker of their Cloud.",
		}, labels),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "privatecloud", Name: "requests_wait_seconds",
			Help:    "How long objects waited for a worker of their Cloud, without periodic reconciles and those after a start.",
			Buckets: []float64{0.01, 0.1, 1, 5, 15, 60, 300, 900},
		}, labels),
	}
	metrics.Registry.MustRegister(c.depth, c.wait)
	return c
})

// series are the metrics of one queue.
type series struct {
	collectors
	controller string
}

func metricsOf(controller string) *series { return &series{registered(), controller} }

func (s *series) waiting(cloud string, n int) {
	s.depth.WithLabelValues(s.controller, cloud).Set(float64(n))
}

// served counts a request that got a worker. Nobody waits for one of low priority.
func (s *series) served(cloud string, left int, w *waiter) {
	s.waiting(cloud, left)
	if w.priority >= 0 {
		s.wait.WithLabelValues(s.controller, cloud).Observe(time.Since(w.since).Seconds())
	}
}

func (s *series) forget(cloud string) { s.depth.DeleteLabelValues(s.controller, cloud) }
