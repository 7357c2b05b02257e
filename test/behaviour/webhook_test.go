package behaviour_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// webhookLabels are the labels of namespaces in which the API server calls the
// name check webhook. In all others only the controller checks names.
var webhookLabels = map[string]string{"name-check": "operator"}

// operatorWebhook are the webhooks that the operator serves.
var operatorWebhook *testkit.Webhook

// registerWebhook registers a webhook for namespaces with these labels, and
// returns once it answers.
func registerWebhook(ctx context.Context, webhook *testkit.Webhook, name string, labels map[string]string) error {
	if err := webhook.Register(ctx, name, labels); err != nil {
		return err
	}
	namespace := testkit.Namespace("webhook-", labels)
	if err := env.Client.Create(ctx, namespace); err != nil {
		return fmt.Errorf("creating a namespace for the webhook: %w", err)
	}
	warning := fmt.Sprintf(`Warning: vmname "any" was not checked: Cloud "nowhere" does not exist, or namespace %q may not use it; the operator checks it before it creates the VM`,
		namespace.Name)
	var output string
	err := wait.PollUntilContextTimeout(ctx, longestInterval, timeout, true, func(ctx context.Context) (bool, error) {
		output, _ = env.Kubectl(ctx, manifest(namespace.Name, "any", "{vmname: any, cloudRef: {name: nowhere}}"), "create", "--dry-run=server", "-f", "-")
		return strings.Contains(output, warning), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the webhook %s, which answers %q: %w", name, output, err)
	}
	return nil
}

// newWebhookFixture returns a fixture in whose namespace the operator's webhook is called.
func newWebhookFixture(t *T, options mockcloud.Options, change ...func(*pcapi.Cloud)) *fixture {
	t.Helper()
	f := newFixture(t, options, change...)
	f.namespace = newNamespace(t, webhookLabels)
	t.Eventually(f.observedBy(operator)).Should(testkit.BeReady())
	return f
}

// observedBy returns the Cloud as a manager has observed it: its webhook does not check
// names with a Cloud that is not ready there.
func (f *fixture) observedBy(manager *testkit.Manager) func(context.Context) (*pcapi.Cloud, error) {
	return func(ctx context.Context) (*pcapi.Cloud, error) {
		observed := &pcapi.Cloud{}
		return observed, manager.Cache.Get(ctx, client.ObjectKeyFromObject(f.object), observed)
	}
}

func manifest(namespace, name, spec string) string {
	return fmt.Sprintf("{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: VM, metadata: {namespace: %s, name: %s}, spec: %s}", namespace, name, spec)
}

// applyVM applies the VM web with kubectl and returns it with the output.
func (f *fixture) applyVM(vmname string, flags ...string) (*pcapi.VM, string, error) {
	f.t.Helper()
	spec := fmt.Sprintf("{vmname: %s, cloudRef: {name: %s}}", vmname, f.object.Name)
	output, err := env.Kubectl(f.t.Context(), manifest(f.namespace, "web", spec), append([]string{"apply", "-f", "-"}, flags...)...)
	return testkit.VM(f.namespace, "web"), output, err
}

// prohibition is the message by which the webhook refuses the VM web with a prohibited name.
func (f *fixture) prohibition() string {
	return fmt.Sprintf(`The VM "web" is invalid: spec.vmname: Invalid value: "forbidden": rejected by Cloud %q: the name "forbidden" is prohibited; choose another name`, f.object.Name)
}

func TestNameCheckWebhook(t *testing.T) { nameChecks.run(t) }

var nameChecks = cases{
	"the cloud prohibits the name: the VM is refused and stored once the name is corrected": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		vm, output, err := f.applyVM("forbidden")
		t.Expect(err).To(HaveOccurred())
		t.Expect(output).To(ContainSubstring(f.prohibition()))
		t.Expect(isGone(vm)(t.Context())).To(BeTrue(), "something was stored")

		vm, output, err = f.applyVM("permitted")
		t.Expect(err).NotTo(HaveOccurred(), output)
		t.Expect(output).NotTo(ContainSubstring("Warning"))
		waitReady(t, vm)
		t.Expect(f.createCalls()).To(Equal(1))
	},

	"the name is taken: the VM is stored with a warning and an edit to a prohibited name is refused": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		f.putForeignServer("web", nil)
		vm, output, err := f.applyVM("web")
		t.Expect(err).NotTo(HaveOccurred(), output)
		t.Expect(output).To(ContainSubstring(`Warning: vmname "web" is not available in Cloud "` + f.object.Name + `": the name "web" is taken; the VM is created once the name is free`))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"))

		_, output, err = f.applyVM("forbidden")
		t.Expect(err).To(HaveOccurred())
		t.Expect(output).To(ContainSubstring(f.prohibition()))
		t.Expect(get(t, vm).Spec.VMName).To(Equal("web"))

		_, output, err = f.applyVM("permitted")
		t.Expect(err).NotTo(HaveOccurred(), output)
		waitReady(t, vm)
	},

	"the operator and users write to the object: the webhook does not check the name again": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		annotate(t, vm, "example.com/note", "unrelated")
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.checkCalls()).To(Equal(2), "once by the webhook and once by the controller")
	},

	"the cloud is unreachable: the VM is stored with a warning and its condition reports the check later": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		f.Disconnect()
		t.Eventually(f.observedBy(operator)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		vm, output, err := f.applyVM("forbidden")
		t.Expect(err).NotTo(HaveOccurred(), output)
		t.Expect(output).To(ContainSubstring(`Warning: vmname "forbidden" was not checked: Cloud "` + f.object.Name + `" is not ready; the operator checks it before it creates the VM`))
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable"))

		f.reconnect()
		requestReconcile(t, f.object)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))
		t.Expect(f.createCalls()).To(BeZero())
	},

	"the cloud does not answer in time: the VM is stored with a warning": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		id := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Path: "/check/**"}, Hold: true})
		vm, output, err := f.applyVM("web")
		t.Expect(err).NotTo(HaveOccurred(), output)
		t.Expect(output).To(ContainSubstring(`Warning: vmname "web" was not checked: Cloud "`+f.object.Name+`" did not complete the check`),
			"the warning is the operator's, so it came before the API server's timeout")
		t.Expect(f.RemoveFault(id)).To(Succeed())
		waitReady(t, vm)
	},

	"the namespace may not use the Cloud: the cloud is not asked": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "theirs"}}
		})
		vm, output, err := f.applyVM("forbidden")
		t.Expect(err).NotTo(HaveOccurred(), output)
		t.Expect(output).To(ContainSubstring(fmt.Sprintf(`Warning: vmname "forbidden" was not checked: Cloud %q does not exist, or namespace %q may not use it;`, f.object.Name, f.namespace)))
		t.Expect(f.checkCalls()).To(BeZero())
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "may not use it"))
	},

	"an existing server is imported: the name is not checked": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		server := f.putForeignServer("web", nil)
		f.readyVM("web", importServer(server.ID))
		t.Expect(f.checkCalls()).To(BeZero())
	},

	"a group owns the VM: only the controller checks the name": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		vm := f.createVM("forbidden", func(vm *pcapi.VM) {
			vm.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: pcapi.GroupVersion.String(), Kind: "VmGroup", Name: "group", UID: "any", Controller: new(true),
			}}
		})
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Prohibited"))
		t.Expect(f.checkCalls()).To(Equal(1), "only by the controller")
	},

	"a dry run: the name is checked and nothing is stored": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{})
		_, output, err := f.applyVM("forbidden", "--dry-run=server")
		t.Expect(err).To(HaveOccurred())
		t.Expect(output).To(ContainSubstring(f.prohibition()))
		vm, output, err := f.applyVM("permitted", "--dry-run=server")
		t.Expect(err).NotTo(HaveOccurred(), output)
		t.Expect(isGone(vm)(t.Context())).To(BeTrue())
		t.Expect(f.effects()).To(BeEmpty())
	},

	"three requests: all use the session of the controller": func(t *T) {
		f := newWebhookFixture(t, mockcloud.Options{Username: "operator", Password: password},
			withSecret(t, map[string]string{"username": "operator", "password": password}))
		for range 3 {
			_, output, err := f.applyVM("forbidden")
			t.Expect(err).To(HaveOccurred())
			t.Expect(output).To(ContainSubstring(f.prohibition()))
		}
		t.Expect(f.CountCalls("POST", "/sessions")).To(Equal(1))
	},
}

