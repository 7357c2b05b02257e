package v1alpha1

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// outcome is what came of asking for a name.
type outcome string

const (
	allowed    outcome = "allowed"
	prohibited outcome = "prohibited"
	taken      outcome = "taken"
	unchecked  outcome = "unchecked"
)

// sharedCount has no Cloud among its labels: users may name any that they like.
var sharedCount = newCount(metrics.Registry)

func newCount(registry prometheus.Registerer) func(outcome) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "privatecloud", Name: "admission_name_checks_total",
		Help: "Names of VMs that were to be stored, by what the cloud said: allowed, prohibited, taken; unchecked where it could not be asked.",
	}, []string{"outcome"})
	registry.MustRegister(counter)
	for _, known := range []outcome{allowed, prohibited, taken, unchecked} {
		counter.WithLabelValues(string(known))
	}
	return func(o outcome) { counter.WithLabelValues(string(o)).Inc() }
}
