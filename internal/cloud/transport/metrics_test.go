package transport

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricsCountRequestsByRouteAndStatus(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg)
	status := http.StatusOK
	c := newTransport(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }, func(cfg *Config) { cfg.Metrics = m })
	ctx := WithCall(t.Context(), Call{Route: "/servers/{id}"})
	for _, status = range []int{200, 404, 200} {
		if err := get(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	broken := newTransport(t, nil, func(cfg *Config) { cfg.Metrics, cfg.Base = m, failing(errors.New("broken")) })
	if err := get(ctx, broken); err == nil {
		t.Error("no error")
	}
	want := []string{"GET /servers/{id} 200: 2", "GET /servers/{id} 404: 1", "GET /servers/{id} none: 1"}
	if diff := cmp.Diff(want, requestCounts(t, reg)); diff != "" {
		t.Errorf("privatecloud_api_requests_total (-want +got):\n%s", diff)
	}
	if got := testutil.CollectAndCount(m.duration); got != 1 {
		t.Errorf("%d series of durations, want 1", got)
	}
	m.Forget("test")
	if got := requestCounts(t, reg); len(got) != 0 {
		t.Errorf("after Forget: %v", got)
	}
}

func TestUndefinedStatusesShareOneSeries(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg)
	status := 0
	c := newTransport(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }, func(cfg *Config) { cfg.Metrics = m })
	ctx := WithCall(t.Context(), Call{Route: "/servers/{id}"})
	for _, status = range []int{299, 418, 499, 567, 999} {
		if err := get(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"GET /servers/{id} 418: 1", "GET /servers/{id} other: 4"}, requestCounts(t, reg)); diff != "" {
		t.Errorf("privatecloud_api_requests_total (-want +got):\n%s", diff)
	}
}

func TestNilMetricsIsUsable(t *testing.T) {
	t.Parallel()
	var m *Metrics
	c := newTransport(t, ok, func(cfg *Config) { cfg.Metrics = m })
	if err := get(t.Context(), c); err != nil {
		t.Error(err)
	}
	c.Hold(defaultRetryAfter)
	m.Forget("test")
}

func TestMetricsCountRequestInFlightUntilBodyIsClosed(t *testing.T) {
	t.Parallel()
	m := NewMetrics(prometheus.NewPedanticRegistry())
	c := newTransport(t, ok, func(cfg *Config) { cfg.Metrics = m })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	inFlight := func() float64 { return testutil.ToFloat64(m.inFlight.WithLabelValues("test")) }
	if got := inFlight(); got != 1 {
		t.Errorf("%v in flight before the body is closed, want 1", got)
	}
	for range 2 {
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := inFlight(); got != 0 {
		t.Errorf("%v in flight after the body was closed twice, want 0", got)
	}
}

func TestMetricsDoNotHaveTheDurationOfWaits(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]Call{"a stream": {Stream: true}, "a long poll": {LongPoll: true}} {
		reg := prometheus.NewPedanticRegistry()
		c := newTransport(t, ok, func(cfg *Config) { cfg.Metrics = NewMetrics(reg) })
		if err := get(WithCall(t.Context(), call), c); err != nil {
			t.Fatal(err)
		}
		if n, err := testutil.GatherAndCount(reg, "privatecloud_api_request_duration_seconds"); err != nil || n != 0 || len(requestCounts(t, reg)) != 1 {
			t.Errorf("%s: %d durations and the requests %v, %v; want the request alone", name, n, requestCounts(t, reg), err)
		}
	}
}

func TestMetricsOfForgottenCloudStayAway(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg)
	c := newTransport(t, ok, func(cfg *Config) { cfg.Metrics = m })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	m.Forget("test")
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err := get(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Hold(defaultRetryAfter)
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 0 {
		t.Errorf("%d series of a forgotten Cloud, %v", n, err)
	}
	if len(m.clouds) != 0 {
		t.Errorf("%d Clouds are remembered", len(m.clouds))
	}
	again := newTransport(t, ok, func(cfg *Config) { cfg.Metrics = m })
	if err := get(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if got := requestCounts(t, reg); len(got) != 1 {
		t.Errorf("a new Cloud with the name of a forgotten one has the series %v, want one", got)
	}
}

func TestMetricsDoNotCountRefusedRequests(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	c := newTransport(t, ok, func(cfg *Config) { cfg.Metrics = NewMetrics(reg) })
	c.Hold(defaultRetryAfter)
	wantThrottled(t, get(t.Context(), c), heldDetail)
	if got := requestCounts(t, reg); len(got) != 0 {
		t.Errorf("counted %v", got)
	}
}

func requestCounts(t *testing.T, reg *prometheus.Registry) []string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		if family.GetName() != "privatecloud_api_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out = append(out, fmt.Sprintf("%s %s %s: %v", labels["method"], labels["route"], labels["code"], m.GetCounter().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}