// reviews counts the requests that the API server sent to the webhook of any manager.
func reviews(t *T) (total float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	t.Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		if family.GetName() == "controller_runtime_webhook_requests_total" {
			for _, metric := range family.GetMetric() {
				total += metric.GetCounter().GetValue()
			}
		}
	}
	return total
}

// TestAPIServerAsksTheWebhookAboutNewNamesOnly runs while no other case does.
func TestAPIServerAsksTheWebhookAboutNewNamesOnly(tt *testing.T) {
	t := newT(tt)
	f := newWebhookFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyAny })
	server := f.putForeignServer("theirs", nil)
	wants := func(more int, what string, do func()) {
		t.Helper()
		before := reviews(t)
		do()
		t.Expect(reviews(t)-before).To(BeEquivalentTo(more), what)
	}
	var vm, waiting *pcapi.VM
	wants(1, "a VM is created", func() { vm = f.readyVM("web") })
	wants(0, "a user annotates and resizes it", func() {
		annotate(t, vm, "example.com/note", "unrelated")
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"))
	})
	wants(0, "it is deleted", func() {
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
	})
	wants(0, "a server is imported", func() { f.readyVM("theirs", importServer(server.ID)) })
	wants(0, "a group creates its members", func() {
		t.Eventually(latest(f.createGroup("group", 2))).Should(testkit.BeReady())
	})
	f.putForeignServer("taken", nil)
	wants(1, "a VM whose name is taken is created", func() {
		waiting = f.createVM("taken")
		t.Eventually(latest(waiting)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Taken"))
	})
	wants(1, "its name is edited", func() {
		waiting = edit(t, waiting, func(vm *pcapi.VM) { vm.Spec.VMName = "free" })
		waitReady(t, waiting)
	})
}

