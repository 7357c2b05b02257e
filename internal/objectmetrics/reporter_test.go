package objectmetrics

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// dawn is when all objects are created.
var dawn = time.Unix(1_700_000_000, 0)

// world is a reporter whose cache has the Clouds home, with the label shard=east, away, and
// closed, which namespace a may not use, with the label shard=east; and the namespace a.
type world struct {
	*testing.T

	*reporter
}

func newWorld(t *testing.T, selector string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	namespace := tenancy.NamespaceMetadata()
	namespace.Name, namespace.Labels = "a", map[string]string{pcapi.DefaultCloudLabel: "home"}
	scheme.AddKnownTypeWithName(namespace.GroupVersionKind(), &metav1.PartialObjectMetadata{})
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home", Labels: map[string]string{"shard": "east"}}},
		&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "away"}},
		&pcapi.Cloud{
			ObjectMeta: metav1.ObjectMeta{Name: "closed", Labels: map[string]string{"shard": "east"}},
			Spec:       pcapi.CloudSpec{AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"closed": "allowed"}}},
		}, namespace).Build()
	scope, err := tenancy.ParseScope(selector)
	if err != nil {
		t.Fatal(err)
	}
	to := newCollector(prometheus.NewRegistry())
	w := &world{T: t, reporter: newReporter(reader, scope, to)}
	to.add(w.reporter)
	return w
}

// reports compares the metric with lines of the text format.
func (w *world) reports(metric string, lines ...string) {
	w.Helper()
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(metric + line + "\n")
	}
	if len(lines) > 0 {
		text.WriteString("\n")
	}
	help := map[string]string{
		"privatecloud_objects":                           "Objects by state, and by the summary condition that is True with the reason of Ready.",
		"privatecloud_guests_not_ready":                  "VMs with a readiness probe whose guest is not ready, by the reason of GuestReady.",
		"privatecloud_objects_deleting":                  "Objects whose deletion was requested and that still exist.",
		"privatecloud_deletion_oldest_timestamp_seconds": "When the oldest deletion was requested of those that are not complete.",
	}[metric]
	want := ""
	if len(lines) > 0 {
		want = "# HELP " + metric + " " + help + "\n# TYPE " + metric + " gauge\n" + text.String()
	}
	if err := testutil.CollectAndCompare(w.collector, strings.NewReader(want), metric); err != nil {
		w.Error(err)
	}
}

// measured returns how many objects of a kind became Ready for the first time on a Cloud.
func (w *world) measured(kind, cloud string) (n uint64, seconds float64) {
	w.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.collector.toReady)
	families, err := registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values := map[string]string{}
			for _, pair := range m.GetLabel() {
				values[pair.GetName()] = pair.GetValue()
			}
			if values["kind"] == kind && values["cloud"] == cloud {
				return m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()
			}
		}
	}
	return 0, 0
}

// vm returns a VM in namespace a, changed.
func vm(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(dawn)}}
	for _, f := range change {
		f(vm)
	}
	return vm
}

func on(cloud string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: cloud} }
}

// running makes the VM Ready that many seconds after its creation.
func running(after int) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Status.State, vm.Status.VMID = pcapi.VMStateRunning, "id"
		vm.Status.Conditions = []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Running", LastTransitionTime: metav1.NewTime(dawn.Add(time.Duration(after) * time.Second)),
		}}
	}
}

func not(condition, reason string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Status.Conditions = []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason},
			{Type: condition, Status: metav1.ConditionTrue, Reason: reason},
		}
	}
}

func paused(vm *pcapi.VM) {
	vm.Status.Conditions = append(vm.Status.Conditions, metav1.Condition{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "Paused"})
}

func deletedAfter(seconds int) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.DeletionTimestamp = new(metav1.NewTime(dawn.Add(time.Duration(seconds) * time.Second)))
	}
}

