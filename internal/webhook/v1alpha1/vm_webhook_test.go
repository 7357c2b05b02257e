package v1alpha1

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// fakeCloud gives one answer to all names, and notes them.
type fakeCloud struct {
	cloud.Client
	answer error
	hangs  bool
	asked  []string
	// flows are those of the calls.
	flows []string
}

func (f *fakeCloud) CheckName(ctx context.Context, name string) error {
	f.asked = append(f.asked, name)
	f.flows = append(f.flows, cloud.FlowOf(ctx).Name)
	if f.hangs {
		<-ctx.Done()
		return &cloud.Error{Kind: cloud.Unavailable, Op: "check name", Detail: "no time left for an answer", Err: ctx.Err()}
	}
	return f.answer
}

// door is a validator and what is around it.
type door struct {
	validator
	cloud   *fakeCloud
	counted []outcome
}

var errAPIAway = errors.New("the API server is away")

func newDoor(t *testing.T, f *fakeCloud, objects ...client.Object) *door {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	d := &door{cloud: f}
	d.validator = validator{
		reader:    fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, namespace())...).Build(),
		getShared: func(context.Context, *v1alpha1.Cloud) (cloud.Client, error) { return f, nil },
		count:     func(o outcome) { d.counted = append(d.counted, o) },
	}
	return d
}

func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "blue"}}}
}

func aCloud(name string, change ...func(*v1alpha1.Cloud)) *v1alpha1.Cloud {
	c := &v1alpha1.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue}}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func aVM(change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	vm := &v1alpha1.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sample"}, Spec: v1alpha1.VMSpec{VMName: "web"}}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

func renamed(vm *v1alpha1.VM) { vm.Spec.VMName = "other" }

func on(name string) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: name} }
}

func imported(vm *v1alpha1.VM) { vm.Spec.Import = &v1alpha1.VMImport{VMID: "id"} }

func recorded(vm *v1alpha1.VM) { vm.Status.VMID = "id" }

func deleted(vm *v1alpha1.VM) { vm.DeletionTimestamp = new(metav1.Now()) }

func controlled(apiVersion, kind string) func(*v1alpha1.VM) {
	return func(vm *v1alpha1.VM) {
		vm.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: new(true)}}
	}
}

func refusal(kind cloud.Kind, detail string) error {
	return &cloud.Error{Kind: kind, Op: `check name "web"`, Detail: detail}
}

func TestACreateIsAnsweredAsTheCloudAnswers(t *testing.T) {
	const unasked = `; the operator checks it before it creates the VM`
	for name, tc := range map[string]struct {
		vm      *v1alpha1.VM
		clouds  []client.Object
		answer  error
		broken  error
		asked   []string
		counted []outcome
		warning string
		refusal string
	}{
		"a name that may be used is let through in silence": {
			clouds: []client.Object{aCloud("default")}, asked: []string{"web"}, counted: []outcome{allowed},
		},
		"a prohibited name is refused with the cloud's reason, and what to do": {
			clouds: []client.Object{aCloud("default")}, answer: refusal(cloud.Prohibited, `the name "web" is prohibited`),
			asked: []string{"web"}, counted: []outcome{prohibited},
			refusal: `VM.samplecontroller.k8s.io "sample" is invalid: spec.vmname: Invalid value: "web": Cloud "default" says: the name "web" is prohibited; choose another name`,
		},
		"a refusal without words of the cloud is one all the same": {
			clouds: []client.Object{aCloud("default")}, answer: refusal(cloud.Prohibited, ""),
			asked: []string{"web"}, counted: []outcome{prohibited},
			refusal: `VM.samplecontroller.k8s.io "sample" is invalid: spec.vmname: Invalid value: "web": Cloud "default" says: check name "web": Prohibited; choose another name`,
		},
		"a name that is taken is let through with a warning: it may be free soon, or this VM's own": {
			clouds: []client.Object{aCloud("default")}, answer: refusal(cloud.Taken, `the name "web" is taken`),
			asked: []string{"web"}, counted: []outcome{taken},
			warning: `Cloud "default" says of vmname "web": the name "web" is taken; the VM is created once it is free`,
		},
		"it is the Cloud that the VM names that is asked": {
			vm: aVM(on("other")), clouds: []client.Object{aCloud("other")}, asked: []string{"web"}, counted: []outcome{allowed},
		},
		"a Cloud that does not exist": {
			vm: aVM(on("nowhere")), counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: Cloud "nowhere" does not exist` + unasked,
		},
		"a Cloud that is denied to the namespace is told from others by nothing else": {
			vm: aVM(on("theirs")), counted: []outcome{unchecked},
			clouds: []client.Object{aCloud("theirs", func(c *v1alpha1.Cloud) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
				c.Status.Conditions = nil
			})},
			warning: `vmname "web" was not checked: namespace "ns" may not use Cloud "theirs"` + unasked,
		},
		"a Cloud that is not ready is not waited for": {
			clouds:  []client.Object{aCloud("default", func(c *v1alpha1.Cloud) { c.Status.Conditions[0].Status = metav1.ConditionFalse })},
			counted: []outcome{unchecked}, warning: `vmname "web" was not checked: Cloud "default" is not ready` + unasked,
		},
		"nor is one that nobody has looked at yet": {
			clouds:  []client.Object{aCloud("default", func(c *v1alpha1.Cloud) { c.Status.Conditions = nil })},
			counted: []outcome{unchecked}, warning: `vmname "web" was not checked: Cloud "default" is not ready` + unasked,
		},
		"a cloud that is away": {
			clouds: []client.Object{aCloud("default")}, answer: refusal(cloud.Unavailable, "connection refused"),
			asked: []string{"web"}, counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: Cloud "default" did not say whether it may be used` + unasked,
		},
		"a cloud that wants to be left alone": {
			clouds: []client.Object{aCloud("default")}, answer: refusal(cloud.Throttled, "too many calls to the cloud at once"),
			asked: []string{"web"}, counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: Cloud "default" did not say whether it may be used` + unasked,
		},
		"a connection that cannot be made, of which the user learns nothing": {
			clouds: []client.Object{aCloud("default")}, broken: errors.New(`Secret "login" does not exist`), counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: the operator could not ask` + unasked,
		},
		"an import takes the name that the server has": {vm: aVM(imported), clouds: []client.Object{aCloud("default")}},
		"the member of a group is checked by the operator, which makes it": {
			vm: aVM(controlled("samplecontroller.k8s.io/v1alpha1", "VmGroup")), clouds: []client.Object{aCloud("default")},
		},
		"what another controller makes is asked about": {
			vm: aVM(controlled("example.com/v1", "VmGroup")), clouds: []client.Object{aCloud("default")},
			asked: []string{"web"}, counted: []outcome{allowed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, &fakeCloud{answer: tc.answer}, tc.clouds...)
			if tc.broken != nil {
				d.getShared = func(context.Context, *v1alpha1.Cloud) (cloud.Client, error) { return nil, tc.broken }
			}
			vm := tc.vm
			if vm == nil {
				vm = aVM()
			}
			warnings, err := d.ValidateCreate(t.Context(), vm)
			expect(t, "warnings", list(tc.warning), []string(warnings))
			expect(t, "refusal", list(tc.refusal), list(text(err)))
			expect(t, "names asked for", tc.asked, d.cloud.asked)
			if len(tc.asked) > 0 {
				expect(t, "flows of the calls", list(vm.Namespace), d.cloud.flows)
			}
			expect(t, "counted", tc.counted, d.counted)
			if err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("%v is not Invalid, which clients know", err)
			}
		})
	}
}

