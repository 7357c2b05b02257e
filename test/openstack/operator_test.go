package openstack_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/clouds/openstackdialer"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

const (
	namespace = "tenant"
	cloudName = "zed"
	// settleTime is that of all Clouds.
	settleTime = 5 * time.Second
)

var (
	env *testkit.Env
	// account is that of the operator.
	account *rest.Config
	// between is between the operator and the OpenStack.
	between  = &wire{}
	operator *testkit.Manager
	// direct is a client of the operator's project that the operator does not have.
	direct *openstack.Client
)

// parallel is how many tests run at once: each waits for nova most of the time.
const parallel = 8

func TestMain(m *testing.M) {
	flag.Parse()
	// Ginkgo refuses the flag if it is given.
	if err := flag.Lookup("test.parallel").Value.Set(strconv.Itoa(max(parallel, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	ctrl.SetLogger(logr.Discard()) // until TestOperator sets another one
	os.Exit(m.Run())
}

func TestOperator(t *testing.T) {
	t.Parallel()
	RegisterFailHandler(Fail)
	RunSpecs(t, "the operator with an OpenStack")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	p := newProject(GinkgoTB())
	direct = newClient(GinkgoTB(), p, &wire{})
	env, account = specs.Start(ctx, callTime, pollTime)
	startOperator()
	DeferCleanup(func() { Expect(operator.Stop()).To(Succeed()) })

	file := fmt.Sprintf("clouds: {zed: {auth: {auth_url: %q, username: %s, password: %s, project_name: %q, domain_name: %s}, interface: internal}}",
		os.Getenv("OPENSTACK_AUTH_URL"), user, password, p.name, domain)
	Expect(env.Client.Create(ctx, secretFor(cloudName, map[string]string{"clouds.yaml": file}))).To(Succeed())
	object := openStackCloud(cloudName, p)
	Expect(env.Client.Create(ctx, object)).To(Succeed())
	Eventually(ctx, specs.Stored(object)).Should(testkit.BeReady())
	Expect(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
}, NodeTimeout(10*time.Minute))

// startOperator starts the operator with a dialer that loses answers.
func startOperator() {
	GinkgoHelper()
	var err error
	operator, err = testkit.StartManager(account, setup.Options{
		Namespace: specs.OperatorNamespace, Workers: 8, Dialers: map[pcapi.CloudType]clouds.Dialer{
			pcapi.CloudTypeOpenStack: openstackdialer.Dialer{Base: openstack.Config{Holds: transport.NewHolds(), Base: between}},
		},
	})
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("An OpenStack", Ordered, func() {
	AfterEach(func(ctx SpecContext) {
		between.loseAnswers()
		Eventually(ctx, servers).Should(BeEmpty())
		Eventually(ctx, networks).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	It("a VM: is created, resized, stopped, started and deleted", func(ctx SpecContext) {
		vm := newVM("web", func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.Memory, vm.Spec.Tags = pcapi.Cores(1), pcapi.GiB(2), map[string]pcapi.TagValue{"env": "prod", "team": "a"}
		})
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		id := specs.Ready(ctx, vm).Status.VMID
		Expect(servers(ctx)).To(ConsistOf(And(HaveField("ID", id), HaveField("Name", "web"), HaveField("CPU", 1), HaveField("MemoryMiB", 2048),
			HaveField("Labels", SatisfyAll(HaveKeyWithValue("env", "prod"), HaveKeyWithValue("team", "a"))))))
		Expect(vm.Status.CPUUtilization).To(BeNil())

		specs.Edit(ctx, vm, func(vm *pcapi.VM) {
			vm.Spec.CPU, vm.Spec.Tags = pcapi.Cores(4), map[string]pcapi.TagValue{"env": "test"}
		})
		Eventually(ctx, servers).Should(ConsistOf(HaveField("Labels", SatisfyAll(HaveKeyWithValue("env", "test"), Not(HaveKey("team"))))))
		Eventually(ctx, specs.Stored(vm)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.NeedsRestartReason))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.UpdatePolicy = pcapi.UpdatePolicyRestartAllowed })
		Eventually(ctx, servers).Should(ConsistOf(And(HaveField("CPU", 4), HaveField("State", cloud.StateActive))))
		specs.Ready(ctx, vm)
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOn })
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateRunning))
		Expect(specs.Ready(ctx, vm).Status.VMID).To(Equal(id))
		specs.Remove(ctx, vm)
	}, SpecTimeout(10*time.Minute))

	It("a VM that is to be suspended: is created running, suspended, resumed and stopped", func(ctx SpecContext) {
		vm := newVM("asleep", func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerSuspended })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateSuspended))
		specs.Ready(ctx, vm)
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
		specs.Ready(ctx, vm)
		specs.Remove(ctx, vm)
	}, SpecTimeout(10*time.Minute))

	It("a VM that is to be stopped: is created running and stopped", func(ctx SpecContext) {
		vm := newVM("standby", func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
		specs.Ready(ctx, vm)
		specs.Remove(ctx, vm)
	}, SpecTimeout(10*time.Minute))

	It("a VM whose create's answer is lost: gets one server", func(ctx SpecContext) {
		restore := between.loseAnswers(pattern{"POST", "servers"})
		vm := newVM("lost")
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, servers).ShouldNot(BeEmpty())
		restore()
		id := specs.Ready(ctx, vm).Status.VMID
		Expect(servers(ctx)).To(ConsistOf(HaveField("ID", id)))
		specs.Remove(ctx, vm)
	}, SpecTimeout(10*time.Minute))

	It("a server that was made by hand: is imported, stopped and deleted", func(ctx SpecContext) {
		made, err := direct.CreateServer(ctx, cloud.CreateServer{Name: "legacy"})
		Expect(err).NotTo(HaveOccurred())
		vm := newVM("imported", func(vm *pcapi.VM) {
			vm.Spec.Import, vm.Spec.VMName = &pcapi.VMImport{VMID: made.Server.ID}, "legacy"
		})
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		imported := specs.Ready(ctx, vm)
		Expect(imported.Status.VMID).To(Equal(made.Server.ID))
		Expect(imported).To(testkit.HaveCondition(pcapi.CreatedCondition, metav1.ConditionTrue, pcapi.ImportedReason))
		specs.Edit(ctx, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		Eventually(ctx, servers).Should(ConsistOf(And(HaveField("ID", made.Server.ID), HaveField("State", cloud.StateStopped))))
		specs.Remove(ctx, vm)
	}, SpecTimeout(10*time.Minute))

	It("a VM of a size that no flavor has: stalls and lists the flavors", func(ctx SpecContext) {
		vm := newVM("huge", func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(99) })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		Eventually(ctx, specs.Stored(vm)).Should(testkit.HaveCondition(pcapi.StalledCondition, metav1.ConditionTrue, pcapi.RejectedReason, "no flavor has exactly 99 CPUs", "t-1-2 (1 CPUs, 2048 MiB)"))
		specs.Remove(ctx, vm)
	}, SpecTimeout(5*time.Minute))

	It("a VmGroup: is scaled up and down, and deleted", func(ctx SpecContext) {
		group := testkit.VmGroup(namespace, "workers", func(g *pcapi.VmGroup) {
			g.Spec.CloudRef, g.Spec.Replicas = &pcapi.CloudReference{Name: cloudName}, new(int32(3))
		})
		Expect(env.Client.Create(ctx, group)).To(Succeed())
		Eventually(ctx, specs.Stored(group)).Should(HaveField("Status.ReadyReplicas", BeEquivalentTo(3)))
		Expect(servers(ctx)).To(HaveLen(3))
		specs.Edit(ctx, group, func(g *pcapi.VmGroup) { g.Spec.Replicas = new(int32(1)) })
		Eventually(ctx, servers).Should(HaveLen(1))
		specs.Remove(ctx, group)
	}, SpecTimeout(10*time.Minute))

	It("VMs while answers are lost and the operator is restarted: one server for each", func(ctx SpecContext) {
		const count = 8
		between.loseEvery(3, pattern{"POST", "servers"}, pattern{"DELETE", "servers/*"})
		var vms []*pcapi.VM
		for i := range count {
			vm := newVM(fmt.Sprintf("many-%d", i))
			Expect(env.Client.Create(ctx, vm)).To(Succeed())
			vms = append(vms, vm)
		}
		for _, created := range []int{count / 4, count / 2} {
			Eventually(ctx, servers).Should(WithTransform(func(s []cloud.Server) int { return len(s) }, BeNumerically(">=", created)))
			Expect(operator.Stop()).To(Succeed())
			startOperator()
		}
		var ids []any
		for _, vm := range vms {
			ids = append(ids, HaveField("ID", specs.Ready(ctx, vm).Status.VMID))
		}
		Eventually(ctx, servers).Should(ConsistOf(ids...))
		for _, vm := range vms {
			Expect(env.Client.Delete(ctx, vm)).To(Succeed())
		}
		for _, vm := range vms {
			specs.Gone(ctx, vm)
		}
	}, SpecTimeout(15*time.Minute))

	It("a Network with a VM, each answer to its create is lost: one network, whose gateway changes", func(ctx SpecContext) {
		restore := between.loseAnswers(pattern{"POST", "networks"})
		network := testkit.Network(namespace, "net", func(n *pcapi.Network) { n.Spec.CloudRef = &pcapi.CloudReference{Name: cloudName} })
		Expect(env.Client.Create(ctx, network)).To(Succeed())
		Eventually(ctx, networks).ShouldNot(BeEmpty())
		between.loseAnswers(pattern{"POST", "subnets"})
		Eventually(ctx, networks).Should(ConsistOf(HaveField("HalfMade", false)))
		restore()
		id := specs.Ready(ctx, network).Status.NetworkID
		Expect(networks(ctx)).To(ConsistOf(And(HaveField("ID", id), HaveField("Gateway", "192.168.0.1"))))

		vm := newVM("wired", func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: network.Name} })
		Expect(env.Client.Create(ctx, vm)).To(Succeed())
		specs.Ready(ctx, vm)
		Expect(servers(ctx)).To(ConsistOf(HaveField("NetworkID", id)))
		specs.Edit(ctx, network, func(n *pcapi.Network) { n.Spec.Gateway = "192.168.255.254" })
		Eventually(ctx, networks).Should(ConsistOf(HaveField("Gateway", "192.168.255.254")))
		Expect(env.Client.Delete(ctx, network)).To(Succeed())
		specs.Remove(ctx, vm)
		specs.Gone(ctx, network)
	}, SpecTimeout(10*time.Minute))
})

