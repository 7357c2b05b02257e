package tracing

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/testkit/collector"
)

// setenv sets the variables, and clears the others that Start reads first.
func setenv(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
		"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
	} {
		t.Setenv(name, variables[name])
	}
}

func TestProtocol(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, c := range map[string]struct {
		env       map[string]string
		want, err string
	}{
		"nothing is set: off":                  {map[string]string{}, "", ""},
		"a protocol without an endpoint: off":  {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", ""},
		"an endpoint: HTTP":                    {map[string]string{endpoint: "http://collector:4318"}, httpProtocol, ""},
		"an endpoint of traces: HTTP":          {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://c/v1/traces"}, httpProtocol, ""},
		"gRPC":                                 {map[string]string{endpoint: "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, grpcProtocol, ""},
		"the protocol of traces comes first":   {map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "x", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, grpcProtocol, ""},
		"the SDK is disabled: off":             {map[string]string{endpoint: "http://c", "OTEL_SDK_DISABLED": "TRUE"}, "", ""},
		"the exporter is none: off":            {map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "none"}, "", ""},
		"a ratio":                              {map[string]string{endpoint: "http://c", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01"}, httpProtocol, ""},
		"another exporter: error":              {map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "zipkin"}, "", "set otlp or none"},
		"an endpoint without a scheme: error":  {map[string]string{endpoint: "collector:4317"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL such as http://collector:4318"},
		"a password in a bad endpoint: hidden": {map[string]string{endpoint: "grpc://user:sekret@c"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"},
		"another protocol: error":              {map[string]string{endpoint: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, "", "set http/protobuf or grpc"},
		"another sampler: error":               {map[string]string{endpoint: "http://c", "OTEL_TRACES_SAMPLER": "some"}, "", "OTEL_TRACES_SAMPLER is not"},
		"a ratio above 1: error":               {map[string]string{endpoint: "http://c", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "10"}, "", "from 0 to 1"},
		"a ratio that is missing: error":       {map[string]string{endpoint: "http://c", "OTEL_TRACES_SAMPLER": "traceidratio"}, "", "from 0 to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := protocol(func(name string) string { return c.env[name] })
			if got != c.want || (err == nil) != (c.err == "") {
				t.Errorf("%q, %v; want %q, %q", got, err, c.want, c.err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "sekret")) {
				t.Errorf("error %q, want %q", err, c.err)
			}
		})
	}
}

func TestStartWithoutEndpointReturnsNoTracer(t *testing.T) {
	setenv(t, nil)
	tracer, flush, err := Start(t.Context(), "v1", logr.Discard())
	if tracer != nil || err != nil {
		t.Errorf("%v, %v; want neither", tracer, err)
	}
	flush()
}

func TestSpansReachACollectorWhenTheProcessStops(t *testing.T) {
	for protocol, serve := range map[string]func(*collector.Collector, *testing.T) string{
		httpProtocol: (*collector.Collector).HTTP, grpcProtocol: (*collector.Collector).GRPC,
	} {
		t.Run(protocol, func(t *testing.T) {
			var c collector.Collector
			setenv(t, map[string]string{
				"OTEL_EXPORTER_OTLP_ENDPOINT": serve(&c, t), "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
				"OTEL_RESOURCE_ATTRIBUTES": "k8s.cluster.name=east,service.version=v2",
			})
			tracer, flush, err := Start(t.Context(), "v1", logr.Discard())
			if err != nil {
				t.Fatalf("Start: %v", err)
			}
			_, span := tracer.Start(t.Context(), "one")
			span.End()
			flush()
			got := c.Spans()
			if len(got) != 1 || got[0].GetName() != "one" {
				t.Fatalf("spans %v, want one", got)
			}
			resource := map[string]string{}
			for _, attribute := range c.Resources()[0].GetResource().GetAttributes() {
				if key := attribute.GetKey(); !strings.HasPrefix(key, "telemetry.") && key != "service.instance.id" {
					resource[key] = attribute.GetValue().GetStringValue()
				}
			}
			want := map[string]string{"service.name": "private-cloud-operator", "service.version": "v2", "k8s.cluster.name": "east"}
			if diff := cmp.Diff(want, resource); diff != "" {
				t.Errorf("resource (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSamplerOfTheEnvironmentDropsSpans(t *testing.T) {
	var c collector.Collector
	setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.HTTP(t), "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"})
	tracer, flush, err := Start(t.Context(), "v1", logr.Discard())
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	_, span := tracer.Start(t.Context(), "one")
	span.End()
	flush()
	if got := c.Spans(); len(got) != 0 {
		t.Errorf("spans %v, want none", got)
	}
}

// lines returns a logger, and a function that returns the lines at level info.
func lines() (logr.Logger, func() string) {
	var text atomic.Value
	text.Store("")
	return funcr.New(func(_, args string) { text.Store(text.Load().(string) + args + "\n") }, funcr.Options{}), func() string { return text.Load().(string) }
}

// spans is more than the queue of the SDK holds.
const spans = 10_000

func TestCollectorThatAcceptsAndDoesNotAnswerBlocksNothing(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + listener.Addr().String()})
	log, logged := lines()
	tracer, flush, err := Start(t.Context(), "v1", log)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	start := time.Now()
	for range spans {
		_, span := tracer.Start(t.Context(), "one")
		span.End()
	}
	if took := time.Since(start); took > StopTimeout {
		t.Errorf("%d spans took %s", spans, took)
	}
	start = time.Now()
	flush()
	if took := time.Since(start); took > 2*StopTimeout {
		t.Errorf("the flush took %s, want at most %s", took, StopTimeout)
	}
	if got := strings.Count(logged(), "traces cannot be exported"); got != 1 {
		t.Errorf("%d lines say that the export fails, want one:\n%s", got, logged())
	}
}

func TestFailuresOfACollectorAreLoggedOnce(t *testing.T) {
	var refuse atomic.Bool
	exported := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer func() { exported <- struct{}{} }()
		if refuse.Load() {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, strings.Repeat("no ", 1000))
		}
	}))
	t.Cleanup(server.Close)
	setenv(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL})
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	log, logged := lines()
	tracer, flush, err := Start(t.Context(), "v1", log)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	export := func(refused bool) {
		t.Helper()
		refuse.Store(refused)
		_, span := tracer.Start(t.Context(), "one")
		span.End()
		<-exported
	}
	for range 3 {
		export(true)
	}
	export(false)
	flush()
	if got := strings.Count(logged(), "traces cannot be exported"); got != 1 {
		t.Errorf("%d lines say that the export fails, want one:\n%s", got, logged())
	}
	if got := strings.Count(logged(), "traces are exported again"); got != 1 {
		t.Errorf("%d lines say that it succeeds again, want one:\n%s", got, logged())
	}
	if len(logged()) > 2000 {
		t.Errorf("%d bytes are logged", len(logged()))
	}
}
