// Package metricsapi serves the CPU utilization of VM groups with the custom
// metrics API, from which HorizontalPodAutoscalers read it.
package metricsapi

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// The metrics of a VmGroup, in percent of the CPU of one member. They do not exist
// while the utilization is not known: an autoscaler then does not scale the group.
const (
	// MeanMetric is status.cpuUtilization of the group, 0-100.
	MeanMetric = "cpu_utilization"
	// SumMetric is the sum of status.cpuUtilization of the members, without those
	// whose utilization is not known. The averageValue of an autoscaler divides it
	// by the number of members.
	SumMetric = "cpu_utilization_sum"
)

// groups is the resource that has the metrics.
var groups = pcapi.GroupVersion.WithResource("vmgroups").GroupResource()

// Provider measures VmGroups. It is safe for concurrent use.
type Provider struct {
	reader client.Reader
	now    func() time.Time
}

var _ provider.CustomMetricsProvider = &Provider{}

// NewProvider returns a Provider that reads VmGroups, and VMs by GroupIndex. now
// returns the timestamp of values.
func NewProvider(reader client.Reader, now func() time.Time) *Provider {
	return &Provider{reader: reader, now: now}
}

// ListAllMetrics returns the names of the metrics.
func (p *Provider) ListAllMetrics() []provider.CustomMetricInfo {
	return []provider.CustomMetricInfo{
		{GroupResource: groups, Namespaced: true, Metric: MeanMetric},
		{GroupResource: groups, Namespaced: true, Metric: SumMetric},
	}
}

// GetMetricByName returns a metric of one group. The error has the reason NotFound
// if the metric or the group does not exist or the utilization is not known.
func (p *Provider) GetMetricByName(
	ctx context.Context, name types.NamespacedName, info provider.CustomMetricInfo, metricSelector labels.Selector,
) (*custom_metrics.MetricValue, error) {
	if !serves(info, metricSelector) {
		return nil, provider.NewMetricNotFoundError(info.GroupResource, info.Metric)
	}
	var group pcapi.VmGroup
	if err := p.reader.Get(ctx, name, &group); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, notFound(info, name.Name, "there is no such group")
		}
		return nil, fmt.Errorf("read VmGroup %s: %w", name, err)
	}
	percent, known, err := p.measure(ctx, &group, info.Metric)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, notFound(info, name.Name, "the CPU use of none of its members is known")
	}
	return p.value(&group, info.Metric, percent), nil
}

// GetMetricBySelector returns a metric of the groups of a namespace that match the
// selector, except those whose utilization is not known. The error has the reason
// NotFound if the metric does not exist.
func (p *Provider) GetMetricBySelector(
	ctx context.Context, namespace string, selector labels.Selector, info provider.CustomMetricInfo, metricSelector labels.Selector,
) (*custom_metrics.MetricValueList, error) {
	if !serves(info, metricSelector) {
		return nil, provider.NewMetricNotFoundError(info.GroupResource, info.Metric)
	}
	var found pcapi.VmGroupList
	if err := p.reader.List(ctx, &found, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list VmGroups of namespace %s: %w", namespace, err)
	}
	values := &custom_metrics.MetricValueList{Items: []custom_metrics.MetricValue{}}
	for i := range found.Items {
		group := &found.Items[i]
		percent, known, err := p.measure(ctx, group, info.Metric)
		if err != nil {
			return nil, err
		}
		if known {
			values.Items = append(values.Items, *p.value(group, info.Metric, percent))
		}
	}
	return values, nil
}

// serves reports whether a metric is served. Metrics have no labels.
func serves(info provider.CustomMetricInfo, metricSelector labels.Selector) bool {
	return info.GroupResource == groups && info.Namespaced && (info.Metric == MeanMetric || info.Metric == SumMetric) &&
		metricSelector.Matches(labels.Set{})
}

// measure returns the value of a metric in percent, and whether it is known.
func (p *Provider) measure(ctx context.Context, group *pcapi.VmGroup, metric string) (percent int64, known bool, err error) {
	if metric == MeanMetric {
		if group.Status.CPUUtilization == nil {
			return 0, false, nil
		}
		return int64(*group.Status.CPUUtilization), true, nil
	}
	var members pcapi.VMList
	if err := p.reader.List(ctx, &members, client.InNamespace(group.Namespace), client.MatchingFields{GroupIndex: string(group.UID)}); err != nil {
		return 0, false, fmt.Errorf("list the members of VmGroup %s/%s: %w", group.Namespace, group.Name, err)
	}
	for i := range members.Items {
		if use := members.Items[i].Status.CPUUtilization; use != nil {
			percent += int64(*use)
			known = true
		}
	}
	return percent, known, nil
}

func (p *Provider) value(group *pcapi.VmGroup, metric string, percent int64) *custom_metrics.MetricValue {
	return &custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{
			APIVersion: pcapi.GroupVersion.String(), Kind: "VmGroup", Namespace: group.Namespace, Name: group.Name, UID: group.UID,
		},
		Metric:    custom_metrics.MetricIdentifier{Name: metric},
		Timestamp: metav1.NewTime(p.now()),
		Value:     *resource.NewQuantity(percent, resource.DecimalSI),
	}
}

// notFound returns the error of the custom metrics API with a reason, which becomes
// the message of the condition of the autoscaler.
func notFound(info provider.CustomMetricInfo, name, reason string) error {
	err := provider.NewMetricNotFoundForError(info.GroupResource, info.Metric, name)
	err.ErrStatus.Message += ": " + reason
	return err
}
