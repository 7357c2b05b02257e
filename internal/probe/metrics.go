package probe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of all probers of the process.
type Metrics struct {
	results  *prometheus.CounterVec
	delay    prometheus.Histogram
	targets  prometheus.Gauge
	excluded prometheus.Gauge
}

// NewMetrics registers the metrics. It panics when reg has them already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "privatecloud", Name: "probes_total", Help: "Connections to guests that were tried for readiness probes, by result.",
		}, []string{"result"}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "privatecloud", Name: "probe_delay_seconds",
			Help:    "How long after it was due a probe of a guest began.",
			Buckets: []float64{.1, 1, 5, 15, 60, 300, 900},
		}),
		targets: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "privatecloud", Name: "probe_targets", Help: "Guests that are probed.",
		}),
		excluded: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "privatecloud", Name: "probe_targets_excluded",
			Help: "Guests that are not probed because the cluster of the operator has their address, although their network is allowed.",
		}),
	}
	for _, result := range []Result{Open, Refused, NoAnswer, Unknown} {
		m.results.WithLabelValues(result.String())
	}
	reg.MustRegister(m.results, m.delay, m.targets, m.excluded)
	return m
}

func (m *Metrics) ended(result Result)       { m.results.WithLabelValues(result.String()).Inc() }
func (m *Metrics) begun(delay time.Duration) { m.delay.Observe(max(delay, 0).Seconds()) }