func TestObjectIsCountedByItsLabels(tt *testing.T) {
	for name, tc := range map[string]struct {
		object conditioned
		want   string
	}{
		"a new VM: not known, on the Cloud of its namespace": {vm("x"), `{cloud="home",condition="Unknown",kind="VM",namespace="a",reason="",state="Unknown"} 1`},
		"a VM that runs":      {vm("x", on("away"), running(0)), `{cloud="away",condition="Ready",kind="VM",namespace="a",reason="Running",state="Running"} 1`},
		"a VM that is paused": {vm("x", running(0), paused), `{cloud="home",condition="Reconciling",kind="VM",namespace="a",reason="Paused",state="Running"} 1`},
		"a VM that stalls":    {vm("x", not("Stalled", "Prohibited")), `{cloud="home",condition="Stalled",kind="VM",namespace="a",reason="Prohibited",state="Unknown"} 1`},
		"a VM that waits":     {vm("x", not("Reconciling", "Creating")), `{cloud="home",condition="Reconciling",kind="VM",namespace="a",reason="Creating",state="Unknown"} 1`},
		"a VM that is on another Cloud than it refers to": {
			vm("x", on("home"), running(0), func(vm *pcapi.VM) { vm.Status.Cloud = "away" }),
			`{cloud="away",condition="Ready",kind="VM",namespace="a",reason="Running",state="Running"} 1`,
		},
		"a VM whose Cloud does not exist: no Cloud":            {vm("x", on("nowhere")), `{cloud="",condition="Unknown",kind="VM",namespace="a",reason="",state="Unknown"} 1`},
		"a VM whose namespace may not use its Cloud: no Cloud": {vm("x", on("closed")), `{cloud="",condition="Unknown",kind="VM",namespace="a",reason="",state="Unknown"} 1`},
		"a VM in a namespace that is not known yet: no Cloud": {
			vm("x", on("closed"), func(vm *pcapi.VM) { vm.Namespace = "new" }), `{cloud="",condition="Unknown",kind="VM",namespace="new",reason="",state="Unknown"} 1`,
		},
		"a Cloud that only some namespaces may use: itself": {
			&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "closed"}}, `{cloud="closed",condition="Unknown",kind="Cloud",namespace="",reason="",state=""} 1`,
		},
		"a group: its phase": {
			&pcapi.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}, Status: pcapi.VmGroupStatus{Phase: pcapi.VmGroupScaling}},
			`{cloud="home",condition="Unknown",kind="VmGroup",namespace="a",reason="",state="SCALING"} 1`,
		},
		"a Network: no state": {&pcapi.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, `{cloud="home",condition="Unknown",kind="Network",namespace="a",reason="",state=""} 1`},
		"a GPUInfo: no state": {&pcapi.GPUInfo{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, `{cloud="home",condition="Unknown",kind="GPUInfo",namespace="a",reason="",state=""} 1`},
		"a Cloud: itself":     {&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "away"}}, `{cloud="away",condition="Unknown",kind="Cloud",namespace="",reason="",state=""} 1`},
	} {
		tt.Run(name, func(tt *testing.T) {
			w := newWorld(tt, "")
			w.OnAdd(tc.object, true)
			w.reports("privatecloud_objects", tc.want)
		})
	}
}

func TestObjectsAreCountedAsTheyChange(tt *testing.T) {
	w := newWorld(tt, "")
	const unknown, ready = `{cloud="home",condition="Unknown",kind="VM",namespace="a",reason="",state="Unknown"} `, `{cloud="home",condition="Ready",kind="VM",namespace="a",reason="Running",state="Running"} `
	w.OnAdd(vm("x"), true)
	w.OnAdd(vm("y"), false)
	w.reports("privatecloud_objects", unknown+"2")
	w.OnUpdate(vm("x"), vm("x", running(3)))
	w.OnUpdate(vm("x", running(3)), vm("x", running(3))) // a resync
	w.reports("privatecloud_objects", ready+"1", unknown+"1")
	w.OnUpdate(vm("y"), vm("z")) // another object of the same name, after a gap in the watch
	w.reports("privatecloud_objects", ready+"1", unknown+"1")
	w.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: vm("x")}) // an old state of it
	w.OnDelete(vm("z"))
	w.reports("privatecloud_objects")
	if len(w.tracker.objects) != 0 {
		w.Errorf("objects that do not exist are kept: %v", w.tracker.objects)
	}
}

func TestGuestsThatAreNotReadyAreCounted(tt *testing.T) {
	guest := func(status metav1.ConditionStatus, reason string) func(*pcapi.VM) {
		return func(vm *pcapi.VM) {
			running(0)(vm)
			vm.Status.Conditions = append(vm.Status.Conditions, metav1.Condition{Type: pcapi.GuestReadyCondition, Status: status, Reason: reason})
		}
	}
	refused, forbidden, open := guest("False", "ConnectionRefused"), guest("Unknown", "ProbeNotAllowed"), guest("True", "PortOpen")
	w := newWorld(tt, "shard=east")
	for name, change := range map[string]func(*pcapi.VM){"a": refused, "b": refused, "c": forbidden, "d": open, "without a probe": running(0)} {
		w.OnAdd(vm(name, change), true)
	}
	w.OnAdd(vm("of another manager", on("away"), refused), true)
	w.reports("privatecloud_guests_not_ready", `{cloud="home",namespace="a",reason="ConnectionRefused"} 2`, `{cloud="home",namespace="a",reason="ProbeNotAllowed"} 1`)
	w.reports("privatecloud_objects", `{cloud="home",condition="Ready",kind="VM",namespace="a",reason="Running",state="Running"} 5`)
	w.OnUpdate(vm("a", refused), vm("a", open))
	w.OnDelete(vm("b", refused))
	w.OnUpdate(vm("c", forbidden), vm("c", running(0)))
	w.reports("privatecloud_guests_not_ready")
	w.reports("privatecloud_objects", `{cloud="home",condition="Ready",kind="VM",namespace="a",reason="Running",state="Running"} 4`)
}

