package vm

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

var withFlavors = cloud.NewCapabilities(append(everything, cloud.Flavors)...)

// mapsTo has a class name a flavor.
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

func TestSizeChangeComparesFlavorsWhereBothHaveOne(t *testing.T) {
	of := func(flavor string) *pcapi.VM {
		return vmWith(hasClass("c1", 2, 4), func(vm *pcapi.VM) { vm.Status.Class.Flavor = flavor })
	}
	for name, tc := range map[string]struct {
		vm     *pcapi.VM
		server cloud.Server
		want   cloud.UpdateServer
	}{
		"the flavor, of another size":           {of("small"), cloud.Server{Flavor: "small", CPU: 1, MemoryMiB: 1024}, cloud.UpdateServer{}},
		"another flavor, of the class's size":   {of("small"), cloud.Server{Flavor: "large", CPU: 2, MemoryMiB: 4096}, cloud.UpdateServer{Flavor: new("small")}},
		"a server without a flavor, other size": {of("small"), cloud.Server{CPU: 1, MemoryMiB: 4096}, cloud.UpdateServer{CPU: new(2)}},
		"a class without a flavor, other size":  {of(""), cloud.Server{Flavor: "small", CPU: 2, MemoryMiB: 1024}, cloud.UpdateServer{MemoryMiB: new(4096)}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, "change", tc.want, sizeChange(tc.vm, tc.server)) })
	}
}

func TestFlavorOfASuspendedServerStays(t *testing.T) {
	obs := &observation{}
	obs.Resource = &cloud.Server{State: cloud.StateSuspended}
	obs.View.Capabilities = withFlavors
	on := cloud.PowerOn
	got := firstChange(onRecord(), obs, cloud.UpdateServer{Flavor: new("large"), PowerState: &on})
	equal(t, "first change", cloud.UpdateServer{PowerState: &on}, got)
	equal(t, "what is left of it", cloud.UpdateServer{}, ofChange(cloud.UpdateServer{Flavor: new("large")}, got))
}
