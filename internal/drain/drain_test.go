package drain

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func vm(change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x", Finalizers: []string{pcapi.VMFinalizer}}}
	for _, apply := range change {
		apply(vm)
	}
	return vm
}

func fakeClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestOptionsAreValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"no policy: names both":        {Options{Timeout: time.Minute}, "--policy=orphan"},
		"an unknown policy: refused":   {Options{Policy: "keep", Timeout: time.Minute}, `--policy is "keep"`},
		"no time to wait: refused":     {Options{Policy: PolicyDelete}, "--timeout is 0s"},
		"policy and timeout: accepted": {Options{Policy: PolicyOrphan, Timeout: time.Second}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.options.Validate()
			if (err == nil) != (tc.want == "") || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("Validate: %v, want %q", err, tc.want)
			}
		})
	}
}

func TestDrainSaysThatItsCloudDoesNotExist(t *testing.T) {
	for name, tc := range map[string]struct {
		cloud   string
		missing bool
	}{
		"no Cloud is given":         {"", false},
		"the Cloud exists":          {"east", false},
		"the name has a typo":       {"esat", true},
		"only a prefix of the name": {"eas", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			east := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			err := Run(t.Context(), fakeClient(t, east), Options{Policy: PolicyDelete, Cloud: tc.cloud, Timeout: time.Minute}, &out)
			if err != nil || strings.Contains(out.String(), "does not exist: correct --cloud") != tc.missing {
				t.Errorf("got %q, %v", out.String(), err)
			}
		})
	}
}

func TestUnfinishedDrainSaysWhatIsLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		vm   *pcapi.VM
		want string
	}{
		"paused: names the annotation": {
			vm(func(v *pcapi.VM) { v.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} }), "paused: remove",
		},
		"blocked: has the message": {
			vm(func(v *pcapi.VM) {
				v.Status.Conditions = []metav1.Condition{{Type: pcapi.DeletingCondition, Status: metav1.ConditionTrue, Reason: pcapi.BlockedReason, Message: "the brake is on"}}
			}), "Deleting, Blocked: the brake is on",
		},
		"no operator: says what to check": {vm(), "check that the operator runs"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				c := fakeClient(t, tc.vm)
				err := Run(t.Context(), c, Options{Policy: PolicyDelete, Yes: true, Timeout: time.Minute}, &out)
				if err == nil || !strings.Contains(out.String(), tc.want) {
					t.Errorf("error %v, want one; output, want %q:\n%s", err, tc.want, out.String())
				}
				var left pcapi.VM
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(tc.vm), &left); err != nil || len(left.Finalizers) != 1 {
					t.Errorf("finalizers %v, error %v: want that of the operator", left.Finalizers, err)
				}
			})
		})
	}
}

func TestInterruptedDrainSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 5*time.Second)
		defer interrupt()
		var out strings.Builder
		err := Run(ctx, fakeClient(t, vm()), Options{Policy: PolicyDelete, Yes: true, Timeout: time.Hour}, &out)
		if err == nil || !strings.Contains(out.String(), "interrupted") || !strings.Contains(out.String(), "vms a/x") {
			t.Errorf("error %v, output:\n%s", err, out.String())
		}
	})
}

func TestDrainThatHasListedNothingDoesNotSayThatNothingIsLeft(t *testing.T) {
	var out strings.Builder
	if err := newProgress(&out).unfinished(false, nil); err == nil || !strings.Contains(out.String(), "is not known") {
		t.Errorf("error %v, output:\n%s", err, out.String())
	}
}

func TestOrphanKeepsNetworksThatTheOperatorCreated(t *testing.T) {
	network := &pcapi.Network{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "net"}}
	d := &drain{Options: Options{Policy: PolicyOrphan}}
	if got := d.kept(network, nil); !strings.Contains(got, "--policy=delete") {
		t.Errorf("a created network: %q, want what to do", got)
	}
	network.Spec.Import = &pcapi.NetworkImport{}
	if got := d.kept(network, nil); got != "" {
		t.Errorf("an imported network is kept: %q", got)
	}
}

func TestVMSnapshotThatWaitsIsOnTheCloudOfItsVM(t *testing.T) {
	east := vm(func(v *pcapi.VM) { v.Spec.CloudRef = &pcapi.CloudReference{Name: "east"} })
	snap := &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"}, Spec: pcapi.VMSnapshotSpec{VMName: east.Name}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for cloud, want := range map[string]bool{"east": true, "default": false} {
		var out strings.Builder
		if err := Run(t.Context(), fakeClient(t, east, snap, namespace), Options{Policy: PolicyDelete, Cloud: cloud, Timeout: time.Minute}, &out); err != nil {
			t.Fatalf("Run: %v", err)
		}
		if strings.Contains(out.String(), "vmsnapshots") != want {
			t.Errorf("drain of Cloud %s: the VMSnapshot is deleted: %v, want %v:\n%s", cloud, !want, want, out.String())
		}
	}
}
