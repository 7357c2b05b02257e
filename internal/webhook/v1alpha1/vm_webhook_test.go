package v1alpha1

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// harness is a validator with a cloud in memory.
type harness struct {
	validator
	cloud *cloudfake.Cloud
	// checked are the names that the cloud was asked about, and flows the flows of
	// these calls.
	checked []string
	flows   []cloud.Flow
	counted []outcome
}

var errAPIAway = errors.New("the API server is away")

// newHarness returns a validator whose cloud answers every check with this error, if any.
func newHarness(t *testing.T, answer error, objects ...client.Object) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	h := &harness{cloud: cloudfake.New(cloudfake.Options{})}
	h.cloud.FailAlways(cloudfake.CheckName, answer, false)
	h.cloud.OnCall(func(ctx context.Context, _ cloudfake.Verb, name string) {
		h.checked, h.flows = append(h.checked, name), append(h.flows, cloud.FlowOf(ctx))
	})
	h.validator = validator{
		reader:    fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, namespace())...).Build(),
		getShared: func(context.Context, *pcapi.Cloud) (cloud.Client, error) { return h.cloud, nil },
		count:     func(o outcome) { h.counted = append(h.counted, o) },
	}
	return h
}

func namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "blue"}}}
}

func aCloud(name string, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func aVM(change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sample"}, Spec: pcapi.VMSpec{VMName: "web"}}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

func renamed(vm *pcapi.VM) { vm.Spec.VMName = "other" }

func on(name string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: name} }
}

func imported(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "id"} }

func recorded(vm *pcapi.VM) { vm.Status.VMID = "id" }

func deleted(vm *pcapi.VM) { vm.DeletionTimestamp = new(metav1.Now()) }

func controlled(apiVersion, kind string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: new(true)}}
	}
}

func cloudError(kind cloud.Kind, detail string) error {
	return &cloud.Error{Kind: kind, Op: `check name "web"`, Detail: detail}
}

