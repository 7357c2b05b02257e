// Package collector receives traces by OTLP, over HTTP and gRPC, for tests.
package collector

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Collector keeps what it receives.
type Collector struct {
	collectorpb.UnimplementedTraceServiceServer

	mu       sync.Mutex
	received []*tracepb.ResourceSpans
}

// Export implements the gRPC service.
func (c *Collector) Export(_ context.Context, req *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, req.GetResourceSpans()...)
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

// ServeHTTP implements OTLP over HTTP.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req collectorpb.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no export of traces", http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), &req)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// HTTP serves OTLP over HTTP until the test ends, and returns the endpoint.
func (c *Collector) HTTP(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL
}

// GRPC serves OTLP over gRPC until the test ends, and returns the endpoint.
func (c *Collector) GRPC(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return "http://" + listener.Addr().String()
}

// Resources returns what was received so far.
func (c *Collector) Resources() []*tracepb.ResourceSpans {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.received)
}

// Spans returns the spans that were received so far.
func (c *Collector) Spans() (spans []*tracepb.Span) {
	for _, resource := range c.Resources() {
		for _, scope := range resource.GetScopeSpans() {
			spans = append(spans, scope.GetSpans()...)
		}
	}
	return spans
}

// Attribute returns the text of an attribute of a span, empty if it has none.
func Attribute(span *tracepb.Span, key string) string {
	for _, attribute := range span.GetAttributes() {
		if attribute.GetKey() == key {
			return attribute.GetValue().GetStringValue()
		}
	}
	return ""
}