func TestOldestDeletionIsReported(tt *testing.T) {
	w := newWorld(tt, "")
	for name, seconds := range map[string]int{"x": 20, "y": 10, "z": 30} {
		w.OnAdd(vm(name, deletedAfter(seconds)), true)
	}
	w.OnAdd(vm("kept"), true)
	const labels = `{cloud="home",kind="VM",namespace="a"} `
	w.reports("privatecloud_objects_deleting", labels+"3")
	w.reports("privatecloud_deletion_oldest_timestamp_seconds", labels+"1.70000001e+09")
	w.OnDelete(vm("y"))
	w.reports("privatecloud_deletion_oldest_timestamp_seconds", labels+"1.70000002e+09")
	w.OnDelete(vm("x"))
	w.OnDelete(vm("z"))
	w.reports("privatecloud_objects_deleting")
	w.reports("privatecloud_deletion_oldest_timestamp_seconds")
}

func TestTimeToReadyIsMeasuredOnce(tt *testing.T) {
	created := vm("x", func(vm *pcapi.VM) { vm.Status.VMID = "id" })
	for name, tc := range map[string]struct {
		events func(w *world)
		count  uint64
		sum    float64
	}{
		"a VM that is created and becomes Ready": {func(w *world) { w.OnAdd(vm("x"), false); w.OnUpdate(vm("x"), vm("x", running(7))) }, 1, 7},
		"it is Ready again later": {func(w *world) {
			w.OnAdd(vm("x"), false)
			w.OnUpdate(vm("x"), vm("x", running(7)))
			w.OnUpdate(vm("x"), vm("x", not("Reconciling", "Creating")))
			w.OnUpdate(vm("x"), vm("x", running(99)))
		}, 1, 7},
		"it was Ready before the manager started":                          {func(w *world) { w.OnAdd(vm("x", running(7)), true) }, 0, 0},
		"it had no server yet when the manager started":                    {func(w *world) { w.OnAdd(vm("x"), true); w.OnUpdate(vm("x"), vm("x", running(8))) }, 1, 8},
		"it had a server when the manager started: it may have been Ready": {func(w *world) { w.OnAdd(created, true); w.OnUpdate(created, vm("x", running(9))) }, 0, 0},
		"it was created and Ready while the watch was interrupted":         {func(w *world) { w.OnAdd(vm("x", running(5)), false) }, 1, 5},
	} {
		tt.Run(name, func(tt *testing.T) {
			w := newWorld(tt, "")
			tc.events(w)
			if n, sum := w.measured("VM", "home"); n != tc.count || sum != tc.sum {
				w.Errorf("measured %d times, %v s in all, want %d times, %v s", n, sum, tc.count, tc.sum)
			}
			w.OnDelete(&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home"}})
			if n, _ := w.measured("VM", "home"); n != 0 {
				w.Error("a Cloud that does not exist has a histogram")
			}
		})
	}
}

func TestOnlyObjectsOfTheScopeAreReported(tt *testing.T) {
	home := `{cloud="home",condition="Unknown",kind="VM",namespace="a",reason="",state="Unknown"} 1`
	away := `{cloud="away",condition="Unknown",kind="VM",namespace="a",reason="",state="Unknown"} 1`
	nowhere := `{cloud="",condition="Unknown",kind="VM",namespace="a",reason="",state="Unknown"} `
	for name, tc := range map[string]struct {
		selector string
		want     []string
	}{
		"no selector: all": {"", []string{nowhere + "2", away, home}},
		"a selector: its Clouds, also one that is denied": {"shard=east", []string{nowhere + "1", home}},
		"one that matches no labels: also no Clouds":      {"shard!=east", []string{nowhere + "1", away}},
	} {
		tt.Run(name, func(tt *testing.T) {
			w := newWorld(tt, tc.selector)
			for _, vm := range []*pcapi.VM{vm("x"), vm("y", on("away")), vm("z", on("nowhere")), vm("c", on("closed"))} {
				w.OnAdd(vm, false)
				w.OnUpdate(vm, vm)
			}
			w.reports("privatecloud_objects", tc.want...)
		})
	}
}

func TestCloudThatMovesToAnotherManagerTakesItsObjectsAlong(tt *testing.T) {
	w := newWorld(tt, "shard=east")
	w.OnAdd(vm("x"), false)
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home"}}
	changer, ok := w.reader.(client.Client)
	if !ok {
		w.Fatal("the reader cannot write")
	}
	if err := changer.Get(context.Background(), client.ObjectKeyFromObject(c), c); err != nil {
		w.Fatal(err)
	}
	c.Labels = nil
	if err := changer.Update(context.Background(), c); err != nil {
		w.Fatal(err)
	}
	w.reports("privatecloud_objects")
}
