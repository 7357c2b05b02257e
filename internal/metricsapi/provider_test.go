package metricsapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const space = "shop"

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func group(namespace, name string, mean *int32) *pcapi.VmGroup {
	return &pcapi.VmGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name + "-uid"), Labels: map[string]string{"app": name},
		},
		Status: pcapi.VmGroupStatus{CPUUtilization: mean},
	}
}

// member is a VM that a group controls.
func member(owner *pcapi.VmGroup, name string, use *int32) *pcapi.VM {
	return &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: owner.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(owner, pcapi.GroupVersion.WithKind("VmGroup")),
		}},
		Status: pcapi.VMStatus{CPUUtilization: use},
	}
}

func newReader(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&pcapi.VM{}, GroupIndex, groupOf).
		WithInterceptorFuncs(funcs).Build()
}

// newProvider returns a provider with a group whose members have a utilization, one
// whose utilization is not known, one with a utilization of 0, a group with the
// same name in another namespace, and a VM without a group.
func newProvider(t *testing.T) *Provider {
	t.Helper()
	web, building, quiet := group(space, "web", new(int32(60))), group(space, "building", nil), group(space, "quiet", new(int32(0)))
	other := group("other", "web", new(int32(10)))
	single := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "single"}, Status: pcapi.VMStatus{CPUUtilization: new(int32(99))}}
	return NewProvider(newReader(t, interceptor.Funcs{},
		web, member(web, "web-1", new(int32(90))), member(web, "web-2", new(int32(31))), member(web, "web-3", nil),
		building, member(building, "building-1", nil),
		quiet, member(quiet, "quiet-1", new(int32(0))),
		other, member(other, "other-1", new(int32(10))),
		single,
	), func() time.Time { return noon })
}

func info(metric string) provider.CustomMetricInfo {
	return provider.CustomMetricInfo{GroupResource: groups, Namespaced: true, Metric: metric}
}

func value(namespace, name, metric string, percent int64) custom_metrics.MetricValue {
	return custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{
			APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "VmGroup", Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name + "-uid"),
		},
		Metric: custom_metrics.MetricIdentifier{Name: metric}, Timestamp: metav1.NewTime(noon), Value: *resource.NewQuantity(percent, resource.DecimalSI),
	}
}

