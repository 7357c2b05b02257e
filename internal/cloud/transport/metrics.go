package transport

import (
	"net/http"
	"strconv"
	"sync"
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

	mu sync.RWMutex
	// clouds holds the series of each Cloud, until Forget.
	clouds map[string]*series
}

// series are the metrics of one Cloud. Nothing is recorded any more once the Cloud
// is forgotten: a request that ends later would bring its series back.
type series struct {
	metrics *Metrics
	cloud   string
	// forgotten is guarded by Metrics.mu.
	forgotten bool
}

// NewMetrics registers the metrics. It panics when reg has them already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		clouds: map[string]*series{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "privatecloud_api_requests_total",
			Help: "Requests sent to a cloud, by status; code is none where no answer came, and other for a status that HTTP does not define.",
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

// Forget drops the series of a Cloud that is gone. Transports that were made for it
// before record nothing any more.
func (m *Metrics) Forget(cloud string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.clouds[cloud]; known != nil {
		known.forgotten = true
		delete(m.clouds, cloud)
	}
	match := prometheus.Labels{"cloud": cloud}
	m.requests.DeletePartialMatch(match)
	m.duration.DeletePartialMatch(match)
	m.inFlight.DeletePartialMatch(match)
	m.until.DeletePartialMatch(match)
}

// of returns the series of a Cloud; nil, which records nothing, if m is nil.
func (m *Metrics) of(cloud string) *series {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.clouds[cloud]
	if known == nil {
		known = &series{metrics: m, cloud: cloud}
		m.clouds[cloud] = known
	}
	return known
}

// record calls f unless the Cloud is forgotten.
func (s *series) record(f func(m *Metrics)) {
	if s == nil {
		return
	}
	s.metrics.mu.RLock()
	defer s.metrics.mu.RUnlock()
	if !s.forgotten {
		f(s.metrics)
	}
}

func (s *series) throttled(until time.Time) {
	s.record(func(m *Metrics) { m.until.WithLabelValues(s.cloud).Set(float64(until.UnixMilli()) / 1000) })
}

// measure counts the requests that are sent, and how long their exchanges last.
func measure(next http.RoundTripper, s *series) http.RoundTripper {
	if s == nil {
		return next
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		start, call := time.Now(), callOf(req.Context())
		route := call.Route
		s.record(func(m *Metrics) { m.inFlight.WithLabelValues(s.cloud).Inc() })
		finish := func(code string) {
			s.record(func(m *Metrics) {
				m.inFlight.WithLabelValues(s.cloud).Dec()
				m.requests.WithLabelValues(s.cloud, req.Method, route, code).Inc()
				if !call.Stream && !call.LongPoll {
					m.duration.WithLabelValues(s.cloud, req.Method, route).Observe(time.Since(start).Seconds())
				}
			})
		}
		resp, err := next.RoundTrip(req)
		if err != nil {
			finish("none")
			return nil, err
		}
		onClose(resp, func() { finish(codeLabel(resp.StatusCode)) })
		return resp, nil
	})
}

// codeLabel returns the label of a status. Those that HTTP does not define share
// one, so that a cloud cannot make a series for each number.
func codeLabel(status int) string {
	if http.StatusText(status) == "" {
		return "other"
	}
	return strconv.Itoa(status)
}
