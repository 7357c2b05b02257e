package vsphere_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/simulator"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/testkit"
)

func TestEditOfPlaceIsUsedForNewVMsWithoutRestart(tt *testing.T) {
	s := newSite(tt)
	s.Expect(s.vcenter.MakeDatastore(s.Context(), "fast", s.TempDir())).To(Succeed())
	s.Expect(s.vcenter.MakePool(s.Context(), "reserved")).To(Succeed())
	before := s.vm("before")
	s.ready(before)

	s.place(func(p *pcapi.VSphereCloud) { p.Datastore = "fast" })
	s.observed()
	s.placedOn("on-fast", "fast", "Resources", vcsim.Folder)
	s.place(func(p *pcapi.VSphereCloud) { p.ResourcePool = "/DC0/host/DC0_C0/Resources/reserved" })
	s.observed()
	s.placedOn("in-reserved", "fast", "reserved", vcsim.Folder)
	s.placedAs("before", "LocalDS_0", "Resources", vcsim.Folder)
	s.remove(before)

	_, err := s.vcenter.MakeFolder(s.Context(), "elsewhere")
	s.Expect(err).NotTo(HaveOccurred())
	s.place(func(p *pcapi.VSphereCloud) { p.Folder = "elsewhere" })
	s.observed()
	s.placedOn("in-elsewhere", "fast", "reserved", "elsewhere")
}

// aZone adds the zone b: the pool of this name, and the datastore fast.
func aZone(p *pcapi.VSphereCloud) {
	p.Zones = []pcapi.VSphereZone{{Name: "b", ResourcePool: "/DC0/host/DC0_C0/Resources/b", Datastore: "fast"}}
}

func TestZonesOfACloudAreUsedAndChangedWithoutRestart(tt *testing.T) {
	s := newSite(tt)
	s.Expect(s.vcenter.MakeDatastore(s.Context(), "fast", s.TempDir())).To(Succeed())
	s.Expect(s.vcenter.MakePool(s.Context(), "b")).To(Succeed())
	inB := func(vm *pcapi.VM) { vm.Spec.Zone = "b" }
	web := s.vm("web", inB)
	s.Eventually(s.stored(web)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.UnsupportedReason, "zone"))

	s.place(aZone)
	s.observed()
	s.requestReconcile(web)
	s.ready(web)
	s.placedAs("web", "fast", "b", vcsim.Folder)
	s.Expect(web.Status.Zone).To(Equal("b"))
	elsewhere := s.vm("elsewhere", func(vm *pcapi.VM) { vm.Spec.Zone = "c" })
	s.Eventually(s.stored(elsewhere)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.RejectedReason, `there is no zone "c"; there is "b"`))

	s.place(func(p *pcapi.VSphereCloud) { p.Zones[0].Name = "c" })
	s.observed()
	s.requestReconcile(elsewhere)
	s.ready(elsewhere)
	s.Eventually(s.stored(web)).Should(HaveField("Status.Zone", "c"), "the pool has another name, and the VM is where it was")
	s.placedAs("web", "fast", "b", vcsim.Folder)

	s.place(func(p *pcapi.VSphereCloud) { p.Zones[0].ResourcePool = "/DC0/host/DC0_C0/Resources" })
	s.Eventually(s.stored(web)).Should(HaveField("Status.Zone", ""), "the pool is of no zone any more")
	s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero())
	s.remove(web, elsewhere)
}

func TestMissingPoolOfAZoneConcernsItsVMsAlone(tt *testing.T) {
	s := newSite(tt)
	s.place(func(p *pcapi.VSphereCloud) { aZone(p); p.Zones[0].Datastore = "" })
	s.Eventually(s.stored(s.cloud())).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.InvalidConfigurationReason, "spec.vsphere.zones[b].resourcePool", "/DC0/host/DC0_C0/Resources"))
	inB := s.vm("in-b", func(vm *pcapi.VM) { vm.Spec.Zone = "b" })
	s.Eventually(s.stored(inB)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.UnschedulableReason, `the zone "b"`, "corrected by the administrator"))
	s.showsNoneOf(inB, "spec.vsphere", "DC0", "/Resources")
	elsewhere := s.vm("elsewhere")
	s.ready(elsewhere)

	s.Expect(s.vcenter.MakePool(s.Context(), "b")).To(Succeed())
	s.observed()
	s.requestReconcile(inB)
	s.ready(inB)
	s.placedAs("in-b", "LocalDS_0", "b", vcsim.Folder)
	s.remove(inB, elsewhere)
}

// observed waits until the Cloud is ready as its spec is now.
func (s *site) observed() {
	s.Helper()
	s.Eventually(s.stored(s.cloud())).Should(Satisfy(func(o client.Object) bool {
		c := o.(*pcapi.Cloud) //nolint:forcetypeassert // it is read into one
		ready, err := testkit.BeReady().Match(c)
		return ready && err == nil && c.Status.ObservedGeneration == c.Generation
	}))
}

