package cloud

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// gauges are the metrics of each Cloud.
type gauges struct {
	servers *prometheus.GaugeVec
	ready   *prometheus.GaugeVec
	braked  *prometheus.GaugeVec
	// insecure is 1 while the condition Insecure is True.
	insecure *prometheus.GaugeVec
	// incomplete is 1 while the condition Conformant has the reason ListingIncomplete.
	incomplete *prometheus.GaugeVec
	listed     *prometheus.GaugeVec
	took       *prometheus.GaugeVec
	// watching and changes are set by the watches.
	watching *prometheus.GaugeVec
	changes  *prometheus.CounterVec
}

var sharedGauges = newGauges(metrics.Registry)

func newGauges(registry prometheus.Registerer) *gauges {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "privatecloud", Name: name, Help: help}, append([]string{"cloud"}, labels...))
		registry.MustRegister(g)
		return g
	}
	changes := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "privatecloud", Name: "watch_changes_total", Help: "Changes of servers that the cloud reported by itself.",
	}, []string{"cloud"})
	registry.MustRegister(changes)
	return &gauges{
		changes:    changes,
		watching:   gauge("watch_running", "1 while the cloud reports changes of servers by itself, 0 while that fails."),
		servers:    gauge("servers", "Servers at the last complete listing, by whose they are: managed, orphaned, other.", "owner"),
		ready:      gauge("cloud_ready", "1 while the cloud can be used."),
		braked:     gauge("cloud_braked", "1 while the brake is on and nothing is created or deleted."),
		insecure:   gauge("cloud_insecure", "1 while the spec allows calls without encryption, or does not have the certificate verified."),
		incomplete: gauge("cloud_listing_incomplete", "1 while the listing lacks servers that the cloud returns by id."),
		listed:     gauge("inventory_timestamp_seconds", "When the last complete listing was begun, or later what the cloud reported was compared with it."),
		took:       gauge("inventory_duration_seconds", "How long the last complete listing took."),
	}
}

// reported sets the metrics of a Cloud. One without the finalizer has none: nothing would
// remove them when it is deleted.
func (k *kind) reported(c *pcapi.Cloud, obs *observation, outcome error) {
	if controllerutil.ContainsFinalizer(c, pcapi.CloudFinalizer) {
		k.gauge.set(c, obs, outcome)
	}
}

func (g *gauges) set(c *pcapi.Cloud, obs *observation, outcome error) {
	g.ready.WithLabelValues(c.Name).Set(truth(ready(outcome)))
	g.braked.WithLabelValues(c.Name).Set(truth(c.Status.BrakedSnapshot != ""))
	reason, _ := insecure(c)
	g.insecure.WithLabelValues(c.Name).Set(truth(reason != ""))
	g.incomplete.WithLabelValues(c.Name).Set(truth(reportsIncomplete(c)))
	if obs.fresh == nil {
		return
	}
	// Two VMs can import the same server, so that more are managed than exist.
	other := max(obs.counts.Known-obs.counts.Managed-obs.counts.Orphaned, 0)
	for owner, n := range map[string]int32{"managed": obs.counts.Managed, "orphaned": obs.counts.Orphaned, "other": other} {
		g.servers.WithLabelValues(c.Name, owner).Set(float64(n))
	}
	g.listed.WithLabelValues(c.Name).Set(float64(obs.freshAt().UnixNano()) / float64(time.Second))
	g.took.WithLabelValues(c.Name).Set(obs.fresh.Took.Seconds())
}

func (g *gauges) forget(name string) {
	for _, vec := range []*prometheus.GaugeVec{g.servers, g.ready, g.braked, g.insecure, g.incomplete, g.listed, g.took} {
		vec.DeletePartialMatch(prometheus.Labels{"cloud": name})
	}
	g.changes.DeletePartialMatch(prometheus.Labels{"cloud": name})
	g.unwatch(name)
}

// unwatch removes the metric of a watch that is not wanted any more.
func (g *gauges) unwatch(name string) {
	g.watching.DeletePartialMatch(prometheus.Labels{"cloud": name})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