func TestGetMetricByName(t *testing.T) {
	p := newProvider(t)
	tests := map[string]struct {
		namespace, name, metric string
		want                    int64
	}{
		"mean: status.cpuUtilization":                                           {space, "web", "cpu_utilization", 60},
		"sum: members whose utilization is known":                               {space, "web", "cpu_utilization_sum", 121},
		"mean of 0: returned":                                                   {space, "quiet", "cpu_utilization", 0},
		"sum of 0: returned":                                                    {space, "quiet", "cpu_utilization_sum", 0},
		"mean of a group of the same name in another namespace":                 {"other", "web", "cpu_utilization", 10},
		"sum of a group of the same name in another namespace: its own members": {"other", "web", "cpu_utilization_sum", 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := p.GetMetricByName(t.Context(), types.NamespacedName{Namespace: tc.namespace, Name: tc.name}, info(tc.metric), labels.Everything())
			if err != nil {
				t.Fatal(err)
			}
			want := value(tc.namespace, tc.name, tc.metric, tc.want)
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGetMetricByNameReturnsNotFound(t *testing.T) {
	p := newProvider(t)
	labelled, err := labels.Parse("host=a")
	if err != nil {
		t.Fatal(err)
	}
	vms := schema.GroupResource{Group: pcapi.GroupVersion.Group, Resource: "vms"}
	tests := map[string]struct {
		name     string
		info     provider.CustomMetricInfo
		selector labels.Selector
		want     string
	}{
		"mean that is not known": {
			"building", info(MeanMetric), labels.Everything(),
			"the server could not find the metric cpu_utilization for vmgroups.samplecontroller.k8s.io building: the CPU use of none of its members is known",
		},
		"sum without a known utilization": {
			"building", info(SumMetric), labels.Everything(),
			"the server could not find the metric cpu_utilization_sum for vmgroups.samplecontroller.k8s.io building: the CPU use of none of its members is known",
		},
		"unknown group": {
			"gone", info(SumMetric), labels.Everything(),
			"the server could not find the metric cpu_utilization_sum for vmgroups.samplecontroller.k8s.io gone: there is no such group",
		},
		"unknown metric": {
			"web", info("memory"), labels.Everything(),
			"the server could not find the metric memory for vmgroups.samplecontroller.k8s.io",
		},
		"metric of another kind": {
			"web", provider.CustomMetricInfo{GroupResource: vms, Namespaced: true, Metric: MeanMetric}, labels.Everything(),
			"the server could not find the metric cpu_utilization for vms.samplecontroller.k8s.io",
		},
		"metric without a namespace": {
			"web", provider.CustomMetricInfo{GroupResource: groups, Metric: MeanMetric}, labels.Everything(),
			"the server could not find the metric cpu_utilization for vmgroups.samplecontroller.k8s.io",
		},
		"metric with labels": {
			"web", info(MeanMetric), labelled,
			"the server could not find the metric cpu_utilization for vmgroups.samplecontroller.k8s.io",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := p.GetMetricByName(t.Context(), types.NamespacedName{Namespace: space, Name: tc.name}, tc.info, tc.selector)
			if !apierrors.IsNotFound(err) || err.Error() != tc.want {
				t.Errorf("got %v and the error\n%v\nwant NotFound\n%s", got, err, tc.want)
			}
		})
	}
}

func TestGetMetricBySelector(t *testing.T) {
	p := newProvider(t)
	tests := map[string]struct {
		selector, metric string
		want             []custom_metrics.MetricValue
	}{
		"all: without groups whose utilization is not known": {
			"", MeanMetric, []custom_metrics.MetricValue{value(space, "quiet", MeanMetric, 0), value(space, "web", MeanMetric, 60)},
		},
		"one group":                {"app=web", SumMetric, []custom_metrics.MetricValue{value(space, "web", SumMetric, 121)}},
		"no match: empty list":     {"app=absent", MeanMetric, []custom_metrics.MetricValue{}},
		"utilization is not known": {"app=building", SumMetric, []custom_metrics.MetricValue{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			selector, err := labels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.GetMetricBySelector(t.Context(), space, selector, info(tc.metric), labels.Everything())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&custom_metrics.MetricValueList{Items: tc.want}, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := p.GetMetricBySelector(t.Context(), space, labels.Everything(), info("memory"), labels.Everything()); !apierrors.IsNotFound(err) {
		t.Errorf("unknown metric: got %v, want NotFound", err)
	}
}

func TestReadErrorIsNotNotFound(t *testing.T) {
	unavailable := errors.New("the cache has not started")
	web := group(space, "web", new(int32(60)))
	name := types.NamespacedName{Namespace: space, Name: "web"}
	tests := map[string]struct {
		funcs interceptor.Funcs
		want  string
	}{
		"reading the group": {interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return unavailable
		}}, "read VmGroup shop/web: "},
		"listing its members": {interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return unavailable
		}}, "list the members of VmGroup shop/web: "},
	}
	for what, tc := range tests {
		t.Run(what, func(t *testing.T) {
			p := NewProvider(newReader(t, tc.funcs, web), time.Now)
			_, err := p.GetMetricByName(t.Context(), name, info(SumMetric), labels.Everything())
			if !errors.Is(err, unavailable) || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s%v", err, tc.want, unavailable)
			}
		})
	}
}

func TestListAllMetrics(t *testing.T) {
	want := []provider.CustomMetricInfo{info("cpu_utilization"), info("cpu_utilization_sum")}
	if diff := cmp.Diff(want, newProvider(t).ListAllMetrics()); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
