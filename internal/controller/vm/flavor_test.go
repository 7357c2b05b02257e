package vm

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
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

// ofFlavor has a VM name a flavor.
func ofFlavor(name pcapi.VMFlavor) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Spec.Flavor, vm.Spec.ClassName, vm.Spec.CPU, vm.Spec.Memory = name, "", nil, nil
	}
}

// withFlavor gives a server a flavor that no VM may name.
func withFlavor(s *cloud.Server) { s.CPU, s.MemoryMiB, s.Flavor = 1, 512, "tiny" }

// allowFlavors sets the patterns of the flavors that VMs may name.
func (h *harness) allowFlavors(patterns ...string) {
	h.t.Helper()
	var c pcapi.Cloud
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: "default"}, &c); err != nil {
		h.t.Fatalf("get Cloud: %v", err)
	}
	allowing(patterns...)(&c)
	if err := h.client.Update(h.t.Context(), &c); err != nil {
		h.t.Fatalf("update Cloud: %v", err)
	}
}

func allowing(patterns ...string) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) {
		c.Spec.OpenStack = &pcapi.OpenStackCloud{Flavors: pcapi.OpenStackFlavors{Selectable: patterns}}
	}
}

func TestVMHasTheFlavorThatItNames(t *testing.T) {
	h := newHarness(t, withFlavors, vmWith(ofFlavor("small")))
	h.createClasses(aClass("c1", 2, 4, mapsTo("small")))
	h.allowFlavors("other", "s*", "large")
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	h.wantFlavor("small", 1, 1<<10)
	equal(t, "flavor in status.hardware", "small", h.vm().Status.Hardware.Flavor)
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.edit(ofFlavor("large"))
	h.mustReconcile()
	h.wantFlavor("large", 4, 8<<10)
	equal(t, "flavor in status.hardware", "large", h.vm().Status.Hardware.Flavor)

	id := h.vm().Status.VMID
	h.cloud.ModifyServer(id, withFlavor) // by somebody else
	h.later(pollInterval)
	h.mustReconcile()
	h.wantFlavor("large", 4, 8<<10)

	h.edit(ofClass("c1"))
	h.mustReconcile() // takes the class
	h.mustReconcile()
	h.wantFlavor("small", 1, 1<<10)

	h.edit(ofFlavor("large"))
	h.mustReconcile()
	h.wantFlavor("large", 4, 8<<10)
	if class := h.vm().Status.Class; class != nil {
		t.Errorf("status.class %+v of a VM with a flavor, want none", class)
	}

	h.edit(func(vm *pcapi.VM) { vm.Spec.Flavor, vm.Spec.CPU, vm.Spec.Memory = "", pcapi.Cores(2), pcapi.GiB(4) })
	h.mustReconcile()
	h.wantSize(2, 4)

	h.edit(ofFlavor(""))
	h.mustReconcile()
	h.wantSize(2, 4)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestFlavorThatTheCloudDoesNotAllowIsRejected(t *testing.T) {
	for name, patterns := range map[string][]string{"none is listed": nil, "others are listed": {"secret-*", "Small", "small2"}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withFlavors, vmWith(ofFlavor("small")))
			h.allowFlavors(patterns...)
			h.mustReconcile()
			h.wantCalls()
			h.wantCondition(pcapi.StalledCondition, "True Rejected", `VMs may not name flavor "small"`, "spec.openstack.flavors.selectable", "VMClass", "spec.flavor")
			h.wantCondition(pcapi.CreatedCondition, "False Rejected")
			h.wantNoWords("secret", "large", "tiny")

			h.allowFlavors("small")
			h.mustReconcile()
			h.wantFlavor("small", 1, 1<<10)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
	t.Run("the Cloud has no flavors to allow", func(t *testing.T) {
		h := newHarness(t, withFlavors, vmWith(ofFlavor("small")))
		h.mustReconcile()
		h.wantCalls()
		h.wantCondition(pcapi.StalledCondition, "True Rejected", `VMs may not name flavor "small"`)
	})
}

func TestServerThatWasStoppedForAFlavorIsLeftToItsOwnerOnceThatIsNotListed(t *testing.T) {
	h := harnessWithServer(t, withFlavors, onRecord(ofFlavor("small"), restartAllowed, func(vm *pcapi.VM) {
		vm.Spec.PowerState, vm.Status.StoppedTime = pcapi.PowerUnmanaged, new(metav1.Now())
	}), serverWith(withFlavor))
	h.allowFlavors("large")
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Rejected", `VMs may not name flavor "small"`)
	if since := h.vm().Status.StoppedTime; since != nil {
		t.Errorf("the stop of %s is still on record, so that the server is started when its owner stops it", since)
	}
}

// The spec is edited after a create whose answer was lost, and the server does not exist.
func TestFlavorThatIsNotAllowedIsNotSentAgain(t *testing.T) {
	h := newHarness(t, withFlavors, vmWith(ofFlavor("small")))
	h.allowFlavors("small")
	h.cloud.Fail(cloudfake.CreateServer, errReset, false)
	h.mustReconcile()
	h.edit(ofFlavor("large"))
	h.passSettleTimes(2)
	if servers := h.cloud.Servers(); len(servers) > 0 {
		t.Errorf("servers %+v, want none", servers)
	}
	h.wantCondition(pcapi.StalledCondition, "True Rejected", `VMs may not name flavor "large"`)
}

func TestServerKeepsItsFlavorIfThatOfTheSpecIsNotAllowed(t *testing.T) {
	h := harnessWithServer(t, withFlavors, onRecord(ofFlavor("small"), restartAllowed), serverWith(withFlavor))
	h.allowFlavors("large")
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Rejected", `VMs may not name flavor "small"`)

	h.edit(poweredOff) // which is changed all the same
	h.mustReconcile()
	h.wantFlavor("tiny", 1, 512)
	equal(t, "state", cloud.StateStopped, h.cloud.Server("s1").State)
	h.wantCondition(pcapi.ReadyCondition, "False Rejected", `VMs may not name flavor "small"`)

	h.edit(ofFlavor("tiny")) // it has this one
	h.mustReconcile()
	h.wantFlavor("tiny", 1, 512)
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")
}

func TestFlavorThatAVMNamesAndThatDoesNotExistSaysSo(t *testing.T) {
	h := newHarness(t, withFlavors, vmWith(ofFlavor("gone")))
	h.allowFlavors("*")
	h.mustReconcile()
	h.wantCondition(pcapi.StalledCondition, "True Rejected", `no flavor is named "gone"`, "there are: large, small", "spec.flavor")
	h.wantNoWords("VMClass", "className")
}

func TestFlavorOnCloudsWhoseSizesHaveNoNamesIsUnsupported(t *testing.T) {
	h := newHarness(t, everything, vmWith(ofFlavor("small")))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.StalledCondition, "True Unsupported", "this cloud cannot set flavor: remove it from the spec")

	h = harnessWithServer(t, everything, onRecord(ofFlavor("small")), serverWith())
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.StalledCondition, "True Unsupported", "this cloud cannot set flavor")
}

func TestFlavorOfASuspendedServerStays(t *testing.T) {
	obs := &observation{}
	obs.Resource = &cloud.Server{State: cloud.StateSuspended}
	obs.View.Capabilities = withFlavors
	on := cloud.PowerOn
	got := firstChange(onRecord(), obs, cloud.Update{cloud.SetFlavor("large"), cloud.SetPower{State: on}})
	equal(t, "first change", cloud.Update{cloud.SetPower{State: on}}, got)
}
