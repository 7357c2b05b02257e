package transport

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the metrics of the requests to all clouds. Their labels hold
// route templates and names of Clouds, never ids.
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
			Help: "Unix time until which a cloud asked to wait; in the past or absent when it does not.",
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

func (m *Metrics) throttled(cloud string, until time.Time) {
	if m != nil {
		m.until.WithLabelValues(cloud).Set(float64(until.UnixMilli()) / 1000)
	}
}

// measure counts the requests that are sent, and how long their exchanges last.
func measure(next http.RoundTripper, m *Metrics, cloud string) http.RoundTripper {
	if m == nil {
		return next
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		start, route := time.Now(), callOf(req.Context()).Route
		inFlight := m.inFlight.WithLabelValues(cloud)
		inFlight.Inc()
		finish := func(code string) {
			inFlight.Dec()
			m.requests.WithLabelValues(cloud, req.Method, route, code).Inc()
			m.duration.WithLabelValues(cloud, req.Method, route).Observe(time.Since(start).Seconds())
		}
		resp, err := next.RoundTrip(req)
		if err != nil {
			finish("none")
			return nil, err
		}
		onClose(resp, func() { finish(strconv.Itoa(resp.StatusCode)) })
		return resp, nil
	})
}
