package vm

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

var withFlavors = cloud.NewCapabilities(append(everything, cloud.Flavors)...)

// mapsTo returns a change by which a class names a flavor.
func mapsTo(flavor string) func(*pcapi.VMClass) {
	return func(c *pcapi.VMClass) { c.Spec.OpenStack = &pcapi.VMClassOpenStack{Flavor: flavor} }
}

func (h *harness) createClasses(classes ...*pcapi.VMClass) {
	h.t.Helper()
	for _, class := range classes {
		if err := h.client.Create(h.t.Context(), class); err != nil {
			h.t.Fatalf("create VMClass: %v", err)
		}
	}
}

func (h *harness) wantFlavor(flavor string, cpu, mib int) {
	h.t.Helper()
	servers := h.cloud.Servers()
	if len(servers) != 1 || servers[0].Flavor != flavor || servers[0].CPU != cpu || servers[0].MemoryMiB != mib {
		h.t.Errorf("servers %+v, want one with flavor %q, %d cores and %d MiB", servers, flavor, cpu, mib)
	}
}

func TestVMHasTheFlavorThatItsClassNames(t *testing.T) {
	h := newHarness(t, withFlavors, vmWith(ofClass("c1")))
	h.createClasses(aClass("c1", 2, 4, mapsTo("small")), aClass("c2", 2, 4, mapsTo("large")))
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	h.wantFlavor("small", 1, 1<<10)
	equal(t, "flavor in status.class", "small", h.vm().Status.Class.Flavor)
	equal(t, "cores in status.hardware", int32(1), h.vm().Status.Hardware.CPU)
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.poll()
	h.mustReconcile() // the flavor is smaller than the class, and that is no drift
	h.wantCalls()

	h.edit(func(vm *pcapi.VM) { vm.Spec.ClassName = "c2" }) // of the same size
	h.mustReconcile()                                       // takes the class
	h.mustReconcile()
	h.wantFlavor("large", 4, 8<<10)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestFlavorOfAClassMattersOnlyWhereSizesHaveNames(t *testing.T) {
	h := newHarness(t, everything, vmWith(ofClass("c1")))
	h.createClasses(aClass("c1", 2, 4, mapsTo("small")))
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	h.wantSize(2, 4)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestFlavorThatDoesNotExistSaysWhichClassNamesIt(t *testing.T) {
	h := newHarness(t, withFlavors, vmWith(ofClass("c1")))
	h.createClasses(aClass("c1", 2, 4, mapsTo("gone")))
	h.mustReconcile()
	h.wantCondition(pcapi.StalledCondition, "True Rejected", `no flavor is named "gone"`, "there are: large, small", `VMClass "c1"`, "spec.className")
	if servers := h.cloud.Servers(); len(servers) > 0 {
		t.Errorf("servers %+v, want none", servers)
	}
}

func TestFlavorOfASuspendedServerStays(t *testing.T) {
	obs := &observation{}
	obs.Resource = &cloud.Server{State: cloud.StateSuspended}
	obs.View.Capabilities = withFlavors
	on := cloud.PowerOn
	got := firstChange(onRecord(), obs, cloud.Update{cloud.SetFlavor("large"), cloud.SetPower{State: on}})
	equal(t, "first change", cloud.Update{cloud.SetPower{State: on}}, got)
}
