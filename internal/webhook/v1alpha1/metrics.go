package v1alpha1

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// outcome is the result of a name check.
type outcome string

const (
	allowed    outcome = "allowed"
	prohibited outcome = "prohibited"
	taken      outcome = "taken"
	unchecked  outcome = "unchecked"
)

// sharedCount has no label for the Cloud: users can refer to Clouds that do not
// exist, so the number of series would have no bound.
var sharedCount = newCount(metrics.Registry)

func newCount(registry prometheus.Registerer) func(outcome) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "privatecloud", Name: "admission_name_checks_total",
		Help: "Name checks of VMs at admission, by outcome: allowed, prohibited, taken; unchecked if the cloud could not be called or did not answer.",
	}, []string{"outcome"})
	registry.MustRegister(counter)
	for _, o := range []outcome{allowed, prohibited, taken, unchecked} {
		counter.WithLabelValues(string(o))
	}
	return func(o outcome) { counter.WithLabelValues(string(o)).Inc() }
}