// startStandby starts a replica that does not lead and serves the webhook for the
// namespaces with the labels. stop stops it; the end of the test does, too.
func startStandby(t *T, name string) (standby *testkit.Manager, labels map[string]string, stop func() error) {
	t.Helper()
	webhook := newWebhook(t)
	standby, stop = serveWebhook(t, webhook, heldLease(t, name))
	labels = map[string]string{"name-check": name}
	t.Expect(registerWebhook(t.Context(), webhook, name, labels)).To(Succeed())
	t.cleanup(func(ctx context.Context) { t.Expect(webhook.Unregister(ctx, name)).To(Succeed()) })
	return standby, labels, stop
}

// heldLease returns a lease that another replica holds.
func heldLease(t *T, name string) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: new("another replica"), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NowMicro()),
	}
	t.Expect(env.Client.Create(t.Context(), lease)).To(Succeed())
	return lease
}

func newWebhook(t *T) *testkit.Webhook {
	t.Helper()
	webhook, err := env.NewWebhook()
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { t.Expect(webhook.Close()).To(Succeed()) })
	return webhook
}

// serveWebhook starts a replica that serves the webhooks, and does not lead while
// another holds the lease. stop stops it; the end of the test does, too.
func serveWebhook(t *T, webhook *testkit.Webhook, lease *coordinationv1.Lease) (standby *testkit.Manager, stop func() error) {
	t.Helper()
	standby, err := testkit.StartManager(operatorConfig,
		setup.Options{Namespace: operatorNamespace, CallTimeout: callTimeout, NameCheck: true, CloudWebhook: true},
		webhook.Serve, func(options *ctrl.Options) {
			options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = true, lease.Name, lease.Namespace
			options.LeaderElectionConfig = env.Config
		})
	t.Expect(err).NotTo(HaveOccurred())
	stop = sync.OnceValue(standby.Stop)
	t.Cleanup(func() { t.Expect(stop()).To(Succeed()) })
	return standby, stop
}

// checkedByStandby returns a Cloud with sessions, on which the standby that serves
// namespaces with the labels has refused a name.
func checkedByStandby(t *T, standby *testkit.Manager, labels map[string]string) *fixture {
	t.Helper()
	f := newFixture(t, mockcloud.Options{Username: "operator", Password: password},
		withSecret(t, map[string]string{"username": "operator", "password": password}))
	f.namespace = newNamespace(t, labels)
	t.Eventually(f.observedBy(standby)).Should(testkit.BeReady())
	_, output, err := f.applyVM("forbidden")
	t.Expect(err).To(HaveOccurred())
	t.Expect(output).To(ContainSubstring(f.prohibition()))
	t.Expect(f.CountCalls("POST", "/sessions")).To(Equal(2), "the leader's session and the standby's")
	return f
}

func TestStoppedOperatorClosesItsSessions(tt *testing.T) {
	t := newT(tt)
	standby, labels, stop := startStandby(t, "stopped")
	f := checkedByStandby(t, standby, labels)
	t.Expect(f.CountCalls("DELETE", "/sessions")).To(Equal(0))

	t.Expect(stop()).To(Succeed())
	t.Expect(f.CountCalls("DELETE", "/sessions")).To(Equal(1), "the standby's session ends before the standby does")
	f.readyVM("after")
}

func TestStandbyServesTheNameCheckWebhook(tt *testing.T) {
	t := newT(tt)
	standby, labels, _ := startStandby(t, "standby")
	f := checkedByStandby(t, standby, labels)
	t.Expect(standby.Writes.To()).To(BeEmpty(), "a standby writes nothing")

	deleteObject(t, f.object)
	t.Eventually(func() int { return f.CountCalls("DELETE", "/sessions") }).Should(Equal(2))
}
