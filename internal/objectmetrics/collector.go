package objectmetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// collector reports the objects of all managers of this process that lead. Tests run
// several.
type collector struct {
	objects, unready, deleting, oldest *prometheus.Desc
	toReady                            *prometheus.HistogramVec

	mu        sync.Mutex
	reporters map[*reporter]bool
}

var shared = newCollector(metrics.Registry)

func newCollector(registry prometheus.Registerer) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("privatecloud_"+name, help, append([]string{"kind", "namespace", "cloud"}, labels...), nil)
	}
	c := &collector{
		objects: desc("objects", "Objects by state, and by the summary condition that is True with the reason of Ready.", "state", "condition", "reason"),
		unready: prometheus.NewDesc("privatecloud_guests_not_ready", "VMs with a readiness probe whose guest is not ready, by the reason of GuestReady.",
			[]string{"namespace", "cloud", "reason"}, nil),
		deleting: desc("objects_deleting", "Objects whose deletion was requested and that still exist."),
		oldest:   desc("deletion_oldest_timestamp_seconds", "When the oldest deletion was requested of those that are not complete."),
		toReady: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "privatecloud", Name: "time_to_ready_seconds", Help: "Time from the creation of an object until it was Ready for the first time.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
		}, []string{"kind", "cloud"}),
		reporters: map[*reporter]bool{},
	}
	registry.MustRegister(c, c.toReady)
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.objects
	descs <- c.unready
	descs <- c.deleting
	descs <- c.oldest
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	sums := newTotals()
	c.mu.Lock()
	for r := range c.reporters {
		r.sums(sums)
	}
	c.mu.Unlock()
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for l, n := range sums.objects {
		gauge(c.objects, float64(n), l.kind, l.namespace, l.cloud, l.state, l.condition, l.reason)
	}
	for of, n := range sums.unready {
		gauge(c.unready, float64(n), of.namespace, of.cloud, of.reason)
	}
	for of, sum := range sums.deletions {
		gauge(c.deleting, float64(sum.n), of.kind, of.namespace, of.cloud)
		gauge(c.oldest, float64(sum.oldest.UnixMilli())/1000, of.kind, of.namespace, of.cloud)
	}
}

func (c *collector) add(r *reporter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reporters[r] = true
}

func (c *collector) remove(r *reporter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.reporters, r)
}

// becameReady records that an object became Ready for the first time.
func (c *collector) becameReady(kind, cloud string, after time.Duration) {
	c.toReady.WithLabelValues(kind, cloud).Observe(max(after, 0).Seconds())
}

// expectCloud makes the histograms of a Cloud, so that the first objects on it count in rates.
func (c *collector) expectCloud(cloud string) {
	for _, kind := range []string{"VM", "VmGroup", "Network", "VMSnapshot", "GPUInfo", "Cloud"} {
		c.toReady.WithLabelValues(kind, cloud)
	}
}

// forgetCloud removes the histograms of a Cloud that is deleted, or another manager's.
func (c *collector) forgetCloud(name string) {
	c.toReady.DeletePartialMatch(prometheus.Labels{"cloud": name})
}
