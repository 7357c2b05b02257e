package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

func (h *harness) trace() *tracetest.InMemoryExporter {
	exporter := tracetest.NewInMemoryExporter()
	h.reconciler.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter), sdktrace.WithSampler(sdktrace.AlwaysSample())).Tracer("test")
	return exporter
}

func TestSpanOfAReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		steps   []string
		outcome error
		paused  bool
		want    map[string]string
		status  string
	}{
		"in sync":  {steps: []string{"one", "two"}, want: map[string]string{"outcome": "InSync", "steps": `["one","two"]`}},
		"waits":    {outcome: reconciler.Wait(time.Minute, "Creating", "sekret"), want: map[string]string{"outcome": "Wait", "reason": "Creating"}},
		"blocked":  {outcome: reconciler.Blocked("Cloud/a", "CloudNotReady", "sekret"), want: map[string]string{"outcome": "Blocked", "reason": "CloudNotReady"}},
		"stalled":  {outcome: reconciler.Stalled("Lost", 0, errors.New("sekret")), want: map[string]string{"outcome": "Stalled", "reason": "Lost"}},
		"unknown":  {outcome: reconciler.ErrUnknown, want: map[string]string{"outcome": "Unknown"}},
		"conflict": {outcome: conflict, want: map[string]string{"outcome": "Conflict"}},
		"an error": {outcome: errors.New("sekret"), want: map[string]string{"outcome": "Error"}, status: "Error"},
		"paused":   {paused: true, want: map[string]string{"outcome": "Skipped"}},
	} {
		t.Run(name, func(t *testing.T) {
			vm := example()
			if c.paused {
				paused(vm)
			}
			h := newHarness(t, vm)
			exporter := h.trace()
			h.kind.plan = func() ([]string, error) { return c.steps, c.outcome }
			_, _ = h.reconcile()
			spans := exporter.GetSpans()
			if len(spans) != 1 {
				t.Fatalf("%d spans, want 1", len(spans))
			}
			got := map[string]string{}
			for _, a := range spans[0].Attributes {
				got[strings.TrimPrefix(string(a.Key), "privatecloud.")] = a.Value.String()
			}
			c.want["kind"], c.want["name"], c.want["k8s.namespace.name"], c.want["reconcile_id"] = "VM", "a", "ns", ""
			if c.steps == nil {
				c.want["steps"] = "[]"
			}
			equal(t, "attributes", c.want, got)
			equal(t, "name", "reconcile VM", spans[0].Name)
			equal(t, "status is Error", c.status == "Error", spans[0].Status.Code.String() == "Error")
			if text := fmt.Sprintf("%+v", spans); strings.Contains(text, "sekret") {
				t.Errorf("the span has a message: %s", text)
			}
		})
	}
}

func TestLogLinesOfATracedReconcileHaveItsTraceID(t *testing.T) {
	for name, traced := range map[string]bool{"traced": true, "not traced": false} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, example())
			id := "traceID"
			var exporter *tracetest.InMemoryExporter
			if traced {
				exporter = h.trace()
			}
			h.kind.plan = func() ([]string, error) {
				return []string{"one"}, reconciler.Wait(time.Minute, pcapi.ProgressingReason, "x")
			}
			var lines []string
			logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			if _, err := h.reconciler.Reconcile(log.IntoContext(context.WithoutCancel(t.Context()), logger), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}}); err != nil {
				t.Fatalf("Reconcile: %v", err)
			}
			if traced {
				id = exporter.GetSpans()[0].SpanContext.TraceID().String()
			}
			if len(lines) == 0 {
				t.Fatal("nothing is logged")
			}
			for _, line := range lines {
				if strings.Contains(line, id) != traced {
					t.Errorf("the trace id %s in a line: %t, want %t: %s", id, !traced, traced, line)
				}
			}
		})
	}
}