func servers(ctx context.Context) ([]cloud.Server, error) {
	page, err := direct.ListServers(ctx, cloud.ListServers{})
	return page.Servers, err
}

func networks(ctx context.Context) ([]cloud.Network, error) { return ownNetworks(ctx, direct) }

// secretFor returns the Secret with the credentials of a Cloud.
func secretFor(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: specs.OperatorNamespace, Name: name, Labels: map[string]string{pcapi.CredentialsForLabel: name}},
		StringData: data,
	}
}

// openStackCloud returns a Cloud of a project whose credentials are in the Secret of
// the same name.
func openStackCloud(name string, p project, change ...func(*pcapi.Cloud)) *pcapi.Cloud {
	return testkit.Cloud(name, os.Getenv("OPENSTACK_AUTH_URL"), append([]func(*pcapi.Cloud){func(c *pcapi.Cloud) {
		c.Spec.Type, c.Spec.REST = pcapi.CloudTypeOpenStack, nil
		c.Spec.CredentialsSecretRef, c.Spec.InsecureAllowHTTP = &pcapi.SecretReference{Name: name}, true
		c.Spec.PollInterval = metav1.Duration{Duration: 2 * time.Second}
		c.Spec.SettleTime = &metav1.Duration{Duration: settleTime}
		c.Spec.OpenStack = &pcapi.OpenStackCloud{
			Region: region, Project: p.name, Images: pcapi.OpenStackImages{Default: "small"}, Flavors: pcapi.OpenStackFlavors{Default: "t1"},
		}
	}}, change...)...)
}

// inTenant selects the objects of the tenant.
const inTenant = client.InNamespace(namespace)

// newVM returns a VM on the Cloud of the tests.
func newVM(name string, change ...func(*pcapi.VM)) *pcapi.VM {
	return testkit.VM(namespace, name, append(change, func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: cloudName} })...)
}