func TestValidateCreateFollowsTheCloudsAnswer(t *testing.T) {
	const checkedLater = `; the operator checks it before it creates the VM`
	for name, tc := range map[string]struct {
		vm        *pcapi.VM
		clouds    []client.Object
		answer    error
		broken    error
		checked   []string
		counted   []outcome
		warning   string
		rejection string
	}{
		"allowed name: allowed without a warning": {
			clouds: []client.Object{aCloud("default")}, checked: []string{"web"}, counted: []outcome{allowed},
		},
		"prohibited name: rejected with the cloud's reason and what to do": {
			clouds: []client.Object{aCloud("default")}, answer: cloudError(cloud.Prohibited, `the name "web" is prohibited`),
			checked: []string{"web"}, counted: []outcome{prohibited},
			rejection: `VM.samplecontroller.k8s.io "sample" is invalid: spec.vmname: Invalid value: "web": rejected by Cloud "default": the name "web" is prohibited; choose another name`,
		},
		"prohibited name without a reason of the cloud: rejected": {
			clouds: []client.Object{aCloud("default")}, answer: cloudError(cloud.Prohibited, ""),
			checked: []string{"web"}, counted: []outcome{prohibited},
			rejection: `VM.samplecontroller.k8s.io "sample" is invalid: spec.vmname: Invalid value: "web": rejected by Cloud "default": check name "web": Prohibited; choose another name`,
		},
		"prohibited name with an address in the cloud's reason: rejected without the address": {
			clouds: []client.Object{aCloud("default")}, answer: cloudError(cloud.Prohibited, "policy of https://cloud.internal:8443/api"),
			checked: []string{"web"}, counted: []outcome{prohibited},
			rejection: `VM.samplecontroller.k8s.io "sample" is invalid: spec.vmname: Invalid value: "web": rejected by Cloud "default": policy of …; choose another name`,
		},
		"taken name: allowed with a warning, since it may be free later or belong to this VM": {
			clouds: []client.Object{aCloud("default")}, answer: cloudError(cloud.Taken, `the name "web" is taken`),
			checked: []string{"web"}, counted: []outcome{taken},
			warning: `vmname "web" is not available in Cloud "default": the name "web" is taken; the VM is created once the name is free`,
		},
		"VM with a cloudRef: that Cloud checks the name": {
			vm: aVM(on("other")), clouds: []client.Object{aCloud("other")}, checked: []string{"web"}, counted: []outcome{allowed},
		},
		"Cloud does not exist: allowed with a warning": {
			vm: aVM(on("nowhere")), counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: Cloud "nowhere" does not exist, or namespace "ns" may not use it` + checkedLater,
		},
		"namespace may not use the Cloud: the warning says nothing else about that Cloud": {
			vm: aVM(on("theirs")), counted: []outcome{unchecked},
			clouds: []client.Object{aCloud("theirs", func(c *pcapi.Cloud) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
				c.Status.Conditions = nil
			})},
			warning: `vmname "web" was not checked: Cloud "theirs" does not exist, or namespace "ns" may not use it` + checkedLater,
		},
		"Cloud is not Ready: allowed with a warning, without a call": {
			clouds:  []client.Object{aCloud("default", func(c *pcapi.Cloud) { c.Status.Conditions[0].Status = metav1.ConditionFalse })},
			counted: []outcome{unchecked}, warning: `vmname "web" was not checked: Cloud "default" is not ready` + checkedLater,
		},
		"Cloud has no conditions yet: allowed with a warning, without a call": {
			clouds:  []client.Object{aCloud("default", func(c *pcapi.Cloud) { c.Status.Conditions = nil })},
			counted: []outcome{unchecked}, warning: `vmname "web" was not checked: Cloud "default" is not ready` + checkedLater,
		},
		"cloud is unavailable: allowed with a warning": {
			clouds: []client.Object{aCloud("default")}, answer: cloudError(cloud.Unavailable, "connection rejected"),
			checked: []string{"web"}, counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: Cloud "default" did not complete the check` + checkedLater,
		},
		"cloud is throttled: allowed with a warning": {
			clouds: []client.Object{aCloud("default")}, answer: cloudError(cloud.Throttled, "too many calls to the cloud at once"),
			checked: []string{"web"}, counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: Cloud "default" did not complete the check` + checkedLater,
		},
		"allowedNamespaces is no selector: the warning is that of a Cloud that denies the namespace": {
			vm: aVM(on("theirs")), counted: []outcome{unchecked},
			clouds: []client.Object{aCloud("theirs", func(c *pcapi.Cloud) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}}
			})},
			warning: `vmname "web" was not checked: Cloud "theirs" does not exist, or namespace "ns" may not use it` + checkedLater,
		},
		"no client of the cloud: the warning does not say why": {
			clouds: []client.Object{aCloud("default")}, broken: errors.New(`Secret "login" does not exist`), counted: []outcome{unchecked},
			warning: `vmname "web" was not checked: the operator could not call the cloud` + checkedLater,
		},
		"import: not checked, since the server has its name already": {vm: aVM(imported), clouds: []client.Object{aCloud("default")}},
		"member of a VmGroup: not checked here but by the controller": {
			vm: aVM(controlled("samplecontroller.k8s.io/v1alpha1", "VmGroup")), clouds: []client.Object{aCloud("default")},
		},
		"VM of another controller: checked": {
			vm: aVM(controlled("example.com/v1", "VmGroup")), clouds: []client.Object{aCloud("default")},
			checked: []string{"web"}, counted: []outcome{allowed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.answer, tc.clouds...)
			if tc.broken != nil {
				h.getShared = func(context.Context, *pcapi.Cloud) (cloud.Client, error) { return nil, tc.broken }
			}
			vm := tc.vm
			if vm == nil {
				vm = aVM()
			}
			warnings, err := h.validateCreate(t.Context(), vm)
			expect(t, "warnings", list(tc.warning), warnings)
			expect(t, "rejection", list(tc.rejection), list(text(err)))
			expect(t, "names checked", tc.checked, h.checked)
			if len(tc.checked) > 0 {
				review := cloud.FlowOf(cloud.WithReviewFlow(t.Context(), vm.Namespace))
				expect(t, "flows of the calls", []cloud.Flow{review}, h.flows, cmpopts.IgnoreFields(cloud.Flow{}, "Since"))
			}
			expect(t, "counted", tc.counted, h.counted)
			if err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("%v is not an Invalid error, which clients expect", err)
			}
		})
	}
}

func TestValidateUpdateChecksNewNamesOfVMsThatDoNotExist(t *testing.T) {
	for name, tc := range map[string]struct {
		old, vm *pcapi.VM
		checked []string
	}{
		"name changes: checked":   {old: aVM(), vm: aVM(renamed), checked: []string{"other"}},
		"name stays: not checked": {old: aVM(), vm: aVM(func(vm *pcapi.VM) { vm.Finalizers = []string{"any"} })},
		"VM exists: not checked, since the API server rejects the change": {old: aVM(recorded), vm: aVM(renamed, recorded)},
		"import: not checked":              {old: aVM(imported), vm: aVM(renamed, imported)},
		"VM is being deleted: not checked": {old: aVM(deleted), vm: aVM(renamed, deleted)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, cloudError(cloud.Prohibited, "never"), aCloud("default"))
			_, err := h.validateUpdate(t.Context(), tc.old, tc.vm)
			expect(t, "names checked", tc.checked, h.checked)
			if rejected := err != nil; rejected != (tc.checked != nil) {
				t.Errorf("rejected: %v", err)
			}
		})
	}
}

func TestVMWithoutCloudRefUsesTheCloudOfItsNamespace(t *testing.T) {
	ns := namespace()
	ns.Labels[pcapi.DefaultCloudLabel] = "blue"
	h := newHarness(t, nil, aCloud("blue"))
	if err := h.reader.(client.Client).Update(t.Context(), ns); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if warnings, err := h.validateCreate(t.Context(), aVM()); warnings != nil || err != nil {
		t.Errorf("%v, %v; want it allowed without a warning", warnings, err)
	}
}

// platform are words of the platform that a hostile or careless cloud, or a proxy in
// front of it, may put into its answers.
var platform = []string{"https://cloud.internal:8443/api", "10.0.0.7", "production-credentials", "private-cloud-system", "team-b"}

func TestAnswersContainNothingOfThePlatform(t *testing.T) {
	detail := strings.Join(platform, " ")
	for _, kind := range []cloud.Kind{
		cloud.NotFound, cloud.NotFoundUnproven, cloud.Taken, cloud.Quota, cloud.KeyReused, cloud.Unauthorized, cloud.Untrusted, cloud.Throttled, cloud.Unavailable, cloud.Unreadable,
	} {
		for name, answer := range map[string]error{
			"detail": &cloud.Error{Kind: kind, Op: `check name "web"`, Detail: detail},
			"cause":  &cloud.Error{Kind: kind, Op: `check name "web"`, Err: errors.New(detail)},
		} {
			t.Run(string(kind)+" with a "+name, func(t *testing.T) {
				h := newHarness(t, answer, aCloud("default"))
				warnings, err := h.validateCreate(t.Context(), aVM())
				said := strings.Join(warnings, "\n") + text(err)
				if said == "" {
					t.Error("no answer")
				}
				for _, word := range platform {
					if strings.Contains(said, word) {
						t.Errorf("%q is in %q", word, said)
					}
				}
			})
		}
	}
}

func TestAnswersForMissingAndDeniedCloudAreTheSame(t *testing.T) {
	denied := aCloud("hidden", func(c *pcapi.Cloud) {
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "theirs"}}
	})
	answer := func(objects ...client.Object) string {
		warnings, err := newHarness(t, nil, objects...).validateCreate(t.Context(), aVM(on("hidden")))
		return strings.Join(warnings, "\n") + text(err)
	}
	const want = `vmname "web" was not checked: Cloud "hidden" does not exist, or namespace "ns" may not use it; the operator checks it before it creates the VM`
	expect(t, "for a Cloud that does not exist", want, answer())
	expect(t, "for a Cloud that the namespace may not use", want, answer(denied))
}

func TestVMIsAllowedIfTheAPIServerCannotBeRead(t *testing.T) {
	h := newHarness(t, nil, aCloud("default"))
	h.reader = interceptor.NewClient(h.reader.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errAPIAway
		},
	})
	for name, vm := range map[string]*pcapi.VM{"the Cloud of its namespace": aVM(), "a Cloud by name": aVM(on("default"))} {
		t.Run(name, func(t *testing.T) {
			warnings, err := h.validateCreate(t.Context(), vm)
			expect(t, "warnings", []string{`vmname "web" was not checked: the operator could not call the cloud; the operator checks it before it creates the VM`}, warnings)
			if err != nil {
				t.Errorf("rejected: %v", err)
			}
		})
	}
}

func TestOutcomesStartAtZero(t *testing.T) {
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

func expect(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