// placedOn creates a VM, checks where it is, and deletes it.
func (s *site) placedOn(name, datastore, pool, folder string) {
	s.Helper()
	vm := s.vm(name)
	s.ready(vm)
	s.placedAs(name, datastore, pool, folder)
	s.remove(vm)
}

func (s *site) placedAs(name, datastore, pool, folder string) {
	s.Helper()
	vm, registry := s.vcenter.VM(name), s.vcenter.Model.Map()
	s.Expect([]string{
		registry.Get(vm.Datastore[0]).(*simulator.Datastore).Name, registry.Get(*vm.ResourcePool).(*simulator.ResourcePool).Name, registry.Get(*vm.Parent).(*simulator.Folder).Name,
	}).To(Equal([]string{datastore, pool, folder}), "datastore, pool and folder of %s", name)
}

// badPlace is a block that names something that does not exist.
type badPlace struct {
	change func(*pcapi.VSphereCloud)
	// says is what the message has: the field, what it names, and what there is.
	says []string
	// make makes what is named; nil where the spec has to be mended.
	make func(*site) error
}

func badPlaces() map[string]badPlace {
	return map[string]badPlace{
		"datacenter":        {func(p *pcapi.VSphereCloud) { p.Datacenter = "DC9" }, []string{"spec.vsphere.datacenter", "DC9", "DC0"}, nil},
		"folder":            {func(p *pcapi.VSphereCloud) { p.Folder = "nowhere" }, []string{"spec.vsphere.folder", "nowhere", vcsim.Folder}, func(s *site) error { return makeFolder(s, "nowhere") }},
		"datastore":         {func(p *pcapi.VSphereCloud) { p.Datastore = "tape" }, []string{"spec.vsphere.datastore", "tape", "LocalDS_0"}, func(s *site) error { return s.vcenter.MakeDatastore(s.Context(), "tape", s.TempDir()) }},
		"resource pool":     {func(p *pcapi.VSphereCloud) { p.ResourcePool = "tiny" }, []string{"spec.vsphere.resourcePool", "tiny", "/DC0/host/DC0_C0/Resources"}, func(s *site) error { return s.vcenter.MakePool(s.Context(), "tiny") }},
		"template":          {func(p *pcapi.VSphereCloud) { p.Templates.Default = "gold" }, []string{"spec.vsphere.templates.default", "gold", vcsim.Template}, func(s *site) error { return s.vcenter.MakeTemplate(s.Context(), "gold") }},
		"template's folder": {func(p *pcapi.VSphereCloud) { p.Templates = pcapi.VSphereTemplates{Folder: "images"} }, []string{"spec.vsphere.templates.folder", "images", vcsim.Folder}, nil},
		"network":           {func(p *pcapi.VSphereCloud) { p.Networks.Default = "dmz" }, []string{"spec.vsphere.networks.default", "dmz", "VM Network"}, nil},
		"snapshot":          {func(p *pcapi.VSphereCloud) { p.CloneMode = pcapi.CloneModeLinked }, []string{"spec.vsphere.templates.default", vcsim.Template, "snapshot", "cloneMode"}, nil},
	}
}

func makeFolder(s *site, name string) error {
	_, err := s.vcenter.MakeFolder(s.Context(), name)
	return err
}

func TestCloudThatNamesWhatDoesNotExistSaysWhatThereIsToAdministratorsAlone(tt *testing.T) {
	tt.Parallel()
	for name, bad := range badPlaces() {
		tt.Run(name, func(tt *testing.T) {
			s := newSite(tt)
			existing := s.vm("existing")
			s.ready(existing)
			good := cloudOn(s.vcenter, s.name)

			s.place(bad.change)
			s.Eventually(s.stored(s.cloud())).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.InvalidConfigurationReason, bad.says...))
			waiting := s.vm("waiting", func(vm *pcapi.VM) { vm.Spec.Template = vcsim.Template })
			s.Eventually(s.stored(waiting)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.CloudUnavailableReason, "has to be corrected by its administrator"))
			for _, vm := range []*pcapi.VM{existing, waiting} {
				s.showsNoneOf(vm, "spec.vsphere", "DC0", "DC9", "LocalDS_0", "VM Network", "/Resources", "nowhere", "tape", "tiny", "gold", "images", "dmz", "snapshot")
			}

			if bad.make == nil {
				s.place(func(p *pcapi.VSphereCloud) { *p = *good.Spec.VSphere })
			} else {
				s.Expect(bad.make(s)).To(Succeed())
			}
			s.observed()
			s.ready(waiting)
			s.Expect(s.vcenter.Front.Sent("Destroy_Task")).To(BeZero())
		})
	}
}

// showsNoneOf fails if the conditions of a VM have one of the texts.
func (s *site) showsNoneOf(vm *pcapi.VM, texts ...string) {
	s.Helper()
	conditions := conditionsOf(read(s, vm))
	for _, text := range texts {
		s.Expect(strings.Contains(conditions, text)).To(BeFalse(), "VM %s shows %q: %s", vm.Name, text, conditions)
	}
}
