package why_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

var at = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// conditions returns those of an object that is not Ready, or with an empty reason is.
func conditions(reason, message string, more ...metav1.Condition) []metav1.Condition {
	ready := metav1.Condition{Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: at}
	if reason == "" {
		ready.Status, ready.Reason = metav1.ConditionTrue, "Running"
	}
	return append(more, ready)
}

var stalled = metav1.Condition{Type: pcapi.StalledCondition, Status: metav1.ConditionTrue, Reason: "Rejected", LastTransitionTime: at}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "dev", Name: name} }

func cloud(reason, message string, more ...metav1.Condition) *pcapi.Cloud {
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home"}}
	c.Status.Conditions = conditions(reason, message, more...)
	return c
}

func vm(name string, conditions []metav1.Condition, change ...func(*pcapi.VM)) *pcapi.VM {
	v := &pcapi.VM{ObjectMeta: meta(name), Spec: pcapi.VMSpec{VMName: name, CloudRef: &pcapi.CloudReference{Name: "home"}}}
	v.Status.Conditions = conditions
	for _, apply := range change {
		apply(v)
	}
	return v
}

// planned returns a VM's plan of this phase. It is approved, unless it waits.
func planned(phase pcapi.PlanPhase, by string) func(*pcapi.VM) {
	return func(v *pcapi.VM) {
		v.Status.Plan = &pcapi.PlanStatus{Number: 3, Phase: phase, ApprovedBy: by, Changes: []pcapi.PlannedChange{{Action: pcapi.PlannedUpdate, Name: "web", Details: []string{"cpu 2 to 4"}}}}
		if phase != pcapi.PlanPending {
			v.Status.Plan.ApprovedTime = &at
		}
	}
}

func attached(v *pcapi.VM) { v.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} }

func claimed(v *pcapi.VM) {
	v.Finalizers = []string{pcapi.VMFinalizer}
	v.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: v.Spec.VMName, pcapi.ClaimedCloudAnnotation: "home"}
}

func network(conditions []metav1.Condition) *pcapi.Network {
	n := &pcapi.Network{ObjectMeta: meta("net"), Spec: pcapi.NetworkSpec{CloudRef: &pcapi.CloudReference{Name: "home"}}}
	n.Status.Conditions = conditions
	return n
}

// group returns a group with members that it owns.
func group(conditions []metav1.Condition, members ...*pcapi.VM) []client.Object {
	g := &pcapi.VmGroup{ObjectMeta: meta("workers"), Spec: pcapi.VmGroupSpec{CloudRef: &pcapi.CloudReference{Name: "home"}}}
	g.UID, g.Status.Selector, g.Status.Conditions = "group", pcapi.GroupLabel+"=workers", conditions
	objects := []client.Object{g}
	for _, member := range members {
		member.Labels = map[string]string{pcapi.GroupLabel: "workers"}
		member.OwnerReferences = []metav1.OwnerReference{{APIVersion: pcapi.GroupVersion.String(), Kind: "VmGroup", Name: "workers", UID: "group", Controller: new(true)}}
		objects = append(objects, member)
	}
	return objects
}

func snapshot(conditions []metav1.Condition) *pcapi.VMSnapshot {
	s := &pcapi.VMSnapshot{ObjectMeta: meta("before-upgrade"), Spec: pcapi.VMSnapshotSpec{VMName: "web"}}
	s.Status.Conditions = conditions
	return s
}

