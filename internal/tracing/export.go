package tracing

import (
	"context"
	"sync/atomic"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxReported bounds the text of an error in the log, in runes: a collector may
// answer with anything.
const maxReported = 256

func newExporter(ctx context.Context, protocol string) (sdktrace.SpanExporter, error) {
	if protocol == grpcProtocol {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

// reporter logs when exports begin to fail, and when they succeed again. The SDK
// would write a line for each batch.
type reporter struct {
	sdktrace.SpanExporter
	log     logr.Logger
	failing atomic.Bool
}

// ExportSpans never fails: what happened is in the log.
func (r *reporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.report(r.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

func (r *reporter) report(err error) {
	failed := err != nil
	if r.failing.Swap(failed) == failed {
		return
	}
	if !failed {
		r.log.Info("traces are exported again")
		return
	}
	r.log.Info("traces cannot be exported: they are dropped until the collector accepts them",
		"error", transport.Truncate(transport.Printable(err.Error()), maxReported))
}
