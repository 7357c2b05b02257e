// Package buildinfo reports which version a binary has and which Go built it.
package buildinfo

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// LogValues returns the keys and values of the first log line of a binary.
func LogValues(version string) []any {
	return []any{"version", version, "goVersion", runtime.Version()}
}

// NewCollector returns the gauge privatecloud_build_info, which is always 1 and
// has the labels version and goversion.
func NewCollector(version string) prometheus.Collector {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "privatecloud", Name: "build_info",
		Help:        "Always 1; the labels are the version of the binary and the Go version that built it.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	gauge.Set(1)
	return gauge
}