// fakeOperator serves what an operator knows of Cloud home and of VM web.
func fakeOperator(t *testing.T) string {
	t.Helper()
	answers := map[string]any{
		wire.CloudsPath + "home": wire.Cloud{
			Cloud: "home", Listing: &wire.Listing{Begun: at.UTC(), Servers: 41},
			Limiter: &wire.Limiter{RequestsPerSecond: 20, MaxInFlight: 16, InFlight: 16, Waiting: 3, Flows: []wire.Flow{{Namespace: "dev", Waiting: 3, RetryAt: new(at.UTC())}}},
			Workers: []wire.Workers{
				{Controller: "vm", PerNamespace: 16, PerCloud: 24, Running: 24, Waiting: 120, Namespaces: []wire.NamespaceShare{{Namespace: "dev", Running: 8, Waiting: 14}}},
				{Controller: "network", PerNamespace: 4, PerCloud: 6},
			},
		},
		wire.ObjectsPath + "VM/dev/web": wire.Object{Steps: []wire.Step{
			{Step: "Claim", Time: at.UTC(), DurationSeconds: .004},
			{Step: "Create", Time: at.UTC(), DurationSeconds: .25, Reason: "Rejected", Message: "the cloud has no template \"debian\""},
		}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		if !known && strings.HasPrefix(r.URL.Path, wire.ObjectsPath) {
			answer, known = wire.Object{}, true
		}
		if !known {
			w.WriteHeader(http.StatusNotFound)
			answer = wire.Error{Reason: wire.NotFound, Message: "Cloud does not exist"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestWhy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		objects []client.Object
		args    []string
	}{
		{"ready", []client.Object{vm("web", conditions("", "VM 1 is as the spec says"))}, []string{"vm/web"}},
		{"the cause is in the VM", []client.Object{vm("web", conditions("Rejected", "the cloud has no template", stalled), claimed), cloud("", "connected")}, []string{"vm", "web"}},
		{"vm waits for a network that waits for the cloud", []client.Object{
			vm("web", conditions(pcapi.NetworkNotReadyReason, `Network "net" is not made yet: see its conditions`), attached),
			network(conditions(pcapi.CloudUnavailableReason, "Cloud \"home\" is unavailable:\nthe cloud does not answer")),
			cloud("Unreachable", "no answer", metav1.Condition{Type: pcapi.BrakedCondition, Status: metav1.ConditionTrue, Message: "snapshot x lacks 7 servers", LastTransitionTime: at}),
		}, []string{"vms/web"}},
		{"vm waits for a network that is missing", []client.Object{
			vm("web", conditions(pcapi.NetworkNotReadyReason, `Network "net" does not exist`), attached), cloud("", "connected"),
		}, []string{"vm/web"}},
		{"vm waits for a class that is missing", []client.Object{
			vm("web", conditions(pcapi.ClassUnavailableReason, `VMClass "small" does not exist, or namespace "dev" may not use it`), func(v *pcapi.VM) { v.Spec.ClassName = "small" }), cloud("", "connected"),
		}, []string{"vm/web"}},
		{"group waits for the stalled member", append(group(conditions(pcapi.MembersStalledReason, "1 member stalled"),
			vm("workers-a", conditions("", "")), vm("workers-b", conditions("Creating", "is being created")), vm("web", conditions("Rejected", "no", stalled))),
			cloud("", "connected")), []string{"vmgroup/workers"}},
		{"snapshot waits for its vm", []client.Object{
			snapshot(conditions(pcapi.VMNotReadyReason, `VM "web" has no server yet`)), vm("web", conditions("Creating", "is being created"), claimed), cloud("", "connected"),
		}, []string{"vmsnapshot/before-upgrade"}},
		{"snapshot of a vm that is missing", []client.Object{snapshot(conditions(pcapi.VMNotReadyReason, `VM "web" does not exist`))}, []string{"vmsnapshot/before-upgrade"}},
		{"gpuinfo", []client.Object{
			&pcapi.GPUInfo{ObjectMeta: meta("gpu"), Status: pcapi.GPUInfoStatus{Conditions: conditions("NoneAvailable", "no node is available")}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dev", Labels: map[string]string{pcapi.DefaultCloudLabel: "home"}}}, cloud("", "connected"),
		}, []string{"gpuinfo/gpu"}},
		{"cloud that is missing", []client.Object{vm("web", conditions(pcapi.CloudUnavailableReason, `Cloud "home" does not exist, or namespace "dev" may not use it`))}, []string{"vm/web"}},
		{"cloud", []client.Object{cloud("Unreachable", "no answer")}, []string{"cloud/home"}},
		{"a plan waits for its approval", []client.Object{
			vm("web", conditions(pcapi.ApprovalRequiredReason, "plan x waits for an approval"), planned(pcapi.PlanPending, "")), cloud("", "connected"),
		}, []string{"vm/web"}},
		{"a plan was approved", []client.Object{vm("web", conditions("", "VM 1 is as the spec says"), planned(pcapi.PlanApplied, "alice"))}, []string{"vm/web"}},
		{"nobody knows who approved a plan", []client.Object{vm("web", conditions("", "VM 1 is as the spec says"), planned(pcapi.PlanApproved, ""))}, []string{"vm/web"}},
		{"new", []client.Object{vm("web", nil), cloud("", "connected")}, []string{"vm/web"}},
		{"json", []client.Object{vm("web", conditions("Rejected", "no", stalled), claimed), cloud("", "connected")}, []string{"vm/web", "-o", "json"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			setup := plugintest.Setup{Client: plugintest.NewClient(t, tc.objects...)}
			url := fakeOperator(t)
			result := setup.Run(t.Context(), append([]string{"why", "-n", "dev", "--operator-url", url}, tc.args...)...)
			plugintest.Golden(t, strings.ReplaceAll(tc.name, " ", "-"), []plugintest.Result{result})
		})
	}
}

// TestWhyWithTheRightsOfADeveloper shows what somebody sees who may read one namespace, in
// which there is no operator.
func TestWhyWithTheRightsOfADeveloper(t *testing.T) {
	objects := []client.Object{
		vm("web", conditions(pcapi.NetworkNotReadyReason, `Network "net" is not made yet: see its conditions`), attached),
		network(conditions(pcapi.CloudUnavailableReason, "the cloud does not answer")),
		vm("default", conditions("Creating", "is being created"), func(v *pcapi.VM) { v.Spec.CloudRef = nil }),
	}
	objects = append(objects, group(conditions(pcapi.MembersNotReadyReason, "0 of 1 members are Ready"))...)
	forbidden := func(o any, verb string, hidden ...string) error {
		gvk := schema.GroupVersionKind{}
		if typed, ok := o.(client.Object); ok {
			gvk, _ = apiutil.GVKForObject(typed, plugintest.NewClient(t).Scheme())
		}
		for _, kind := range hidden {
			if kind == gvk.Kind {
				return apierrors.NewForbidden(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(kind)}, verb, nil)
			}
		}
		return nil
	}
	for _, tc := range []struct {
		name   string
		hidden []string
		args   []string
	}{
		{"no cloud", []string{"Cloud", "Namespace"}, []string{"vm/web"}},
		{"no network", []string{"Network", "Cloud", "Namespace"}, []string{"vm/web"}},
		{"no namespace", []string{"Cloud", "Namespace"}, []string{"vm/default"}},
		{"no list", []string{"Cloud", "Namespace"}, []string{"vmgroup/workers"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := plugintest.Builder(t, objects...).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if err := forbidden(o, "get", tc.hidden...); err != nil {
						return err
					}
					return c.Get(ctx, key, o, opts...)
				},
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "vms"}, "list", nil)
				},
			}).Build()
			result := plugintest.Setup{Client: c}.Run(t.Context(), append([]string{"why", "-n", "dev", "--operator-url", "http://127.0.0.1:1"}, tc.args...)...)
			plugintest.Golden(t, "developer-"+strings.ReplaceAll(tc.name, " ", "-"), []plugintest.Result{result})
		})
	}
}

func TestWhyRefuses(t *testing.T) {
	setup := plugintest.Setup{Client: plugintest.NewClient(t)}
	plugintest.Golden(t, "refusals", []plugintest.Result{
		setup.Run(t.Context(), "why", "-n", "dev", "vm/missing"),
		setup.Run(t.Context(), "why", "-n", "dev", "pod/web"),
		setup.Run(t.Context(), "why", "-n", "dev", "vm/"),
		setup.Run(t.Context(), "why", "-n", "dev", "vm", "dev/web"),
		setup.Run(t.Context(), "why", "-n", "dev"),
	})
}
