package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// traced sets a Tracer, and returns where its spans go.
func traced() (*tracetest.InMemoryExporter, func(*Config)) {
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	return exporter, func(cfg *Config) { cfg.Tracer = provider.Tracer("test") }
}

// described is what tests compare of a span.
type described struct {
	Name, Status string
	Attributes   map[string]string
	Events       []string
}

// describe returns the spans that have ended, without times.
func describe(exporter *tracetest.InMemoryExporter) []described {
	var all []described
	for _, span := range exporter.GetSpans() {
		d := described{Name: span.Name, Status: span.Status.Code.String(), Attributes: map[string]string{}}
		for _, a := range span.Attributes {
			if a.Key != "privatecloud.limits.wait_seconds" {
				d.Attributes[string(a.Key)] = a.Value.String()
			}
		}
		for _, e := range span.Events {
			d.Events = append(d.Events, e.Name)
		}
		all = append(all, d)
	}
	return all
}

func TestSpanOfARequest(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		status string
		want   map[string]string
	}{
		"a success": {ok, "Unset", map[string]string{"http.response.status_code": "200"}},
		"a server that does not exist: no failure": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }, "Unset",
			map[string]string{"http.response.status_code": "404"},
		},
		"a failure of the cloud": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("X-Request-Id", "answer-1")
				w.WriteHeader(http.StatusInternalServerError)
			}, "Error",
			map[string]string{"http.response.status_code": "500", "error.type": "500", "privatecloud.answer_id": "answer-1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			exporter, tracer := traced()
			transport := newTransport(t, c.answer, tracer)
			if err := get(WithCall(t.Context(), Call{Route: "/servers/{id}"}), transport); err != nil {
				t.Fatalf("get: %v", err)
			}
			want := described{Name: "GET /servers/{id}", Status: c.status, Events: []string{"admitted"}, Attributes: c.want}
			want.Attributes["privatecloud.cloud"], want.Attributes["http.request.method"] = "test", "GET"
			want.Attributes["url.template"] = "/servers/{id}"
			if diff := cmp.Diff([]described{want}, describe(exporter)); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSpanHasNoSecretAndCloudGetsNoTrace sends secrets wherever a request and its
// answer can have them.
func TestSpanHasNoSecretAndCloudGetsNoTrace(t *testing.T) {
	var got http.Header
	exporter, tracer := traced()
	transport := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("X-Request-Id", "echo "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.Header().Set("Set-Cookie", "session=sekret")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "sekret")
	}, tracer)
	ctx := WithCall(t.Context(), Call{Route: "/servers"})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://user:sekret@cloud.test/sekret?token=sekret", strings.NewReader(`{"userData":"sekret"}`))
	if err != nil {
		t.Fatalf("NewRequest: %v", err)
	}
	req.Header.Set("Authorization", "Bearer sekret")
	req.Header.Set("X-Auth-Token", "sekret")
	req.Header.Set("X-Request-Id", "request-1")
	resp, err := transport.Client().Do(req)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	_ = resp.Body.Close()
	spans := exporter.GetSpans()
	if len(spans) != 1 || describe(exporter)[0].Attributes["privatecloud.request_id"] != "request-1" {
		t.Errorf("spans %v, want one with the request id", spans)
	}
	if text := fmt.Sprintf("%+v", spans); strings.Contains(text, "sekret") {
		t.Errorf("a span has a secret: %s", text)
	}
	for _, name := range []string{"Traceparent", "Tracestate", "Baggage"} {
		if got.Get(name) != "" {
			t.Errorf("the cloud got the header %s", name)
		}
	}
}

func TestSpanOfARequestWithoutAnswer(t *testing.T) {
	exporter, tracer := traced()
	transport := newTransport(t, nil, tracer, func(cfg *Config) { cfg.Base = failing(errors.New("connection reset, token sekret")) })
	if err := get(WithCall(t.Context(), Call{Route: "/servers"}), transport); err == nil {
		t.Fatal("no error")
	}
	transport.Hold(time.Minute)
	if err := get(WithCall(t.Context(), Call{Route: "/servers"}), transport); err == nil {
		t.Fatal("no error while the cloud asked to wait")
	}
	spans := describe(exporter)
	if len(spans) != 2 {
		t.Fatalf("spans %v, want two", spans)
	}
	type result struct{ Status, Type, Events string }
	var got []result
	for _, span := range spans {
		got = append(got, result{span.Status, span.Attributes["error.type"], strings.Join(span.Events, ",")})
	}
	want := []result{{"Error", "Unavailable", "admitted"}, {"Error", "Throttled", ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a request that failed and one that was not sent (-want +got):\n%s", diff)
	}
	if text := fmt.Sprintf("%+v", exporter.GetSpans()); strings.Contains(text, "sekret") {
		t.Errorf("a span has the text of an error: %s", text)
	}
}

func TestSpanShowsTheWaitForTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter, tracer := traced()
		transport := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
			Sleep(r.Context(), 3*time.Second)
			ok(w, r)
		}, tracer, limited(Limits{RequestsPerSecond: 0.2, Burst: 1, MaxInFlight: 1}))
		ctx := WithCall(t.Context(), Call{Route: "/servers", CloudWide: true})
		for range 2 {
			if err := get(ctx, transport); err != nil {
				t.Fatalf("get: %v", err)
			}
		}
		var waits []string
		for _, span := range exporter.GetSpans() {
			for _, a := range span.Attributes {
				if a.Key == "privatecloud.limits.wait_seconds" {
					waits = append(waits, fmt.Sprintf("%s of %s", a.Value.String(), span.EndTime.Sub(span.StartTime)))
				}
			}
		}
		if diff := cmp.Diff([]string{"0 of 3s", "2 of 5s"}, waits); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
	})
}

func TestSpanEndsWhenTheAnswerIsReadOrTheStreamBegins(t *testing.T) {
	for name, c := range map[string]struct {
		call Call
		want int
	}{
		"a call":      {Call{}, 0},
		"a stream":    {Call{Stream: true}, 1},
		"a long poll": {Call{LongPoll: true}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			exporter, tracer := traced()
			transport := newTransport(t, ok, tracer)
			req, err := http.NewRequestWithContext(WithCall(t.Context(), c.call), http.MethodGet, endpoint, nil)
			if err != nil {
				t.Fatalf("NewRequest: %v", err)
			}
			resp, err := transport.RoundTrip(req)
			if err != nil {
				t.Fatalf("RoundTrip: %v", err)
			}
			if got := len(exporter.GetSpans()); got != c.want {
				t.Errorf("%d spans have ended before the body is closed, want %d", got, c.want)
			}
			_ = resp.Body.Close()
			if got := len(exporter.GetSpans()); got != 1 {
				t.Errorf("%d spans have ended, want 1", got)
			}
		})
	}
}

func TestRetryIsAnEventOfTheReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exporter, tracer := traced()
		var cfg Config
		tracer(&cfg)
		ctx, span := cfg.Tracer.Start(t.Context(), "reconcile")
		Pause(ctx, 1)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		Pause(ended, 2)
		span.End()
		if diff := cmp.Diff([]string{"try again"}, describe(exporter)[0].Events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}
