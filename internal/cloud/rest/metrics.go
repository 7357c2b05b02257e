package rest

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what clients ask of their clouds. One set serves all clients.
// Its labels hold templates and names of Clouds, never ids.
type Metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
	until    *prometheus.GaugeVec
}

// NewMetrics registers the metrics. It panics when reg has them already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "privatecloud_api_requests_total",
			Help: "Requests sent to a cloud, by status; code is none where no answer came.",
		}, []string{"cloud", "method", "route", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "privatecloud_api_request_duration_seconds",
			Help:    "Time from sending a request to having read its answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"cloud", "method", "route"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "privatecloud_api_requests_in_flight",
			Help: "Requests to a cloud under way.",
		}, []string{"cloud"}),
		until: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "privatecloud_api_throttled_until_timestamp_seconds",
			Help: "Unix time until which a cloud asked to be left alone; in the past or absent when it does not.",
		}, []string{"cloud"}),
	}
	reg.MustRegister(m.requests, m.duration, m.inFlight, m.until)
	return m
}

// Forget drops the series of a Cloud that is gone.
func (m *Metrics) Forget(cloud string) {
	if m == nil {
		return
	}
	match := prometheus.Labels{"cloud": cloud}
	m.requests.DeletePartialMatch(match)
	m.duration.DeletePartialMatch(match)
	m.inFlight.DeletePartialMatch(match)
	m.until.DeletePartialMatch(match)
}

// began counts a request as under way, until the function it returns is called.
func (m *Metrics) began(cloud string) func(*call, *answer, time.Duration) {
	if m == nil {
		return func(*call, *answer, time.Duration) {}
	}
	inFlight := m.inFlight.WithLabelValues(cloud)
	inFlight.Inc()
	return func(call *call, got *answer, took time.Duration) {
		inFlight.Dec()
		code := "none"
		if got != nil {
			code = strconv.Itoa(got.status)
		}
		m.requests.WithLabelValues(cloud, call.method, call.route, code).Inc()
		m.duration.WithLabelValues(cloud, call.method, call.route).Observe(took.Seconds())
	}
}

func (m *Metrics) throttled(cloud string, until time.Time) {
	if m != nil {
		m.until.WithLabelValues(cloud).Set(float64(until.UnixMilli()) / 1000)
	}
}
