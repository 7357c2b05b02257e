package tracing

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// StopTimeout is how long the function that Start returns waits for a collector.
const StopTimeout = 3 * time.Second

// scope names the operator's instrumentation in spans.
const scope = "github.com/privatecloud/operator"

// Start begins to export traces if the environment names an endpoint. It does not
// connect yet. It returns a nil Tracer if tracing is off, and a function that exports
// what is left and takes at most StopTimeout. Its errors name the variable that is
// wrong and what it may be.
//
// Spans are exported in the background. If a collector does not answer, spans
// beyond a bounded queue are dropped.
func Start(ctx context.Context, version string, log logr.Logger) (trace.Tracer, func(), error) {
	protocol, err := protocol(os.Getenv)
	if err != nil || protocol == "" {
		return nil, func() {}, err
	}
	described, err := describe(ctx, version)
	if err != nil {
		return nil, func() {}, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	exporter, err := newExporter(ctx, protocol)
	if err != nil {
		return nil, func() {}, fmt.Errorf("make the exporter of traces: %w", err)
	}
	reporter := &reporter{SpanExporter: exporter, log: log}
	otel.SetLogger(log)
	// What the SDK reports has to do with the export only.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(reporter.report))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(reporter), sdktrace.WithResource(described))
	log.Info("exporting traces", "protocol", protocol)
	return provider.Tracer(scope, trace.WithInstrumentationVersion(version)), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
		defer cancel()
		reporter.report(provider.Shutdown(ctx))
	}, nil
}

// describe returns what the spans say of this process. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override it.
func describe(ctx context.Context, version string) (*resource.Resource, error) {
	host, _ := os.Hostname() // in a cluster the name of the pod
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", "private-cloud-operator"),
			attribute.String("service.version", version),
			attribute.String("service.instance.id", host),
		),
		resource.WithFromEnv(),
	)
}
