package vmgroup

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// kindReading returns a kind that reads these objects.
func kindReading(t *testing.T, objects ...client.Object) *kind {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pcapi.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatalf("AddToScheme: %v", err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&pcapi.VM{}, memberIndex, groupOf).Build()
	return newKind(c, &events.FakeRecorder{}, controller.Options{Clock: func() time.Time { return dawn }})
}

// observe observes a group of the namespace ns among these objects.
func observe(t *testing.T, g *pcapi.VmGroup, objects ...client.Object) (*observation, error) {
	t.Helper()
	return kindReading(t, objects...).Observe(t.Context(), g)
}

// listedCloud is the Cloud home, which was listed once and has the capability resize.
func listedCloud(change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	c := &pcapi.Cloud{
		ObjectMeta: metav1.ObjectMeta{Name: "home"},
		Spec:       pcapi.CloudSpec{Endpoint: "https://cloud.internal", CredentialsSecretRef: &pcapi.SecretReference{Name: "login"}, UtilizationStep: 5},
		Status:     pcapi.CloudStatus{Servers: &pcapi.CloudServers{}, Capabilities: []string{"resize"}},
	}
	for _, apply := range change {
		apply(c)
	}
	return c
}

func allows(selector *metav1.LabelSelector) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = selector }
}

func TestObserveCloud(t *testing.T) {
	onHome := func(g *pcapi.VmGroup) { g.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} }
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	denied := reconciler.Stalled(pcapi.CloudUnavailableReason, 0, errors.New(
		`Cloud "home" does not exist, or namespace "ns" may not use it: choose another in spec.cloudRef, or ask an administrator`))
	pending := &reconciler.WaitError{After: time.Second, Reason: pcapi.ProgressingReason, Message: `namespace "ns" has not been observed yet`, Quiet: true}
	type found struct {
		Denied, Failed error
		Closing        bool
		Caps           cloud.Capabilities
		Step           int32
	}
	usable := found{Caps: cloud.NewCapabilities(cloud.Resize), Step: 5}
	for name, test := range map[string]struct {
		group   *pcapi.VmGroup
		objects []client.Object
		want    found
	}{
		"the Cloud may be used": {groupOfSize(1, onHome), []client.Object{listedCloud(), ns}, usable},
		"the Cloud is being deleted: what it can do is known": {
			groupOfSize(1, onHome), []client.Object{listedCloud(func(c *pcapi.Cloud) {
				c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: dawn}, []string{pcapi.CloudFinalizer}
			}), ns}, found{Closing: true, Caps: usable.Caps, Step: 5},
		},
		"the namespace has another label: denied": {
			groupOfSize(1, onHome), []client.Object{listedCloud(allows(&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}})), ns}, found{Denied: denied},
		},
		"allowedNamespaces is no selector: denied": {
			groupOfSize(1, onHome), []client.Object{listedCloud(allows(&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}},
			})), ns}, found{Denied: denied},
		},
		"the namespace is not in the cache, a cloudRef: a quiet wait": {
			groupOfSize(1, onHome), []client.Object{listedCloud(allows(&metav1.LabelSelector{}))}, found{Failed: pending},
		},
		"the namespace is not in the cache, no cloudRef: a quiet wait": {groupOfSize(1), []client.Object{listedCloud()}, found{Failed: pending}},
		"the Cloud was never listed: blocked": {
			groupOfSize(1, onHome), []client.Object{listedCloud(func(c *pcapi.Cloud) { c.Status = pcapi.CloudStatus{} }), ns},
			found{Denied: reconciler.Blocked("Cloud/home", pcapi.CloudUnavailableReason, `waiting for Cloud "home" to answer for the first time: see its Ready condition`)},
		},
		"the Cloud does not exist: denied": {
			groupOfSize(1, onHome), []client.Object{ns}, found{Denied: denied},
		},
	} {
		t.Run(name, func(t *testing.T) {
			obs, err := observe(t, test.group, test.objects...)
			got := found{Denied: obs.denied, Failed: err, Closing: obs.closing, Caps: obs.caps, Step: obs.step}
			text := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Cause" },
				cmp.Transformer("Text", func(err error) string { return err.Error() }))
			if diff := cmp.Diff(test.want, got, text, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("observation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloudOfAGroup(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{pcapi.DefaultCloudLabel: "new"}}}
	group := func(change ...func(*pcapi.VmGroup)) *pcapi.VmGroup {
		g := groupOfSize(1)
		g.Namespace = "ns"
		for _, apply := range change {
			apply(g)
		}
		return g
	}
	memberOf := func(g *pcapi.VmGroup, change ...func(*pcapi.VM)) *pcapi.VM {
		vm := &pcapi.VM{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g, pcapi.GroupVersion.WithKind(kindName))}},
			Spec:       pcapi.VMSpec{CloudRef: &pcapi.CloudReference{Name: "old"}},
		}
		for _, apply := range change {
			apply(vm)
		}
		return vm
	}
	deleted := func(vm *pcapi.VM) { vm.DeletionTimestamp, vm.Finalizers = new(metav1.Now()), []string{"x.y/z"} }
	for name, tc := range map[string]struct {
		group   *pcapi.VmGroup
		members func(*pcapi.VmGroup) []client.Object
		want    string
	}{
		"the spec names a Cloud: that one": {
			group:   group(func(g *pcapi.VmGroup) { g.Spec.CloudRef = &pcapi.CloudReference{Name: "named"} }),
			members: func(g *pcapi.VmGroup) []client.Object { return []client.Object{memberOf(g)} },
			want:    "named",
		},
		"no member: the namespace's": {group: group(), members: func(*pcapi.VmGroup) []client.Object { return nil }, want: "new"},
		"a member on another Cloud than the namespace's: the member's": {
			group: group(), members: func(g *pcapi.VmGroup) []client.Object { return []client.Object{memberOf(g)} }, want: "old",
		},
		"a member that is being deleted: new members are on the namespace's": {
			group: group(), members: func(g *pcapi.VmGroup) []client.Object { return []client.Object{memberOf(g, deleted)} }, want: "new",
		},
		"a group that is being deleted with its members: still theirs": {
			group:   group(func(g *pcapi.VmGroup) { g.DeletionTimestamp = new(metav1.Now()) }),
			members: func(g *pcapi.VmGroup) []client.Object { return []client.Object{memberOf(g, deleted)} }, want: "old",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := kindReading(t, append(tc.members(tc.group), ns)...).cloudOf(t.Context(), tc.group)
			if err != nil || got != tc.want {
				t.Errorf("cloudOf: %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestMembersAreCreatedWithTheirClaim(t *testing.T) {
	ready := func(c *pcapi.Cloud) {
		c.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue}}
	}
	can := func(capabilities ...string) func(*pcapi.Cloud) {
		return func(c *pcapi.Cloud) { c.Status.Capabilities = capabilities }
	}
	for name, test := range map[string]struct {
		cloud []func(*pcapi.Cloud)
		group func(*pcapi.VmGroup)
		want  bool
	}{
		"keys and labels":                            {[]func(*pcapi.Cloud){ready, can("idempotency", "labels")}, nil, true},
		"keys alone":                                 {[]func(*pcapi.Cloud){ready, can("idempotency")}, nil, false},
		"labels alone":                               {[]func(*pcapi.Cloud){ready, can("labels", "uniqueNames")}, nil, false},
		"the Cloud is not ready":                     {[]func(*pcapi.Cloud){can("idempotency", "labels")}, nil, false},
		"the members wait for a Network":             {[]func(*pcapi.Cloud){ready, can("idempotency", "labels")}, func(g *pcapi.VmGroup) { g.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} }, false},
		"keys and labels, with further capabilities": {[]func(*pcapi.Cloud){ready, can("idempotency", "labels", "uniqueNames")}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := groupOfSize(1, func(g *pcapi.VmGroup) { g.Namespace, g.Spec.CloudRef = "ns", &pcapi.CloudReference{Name: "home"} })
			if test.group != nil {
				test.group(g)
			}
			k := kindReading(t, listedCloud(test.cloud...), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
			obs, err := k.Observe(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			vm, err := k.member(g, obs, "web-1")
			if err != nil {
				t.Fatal(err)
			}
			want := &metav1.ObjectMeta{}
			if test.want {
				want.Finalizers = []string{pcapi.VMFinalizer}
				want.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: vm.Spec.VMName, pcapi.ClaimedCloudAnnotation: "home"}
			}
			got := &metav1.ObjectMeta{Finalizers: vm.Finalizers, Annotations: vm.Annotations}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("claim (-want +got):\n%s", diff)
			}
		})
	}
}
