package alerts_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
)

const operatorNamespace = "private-cloud-operator-system"

// TestEveryAlertFiresAndClears starts Prometheus before the manager, so that the alert
// about the manager fires first. All other faults are switched on at once, on different
// Clouds, and off again.
func TestEveryAlertFiresAndClears(tt *testing.T) {
	// A rule waits for 36 s at most, and a window is 18 s long: the timeout is for slow machines.
	t := testkit.NewT(tt, 4*time.Minute, 250*time.Millisecond)
	program(t, "prometheus") // before the API server starts
	log := &testkit.Buffer{}
	ctrl.SetLogger(zap.New(zap.WriteTo(log)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	rules := readRules(t)
	f := newFaults(t)
	metrics, err := testkit.FreeAddress()
	t.Expect(err).NotTo(HaveOccurred())
	p := startPrometheus(t, metrics.String(), rules.shortened(t), honorLabels(t))
	t.Eventually(p.names).Should(ConsistOf("NoLeader"), "alerts before the manager runs")
	startManager(t, f, metrics.String())
	f.prepare()
	t.Eventually(p.names).Should(BeEmpty(), "alerts while nothing fails")

	began := time.Now()
	f.begin()
	expected := f.expected()
	t.Expect(slices.Sorted(maps.Keys(expected))).To(Equal(slices.DeleteFunc(rules.alerts(), func(name string) bool { return name == "NoLeader" })),
		"alerts with a fault, and alerts")
	t.Eventually(observed(p, expected, queriesOf(t, "dashboard.json"), queriesOf(t, "dashboard-vms.json"))).Should(BeEmpty(),
		"alerts that did not fire, and queries of dashboards that returned nothing")

	t.Logf("all alerts fired within %v", time.Since(began))
	began = time.Now()
	f.end()
	t.Eventually(p.names).Should(BeEmpty(), "alerts that do not clear")
	t.Logf("all alerts cleared within %v", time.Since(began))
}

// observed returns a function that returns the alerts that have not fired yet with their
// labels, and the queries that have not returned anything.
func observed(p *prometheus, expected map[string]map[string]string, dashboards ...map[string]string) func(context.Context) ([]string, error) {
	alerts, queries := maps.Clone(expected), map[string]string{}
	for _, dashboard := range dashboards {
		maps.Copy(queries, dashboard)
	}
	return func(ctx context.Context) ([]string, error) {
		firing, err := p.firing(ctx)
		for _, a := range firing {
			name := a.Labels["alertname"]
			if unexpected(a) {
				return nil, StopTrying(fmt.Sprintf("alert %v", a.Labels))
			}
			if includes(a.Labels, alerts[name]) {
				delete(alerts, name)
			}
			if text := fmt.Sprint(a.Annotations); strings.Contains(text, "<error") || strings.Contains(text, "<no value>") {
				return nil, StopTrying("annotations of " + name + ": " + text)
			}
		}
		for panel, query := range queries {
			n, failure := p.series(ctx, query)
			if n > 0 {
				delete(queries, panel)
			}
			err = errors.Join(err, failure)
		}
		return append(slices.Sorted(maps.Keys(alerts)), slices.Sorted(maps.Keys(queries))...), err
	}
}

// includes reports whether the labels have all of want, which is not empty.
func includes(labels, want map[string]string) bool {
	for name, value := range want {
		if labels[name] != value {
			return false
		}
	}
	return len(want) > 0
}

// startManager starts the operator with leader election until the test ends. It serves
// metrics at an address.
func startManager(t *testkit.T, f *faults, metrics string) {
	t.Helper()
	user, err := f.env.OperatorConfig(t.Context(), operatorNamespace)
	t.Expect(err).NotTo(HaveOccurred())
	manager, err := testkit.StartManager(user, setup.Options{Namespace: operatorNamespace, Workers: 1}, func(options *ctrl.Options) {
		options.LeaderElection, options.LeaderElectionID = true, "private-cloud-operator.samplecontroller.k8s.io"
		options.LeaderElectionNamespace, options.LeaderElectionConfig = operatorNamespace, f.env.Config
		options.LeaderElectionReleaseOnCancel = true
		options.Metrics = metricsserver.Options{BindAddress: metrics}
	})
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { t.Expect(manager.Stop()).To(Succeed()) })
}
