package transport

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/privatecloud/operator/internal/cloud"
)

type startedKey struct{}

// traceCalls makes a span of each request, from when it begins to wait for the limits
// until its answer is read; of a Stream and a LongPoll until the answer begins. Each
// try of a call has its own. A span holds neither URL nor bodies, and of the headers
// the request ids alone, since the others may hold secrets. The cloud gets no header
// that names the trace.
func traceCalls(next http.RoundTripper, tracer trace.Tracer, cloudName string, classify func(context.Context, error) *cloud.Error) http.RoundTripper {
	if tracer == nil {
		return next
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		call := callOf(req.Context())
		ctx, span := tracer.Start(req.Context(), req.Method+" "+call.Route, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("privatecloud.cloud", cloudName),
			attribute.String("http.request.method", req.Method),
			attribute.String("url.template", call.Route),
		))
		if !span.IsRecording() {
			return next.RoundTrip(req.WithContext(ctx))
		}
		if id := req.Header.Get("X-Request-Id"); id != "" {
			span.SetAttributes(attribute.String("privatecloud.request_id", id))
		}
		resp, err := next.RoundTrip(req.WithContext(context.WithValue(ctx, startedKey{}, time.Now())))
		if err != nil {
			failSpan(span, string(classify(req.Context(), err).Kind))
			span.End()
			return nil, err
		}
		traceAnswer(span, req, resp)
		if call.Stream || call.LongPoll {
			span.End()
			return resp, nil
		}
		onClose(resp, func() { span.End() })
		return resp, nil
	})
}

func traceAnswer(span trace.Span, req *http.Request, resp *http.Response) {
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if id := answerID(req, resp); id != "" {
		span.SetAttributes(attribute.String("privatecloud.answer_id", id))
	}
	// The operator looks for what is gone, so that a 404 is no failure.
	if resp.StatusCode >= http.StatusBadRequest && resp.StatusCode != http.StatusNotFound {
		failSpan(span, strconv.Itoa(resp.StatusCode))
	}
}

func failSpan(span trace.Span, reason string) {
	span.SetAttributes(attribute.String("error.type", reason))
	span.SetStatus(codes.Error, reason)
}

// traceAdmitted records in the span of a request that the limits let it pass, and how
// long it waited for them.
func traceAdmitted(next http.RoundTripper, tracer trace.Tracer) http.RoundTripper {
	if tracer == nil {
		return next
	}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if started, ok := req.Context().Value(startedKey{}).(time.Time); ok {
			span := trace.SpanFromContext(req.Context())
			span.AddEvent("admitted")
			span.SetAttributes(attribute.Float64("privatecloud.limits.wait_seconds", time.Since(started).Seconds()))
		}
		return next.RoundTrip(req)
	})
}

// traceRetry records in the span of a reconcile that one of its calls is tried again.
func traceRetry(ctx context.Context, try int) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("try again", trace.WithAttributes(attribute.Int("try", try)))
	}
}
