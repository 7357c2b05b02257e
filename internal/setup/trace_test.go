package setup_test

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/internal/testkit/collector"
	"github.com/privatecloud/operator/internal/tracing"
	"github.com/privatecloud/operator/mockcloud"
)

// TestTraceOfACreatedVMReachesACollector creates a VM and stops the operator.
func TestTraceOfACreatedVMReachesACollector(tt *testing.T) {
	var received collector.Collector
	tt.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.HTTP(tt))
	r := newReplicas(tt)
	cloud, err := testkit.ServeCloud(mockcloud.Options{})
	r.Expect(err).NotTo(HaveOccurred())
	r.Cleanup(func() { r.Expect(cloud.Close()).To(Succeed()) })
	tracer, flush, err := tracing.Start(context.WithoutCancel(tt.Context()), "test", logr.Discard())
	r.Expect(err).NotTo(HaveOccurred())
	manager := r.start(r.user, setup.Options{Tracer: tracer})
	r.Expect(r.env.Client.Create(r.Context(), testkit.Cloud("default", cloud.URL))).To(Succeed())
	vm := testkit.VM("default", "traced")
	r.Expect(r.env.Client.Create(r.Context(), vm)).To(Succeed())
	r.Eventually(r.ready(vm)).Should(testkit.BeReady())
	r.Expect(manager.Stop()).To(Succeed())
	flush()

	names := map[string]string{}
	for _, span := range received.Spans() {
		names[string(span.GetSpanId())] = span.GetName()
	}
	var created []string
	for _, span := range received.Spans() {
		if span.GetName() == "POST /servers" && collector.Attribute(span, "privatecloud.cloud") == "default" {
			created = append(created, names[string(span.GetParentSpanId())])
		}
	}
	r.Expect(created).To(Equal([]string{"reconcile VM"}), "the spans around the calls that create the VM")
	r.Expect(names).To(ContainElement("GET /servers"), "the listing of the Cloud")
	r.Expect(names).To(ContainElement("reconcile Cloud"))
}
