package mockcloud

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics has a registry of its own, so that a process can have several clouds.
type metrics struct {
	registry *prometheus.Registry
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	faults   prometheus.Counter
}

// newMetrics returns the metrics of a cloud with a version and the state of a core.
func newMetrics(version string, c *core) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mockcloud_calls_total",
			Help: "Calls of the REST API by method, route and status; status 0 means no response.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "mockcloud_call_duration_seconds",
			Help:    "Duration of calls, including faults.",
			Buckets: prometheus.DefBuckets,
		}, []string{"method", "route"}),
		faults: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "mockcloud_faults_fired_total",
			Help: "Number of times that a fault fired.",
		}),
	}
	servers := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "mockcloud_servers",
		Help: "Number of servers, including those that are BUILDING or DELETING.",
	}, func() float64 {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return float64(len(c.st.servers))
	})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "privatecloud_build_info",
		Help:        "Always 1; the labels are the version of the binary and the Go version that built it.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.calls, m.duration, m.faults, servers, build)
	return m
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete:
	default:
		// Clients can send any method: the number of label values must be bounded.
		method = "other"
	}
	m.calls.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