func TestAnEditIsAskedAboutWhereItChangesTheNameOfWhatDoesNotExist(t *testing.T) {
	for name, tc := range map[string]struct {
		old, vm *v1alpha1.VM
		asked   []string
	}{
		"another name":  {old: aVM(), vm: aVM(renamed), asked: []string{"other"}},
		"the same name": {old: aVM(), vm: aVM(func(vm *v1alpha1.VM) { vm.Finalizers = []string{"any"} })},
		"a name that the API server refuses by itself": {old: aVM(recorded), vm: aVM(renamed, recorded)},
		"the name of an import":                        {old: aVM(imported), vm: aVM(renamed, imported)},
		"a VM on its way out":                          {old: aVM(deleted), vm: aVM(renamed, deleted)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(t, &fakeCloud{answer: refusal(cloud.Prohibited, "never")}, aCloud("default"))
			_, err := d.ValidateUpdate(t.Context(), tc.old, tc.vm)
			expect(t, "names asked for", tc.asked, d.cloud.asked)
			if refused := err != nil; refused != (tc.asked != nil) {
				t.Errorf("refused: %v", err)
			}
		})
	}
	d := newDoor(t, &fakeCloud{answer: refusal(cloud.Prohibited, "never")}, aCloud("default"))
	if warnings, err := d.ValidateDelete(t.Context(), aVM()); warnings != nil || err != nil || d.cloud.asked != nil {
		t.Errorf("a deletion: %v, %v, asked for %v; want it let through", warnings, err, d.cloud.asked)
	}
}

func TestTheCloudIsThatOfTheNamespaceWhereTheVMNamesNone(t *testing.T) {
	ns := namespace()
	ns.Labels[v1alpha1.DefaultCloudLabel] = "blue"
	d := newDoor(t, &fakeCloud{}, aCloud("blue"))
	if err := d.reader.(client.Client).Update(t.Context(), ns); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if warnings, err := d.ValidateCreate(t.Context(), aVM()); warnings != nil || err != nil {
		t.Errorf("%v, %v; want it let through in silence", warnings, err)
	}
}

func TestACloudThatHangsIsWaitedForUntilTheBudgetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, &fakeCloud{hangs: true}, aCloud("default"))
		began := time.Now()
		warnings, err := d.ValidateCreate(t.Context(), aVM())
		if took := time.Since(began); err != nil || len(warnings) != 1 || took != budget {
			t.Errorf("%v, %v after %v; want a warning after %v", warnings, err, took, budget)
		}
	})
}

func TestWhatCannotBeReadIsLetThrough(t *testing.T) {
	d := newDoor(t, &fakeCloud{}, aCloud("default"))
	d.reader = interceptor.NewClient(d.reader.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errAPIAway
		},
	})
	for _, vm := range []*v1alpha1.VM{aVM(), aVM(on("default"))} {
		warnings, err := d.ValidateCreate(t.Context(), vm)
		expect(t, "warnings", []string{`vmname "web" was not checked: the operator could not ask; the operator checks it before it creates the VM`}, []string(warnings))
		if err != nil {
			t.Errorf("refused: %v", err)
		}
	}
}

func TestOutcomesAreCountedFromZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	newCount(registry)(prohibited)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d metrics, %v", len(families), err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
	}
	expect(t, families[0].GetName(), map[string]float64{"allowed": 0, "prohibited": 1, "taken": 0, "unchecked": 0}, got)
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
