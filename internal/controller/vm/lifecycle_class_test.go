package vm

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func ofClass(name string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.ClassName, vm.Spec.CPU, vm.Spec.Memory = name, nil, nil }
}

// hasClass gives a VM a class that it has taken.
func hasClass(name string, cpu, memory int32) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		ofClass(name)(vm)
		vm.Status.Class = classWith(name, cpu, memory)
	}
}

func classWith(name string, cpu, memory int32) *pcapi.VMClassStatus {
	return &pcapi.VMClassStatus{Name: name, Hardware: pcapi.VMClassHardware{CPU: *pcapi.Cores(cpu), Memory: *pcapi.GiB(memory)}}
}

func aClass(name string, cpu, memory int32, change ...func(*pcapi.VMClass)) *pcapi.VMClass {
	class := &pcapi.VMClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pcapi.VMClassSpec{Hardware: pcapi.VMClassHardware{CPU: *pcapi.Cores(cpu), Memory: *pcapi.GiB(memory)}}}
	for _, f := range change {
		f(class)
	}
	return class
}

// replaceClass deletes a class, and creates it anew if it is given.
func (h *harness) replaceClass(name string, with *pcapi.VMClass) {
	h.t.Helper()
	if err := h.client.Delete(h.t.Context(), aClass(name, 1, 1)); err != nil {
		h.t.Fatalf("delete VMClass: %v", err)
	}
	if with != nil {
		if err := h.client.Create(h.t.Context(), with); err != nil {
			h.t.Fatalf("create VMClass: %v", err)
		}
	}
}

func (h *harness) wantSize(cpu, memory int) {
	h.t.Helper()
	servers := h.cloud.Servers()
	if len(servers) != 1 || servers[0].CPU != cpu || servers[0].MemoryMiB != memory<<10 {
		h.t.Errorf("servers %+v, want one with %d cores and %d GiB", servers, cpu, memory)
	}
}

func TestVMWaitsForItsClassAndTakesItsSize(t *testing.T) {
	h := newHarness(t, everything, vmWith(ofClass("small")))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False ClassUnavailable", `VMClass "small" does not exist, or namespace "ns" may not use it`, "spec.className")
	if err := h.client.Create(t.Context(), aClass("small", 2, 4)); err != nil {
		t.Fatalf("create VMClass: %v", err)
	}
	h.writes = nil
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	h.wantSize(2, 4)
	equal(t, "writes", []string{"status", "object", "status"}, h.writes)
	if diff := cmp.Diff(classWith("small", 2, 4), h.vm().Status.Class); diff != "" {
		t.Errorf("status.class (-want +got):\n%s", diff)
	}
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestClassThatTheNamespaceMayNotUseIsNotTaken(t *testing.T) {
	for name, allowed := range map[string]*metav1.LabelSelector{
		"another namespace": {MatchLabels: map[string]string{"team": "secret-team"}},
		"no valid selector": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Like"}}},
	} {
		t.Run(name, func(t *testing.T) {
			class := aClass("small", 2, 4, func(c *pcapi.VMClass) { c.Spec.AllowedNamespaces = allowed })
			h := newHarness(t, everything, vmWith(ofClass("small")), class, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
			h.mustReconcile()
			h.wantCalls()
			h.wantCondition(pcapi.ReadyCondition, "False ClassUnavailable", `VMClass "small" does not exist, or namespace "ns" may not use it`)
			h.wantNoWords("secret-team")
		})
	}
}

func TestVMKeepsTheSizeOfTheClassThatItTook(t *testing.T) {
	for name, with := range map[string]*pcapi.VMClass{
		"deleted": nil, "created anew": aClass("small", 8, 16),
		"not allowed any more": aClass("small", 2, 4, func(c *pcapi.VMClass) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vmWith(ofClass("small")), aClass("small", 2, 4))
			h.mustReconcile()
			h.wantCalls("check web", "create web")
			h.replaceClass("small", with)
			h.cloud.ModifyServer(h.vm().Status.VMID, func(s *cloud.Server) { s.CPU = 3 })
			h.later(pollInterval)
			h.mustReconcile()
			h.wantCalls("update " + h.vm().Status.VMID)
			h.wantSize(2, 4)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestCreateIsRepeatedWithTheSizeOfTheFirst(t *testing.T) {
	h := newHarness(t, everything, vmWith(ofClass("small")), aClass("small", 2, 4))
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Unavailable, Op: "create", Uncertain: true}, true)
	h.mustReconcile()
	h.replaceClass("small", aClass("small", 8, 16))
	h.start()
	h.connect()
	h.passSettleTimes(2)
	h.wantSize(2, 4)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestChangeOfClassResizes(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(hasClass("small", 2, 4)), serverWith(withMemory(4)))
	h.edit(ofClass("large"))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False ClassUnavailable", `VMClass "large" does not exist`)
	equal(t, "class", "small", h.vm().Status.Class.Name)

	h.edit(poweredOff)
	h.mustReconcile()
	h.wantCalls("update s1")
	h.wantCondition(pcapi.ReadyCondition, "False ClassUnavailable")

	if err := h.client.Create(t.Context(), aClass("large", 8, 16)); err != nil {
		t.Fatalf("create VMClass: %v", err)
	}
	h.wantRequeue(time.Second, h.mustReconcile())
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", `the size of VMClass "large"`)
	h.mustReconcile()
	h.wantCalls("update s1")
	h.wantSize(8, 16)
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")

	h.edit(func(vm *pcapi.VM) { vm.Spec.ClassName = "" })
	h.mustReconcile()
	h.wantCalls()
	if class := h.vm().Status.Class; class != nil {
		t.Errorf("status.class %+v without className, want none", class)
	}
}

func TestClassOnCloudsThatCannotSetSizesIsUnsupported(t *testing.T) {
	h := newHarness(t, cloud.NewCapabilities(cloud.UniqueNames), vmWith(ofClass("small")), aClass("small", 2, 4))
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "className")
	h.wantCalls()

	h = harnessWithServer(t, cloud.NewCapabilities(cloud.Labels, cloud.Sizing), onRecord(hasClass("small", 4, 4)), serverWith())
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "className")
	h.wantCalls("status s1")
}
