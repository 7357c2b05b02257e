package behaviour_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// watched are the labels of namespaces whose VMs come through the door. In all
// others the controller's own check shows.
var watched = map[string]string{"door": "watched"}

// openDoor has the API server ask, in namespaces with these labels, whoever
// serves at the door, and returns once an answer comes.
func openDoor(ctx SpecContext, door *testkit.Door, name string, labels map[string]string) {
	GinkgoHelper()
	Expect(door.Open(ctx, name, labels)).To(Succeed())
	namespace := newNamespace(ctx, labels)
	Eventually(ctx, func() (string, error) {
		return tryKubectl(ctx, manifest(namespace, "any", "{vmname: any, cloudRef: {name: nowhere}}"), "create", "--dry-run=server", "-f", "-")
	}).Should(ContainSubstring(`Warning: vmname "any" was not checked: Cloud "nowhere" does not exist; the operator checks it before it creates the VM`))
}

func newDoor() *testkit.Door {
	GinkgoHelper()
	door, err := env.NewDoor()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(door.Close()).To(Succeed()) })
	return door
}

// newWatchedSite is a site whose namespace is behind the door.
func newWatchedSite(ctx SpecContext, options mockcloud.Options, change ...func(*v1alpha1.Cloud)) *site {
	GinkgoHelper()
	s := newSite(ctx, options, change...)
	s.namespace = newNamespace(ctx, watched)
	return s
}

func manifest(namespace, name, spec string) string {
	return fmt.Sprintf("{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: VM, metadata: {namespace: %s, name: %s}, spec: %s}", namespace, name, spec)
}

// apply applies the VM web as people do and returns it with what they read.
func (s *site) apply(ctx SpecContext, vmname string, flags ...string) (*v1alpha1.VM, string, error) {
	GinkgoHelper()
	spec := fmt.Sprintf("{vmname: %s, cloudRef: {name: %s}}", vmname, s.object.Name)
	output, err := tryKubectl(ctx, manifest(s.namespace, "web", spec), append([]string{"apply", "-f", "-"}, flags...)...)
	return testkit.VM(s.namespace, "web"), output, err
}

// prohibition is what people read of a VM web with a name that is prohibited.
func (s *site) prohibition() string {
	return fmt.Sprintf(`The VM "web" is invalid: spec.vmname: Invalid value: "forbidden": Cloud %q says: the name "forbidden" is prohibited; choose another name`, s.object.Name)
}

