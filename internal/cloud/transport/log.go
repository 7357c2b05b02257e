package transport

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxLoggedID bounds the request id of an answer in the log, in runes.
const maxLoggedID = 128

// logRequests logs a line at V(1) when an exchange is over. Of headers and
// bodies it logs the request ids alone, since the others may hold secrets.
func logRequests(next http.RoundTripper, log logr.Logger, classify func(context.Context, error) *cloud.Error) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		log := log.V(1)
		if !log.Enabled() {
			return next.RoundTrip(req)
		}
		start := time.Now()
		write := func(result ...any) {
			fields := []any{
				"method", req.Method, "route", callOf(req.Context()).Route, "requestID", req.Header.Get("X-Request-Id"),
				"duration", time.Since(start).Round(time.Microsecond).String(),
			}
			if span := trace.SpanContextFromContext(req.Context()); span.IsSampled() {
				fields = append(fields, "traceID", span.TraceID().String())
			}
			log.Info("called the cloud", append(fields, result...)...)
		}
		resp, err := next.RoundTrip(req)
		if err != nil {
			write("kind", classify(req.Context(), err).Kind)
			return nil, err
		}
		onClose(resp, func() {
			write("status", resp.StatusCode, "answerID", answerID(req, resp))
		})
		return resp, nil
	})
}

// answerID returns the request id of an answer in a form for the log, without the
// tokens of the request: a cloud may answer with any header of it.
func answerID(req *http.Request, resp *http.Response) string {
	_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	redactor := NewRedactor(token, req.Header.Get("X-Auth-Token"), req.Header.Get("X-Subject-Token"))
	return redactor.Redact(Truncate(Printable(resp.Header.Get("X-Request-Id")), maxLoggedID))
}