var nameDoor = theme{"a name that is to be stored", cases{
	"is refused at once where the cloud prohibits it, and stored once it is corrected": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		vm, output, err := s.apply(ctx, "forbidden")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring(s.prohibition()))
		Expect(gone(vm)(ctx)).To(BeTrue(), "something was stored")

		vm, output, err = s.apply(ctx, "permitted")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).NotTo(ContainSubstring("Warning"))
		untilReady(ctx, vm)
		Expect(s.posts()).To(Equal(1))
	},

	"is let through with a warning where it is taken, and then edited only to one that is not prohibited": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		s.stranger("web", nil)
		vm, output, err := s.apply(ctx, "web")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).To(ContainSubstring(`Warning: Cloud "` + s.object.Name + `" says of vmname "web": the name "web" is taken; the VM is created once it is free`))
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"))

		_, output, err = s.apply(ctx, "forbidden")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring(s.prohibition()))
		Expect(read(ctx, vm).Spec.VMName).To(Equal("web"))

		_, output, err = s.apply(ctx, "permitted")
		Expect(err).NotTo(HaveOccurred(), output)
		untilReady(ctx, vm)
	},

	"is not asked about again by what the operator and others write to the object": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		vm := s.ready(ctx, "web")
		annotate(ctx, vm, "example.com/note", "to whom it may concern")
		remove(ctx, vm)
		Eventually(ctx, gone(vm)).Should(BeTrue())
		Expect(s.checks()).To(Equal(2), "once at the door, and once by the controller")
	},

	"is stored with a warning while the cloud is away, and the condition says the rest": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		address := s.unplug()
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		vm, output, err := s.apply(ctx, "forbidden")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).To(ContainSubstring(`Warning: vmname "forbidden" was not checked: Cloud "` + s.object.Name + `" is not ready; the operator checks it before it creates the VM`))
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))

		s.plug(address)
		poke(ctx, s.object)
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))
		Expect(s.posts()).To(BeZero())
	},

	"is stored with a warning where the cloud takes longer than people like to wait": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		id := s.fault(mockcloud.Fault{Match: mockcloud.Match{Path: "/check/**"}, Hold: true})
		vm, output, err := s.apply(ctx, "web")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).To(ContainSubstring(`Warning: vmname "web" was not checked: Cloud "`+s.object.Name+`" did not say whether it may be used`),
			"the warning is ours, so it came before the API server's own timeout")
		Expect(s.RemoveFault(id)).To(Succeed())
		untilReady(ctx, vm)
	},

	"says nothing of a Cloud that the namespace may not use": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{}, func(c *v1alpha1.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "theirs"}}
		})
		vm, output, err := s.apply(ctx, "forbidden")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(output).To(ContainSubstring(fmt.Sprintf(`Warning: vmname "forbidden" was not checked: namespace %q may not use Cloud %q;`, s.namespace, s.object.Name)))
		Expect(s.checks()).To(BeZero())
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable"))
	},

	"is not asked about where a server that exists is imported": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		server := s.stranger("web", nil)
		s.ready(ctx, "web", importing(server.ID))
		Expect(s.checks()).To(BeZero())
	},

	"is not asked about where a group makes the VM, whose condition tells of it": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		vm := s.create(ctx, "forbidden", func(vm *v1alpha1.VM) {
			vm.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "VmGroup", Name: "group", UID: "any", Controller: new(true),
			}}
		})
		Eventually(ctx, now(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))
		Expect(s.checks()).To(Equal(1), "by the controller alone")
	},

	"is checked in a trial, too, of which nothing stays": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{})
		_, output, err := s.apply(ctx, "forbidden", "--dry-run=server")
		Expect(err).To(HaveOccurred())
		Expect(output).To(ContainSubstring(s.prohibition()))
		vm, output, err := s.apply(ctx, "permitted", "--dry-run=server")
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(gone(vm)(ctx)).To(BeTrue())
		Expect(s.effects()).To(BeEmpty())
	},

	"is asked about through the connection and the session that the controller has": func(ctx SpecContext) {
		s := newWatchedSite(ctx, mockcloud.Options{Username: "operator", Password: password},
			withSecret(ctx, map[string]string{"username": "operator", "password": password}))
		for range 3 {
			_, output, err := s.apply(ctx, "forbidden")
			Expect(err).To(HaveOccurred())
			Expect(output).To(ContainSubstring(s.prohibition()))
		}
		Expect(s.CountCalls("POST", "/sessions")).To(Equal(1))
	},
}}

var _ = It("a replica that does not lead checks names, too, and closes its connections", func(ctx SpecContext) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "standby"}}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: new("somebody else"), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NowMicro()),
	}
	Expect(env.Client.Create(ctx, lease)).To(Succeed())
	door, behind := newDoor(), map[string]string{"door": "standby"}
	standby, err := testkit.StartManager(operatorConfig, setup.Options{Namespace: operatorNamespace, CallTimeout: callTimeout, NameCheck: true},
		door.Serve, func(options *ctrl.Options) {
			options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, lease.Name, lease.Namespace
			options.LeaderElectionConfig = env.Config
		})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(standby.Stop()).To(Succeed()) })
	openDoor(ctx, door, "standby", behind)
	DeferCleanup(func(ctx SpecContext) { Expect(door.Shut(ctx, "standby")).To(Succeed()) })

	s := newSite(ctx, mockcloud.Options{Username: "operator", Password: password},
		withSecret(ctx, map[string]string{"username": "operator", "password": password}))
	s.namespace = newNamespace(ctx, behind)
	_, output, err := s.apply(ctx, "forbidden")
	Expect(err).To(HaveOccurred())
	Expect(output).To(ContainSubstring(s.prohibition()))
	Expect(s.CountCalls("POST", "/sessions")).To(Equal(2), "the leader's session and the standby's")
	Expect(standby.Writes.To()).To(BeEmpty(), "a standby writes nothing")

	remove(ctx, s.object)
	Eventually(ctx, func() int { return s.CountCalls("DELETE", "/sessions") }).Should(Equal(2))
})
