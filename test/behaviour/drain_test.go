package behaviour_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/drain"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const drainRole, drainUser = "private-cloud-operator-drain", "drain"

// grantDrain gives drainUser the rights of the Job in config/drain.
var grantDrain = sync.OnceValue(func() error {
	root, err := testkit.ModuleRoot()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "config", "drain", "plan", "rbac.yaml"))
	if err != nil {
		return err
	}
	var role rbacv1.ClusterRole
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if strings.Contains(document, "kind: ClusterRole\n") && !strings.Contains(document, "roleRef") {
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				return err
			}
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: drainRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: drainUser}},
	}
	if err := env.Client.Create(context.Background(), &role); err != nil {
		return err
	}
	return env.Client.Create(context.Background(), binding)
})

// drain drains the Cloud of the fixture with the rights of the Job, and returns what it printed.
func (f *fixture) drain(options drain.Options) (string, error) {
	f.t.Helper()
	return f.drainer(options)()
}

// drainer returns what drains, for any goroutine.
func (f *fixture) drainer(options drain.Options) func() (string, error) {
	f.t.Helper()
	f.t.Expect(grantDrain()).To(Succeed())
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: drainUser}
	c, err := drain.NewClient(config)
	f.t.Expect(err).NotTo(HaveOccurred())
	options.Cloud, options.Interval = f.object.Name, 100*time.Millisecond
	if options.Timeout == 0 {
		options.Timeout = timeout
	}
	return func() (string, error) {
		var out strings.Builder
		err := drain.Run(f.t.Context(), c, options, &out)
		return out.String(), err
	}
}

// drainedGroup creates a group of two members on the cloud of the fixture and waits for them.
func (f *fixture) drainedGroup() *pcapi.VmGroup {
	f.t.Helper()
	g := testkit.VmGroup(f.namespace, "web", func(g *pcapi.VmGroup) {
		g.Spec.Replicas = new(int32(2))
		g.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name}
	})
	f.t.Expect(env.Client.Create(f.t.Context(), g)).To(Succeed())
	f.t.Eventually(latest(g)).Should(testkit.BeReady())
	return g
}

// releaseMembers does what Kubernetes' garbage collector, which does not run here, does
// for a group that is deleted with orphan propagation.
func (f *fixture) releaseMembers(g *pcapi.VmGroup) {
	f.t.Helper()
	f.t.Eventually(latest(g)).Should(HaveField("Finalizers", Equal([]string{metav1.FinalizerOrphanDependents})))
	var list pcapi.VMList
	f.t.Expect(env.Client.List(f.t.Context(), &list, client.InNamespace(f.namespace))).To(Succeed())
	for i := range list.Items {
		if !metav1.IsControlledBy(&list.Items[i], g) {
			continue
		}
		edit(f.t, &list.Items[i], func(vm *pcapi.VM) { vm.OwnerReferences = nil })
	}
	edit(f.t, g, func(g *pcapi.VmGroup) { g.Finalizers = nil })
}

func TestDrain(t *testing.T) { drainCases.run(t) }

var drainCases = cases{
	"without --yes: says what it would delete and changes nothing": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("one")
		out, err := f.drain(drain.Options{Policy: drain.PolicyDelete})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(out).To(And(ContainSubstring("delete: 1 vms in namespace "+f.namespace), ContainSubstring("delete: 1 clouds"), ContainSubstring("--yes")))
		t.Expect(get(t, vm).DeletionTimestamp).To(BeNil())
		t.Expect(get(t, f.object).DeletionTimestamp).To(BeNil())
	},

	"without --yes, orphan: a network that the operator created is to be kept": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.readyVM("one")
		f.readyNetwork("net")
		out, err := f.drain(drain.Options{Policy: drain.PolicyOrphan})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(out).To(And(ContainSubstring("orphan: 1 vms in namespace "+f.namespace), ContainSubstring("keep: 1 networks in namespace "+f.namespace), Not(ContainSubstring("orphan: 1 networks"))))
	},

	"delete: objects of all kinds and their servers are removed, and a second run finds nothing": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vm, other := f.drainedGroup(), f.readyVM("one"), newFixture(t, mockcloud.Options{})
		kept := other.readyVM("kept")
		net := testkit.Network(f.namespace, "net", func(n *pcapi.Network) { n.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name} })
		t.Expect(env.Client.Create(t.Context(), net)).To(Succeed())
		t.Eventually(latest(net)).Should(testkit.BeReady())

		out, err := f.drain(drain.Options{Policy: drain.PolicyDelete, Yes: true})
		t.Expect(err).NotTo(HaveOccurred(), out)
		t.Expect(f.Servers()).To(BeEmpty())
		for _, gone := range []func(context.Context) (bool, error){isGone(g), isGone(vm), isGone(net), isGone(f.object)} {
			t.Expect(gone(t.Context())).To(BeTrue())
		}
		out, err = f.drain(drain.Options{Policy: drain.PolicyDelete, Yes: true})
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(out).To(And(HavePrefix("Cloud "+strconv.Quote(f.object.Name)+" does not exist"), HaveSuffix("Nothing is left.\n")))
		t.Expect(get(t, kept).DeletionTimestamp).To(BeNil(), "another Cloud is not drained")
	},

	"orphan: the objects are removed and all servers stay": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vm := f.drainedGroup(), f.readyVM("one")
		type result struct {
			out string
			err error
		}
		drained := make(chan result, 1)
		drain := f.drainer(drain.Options{Policy: drain.PolicyOrphan, Yes: true})
		go func() {
			out, err := drain()
			drained <- result{out, err}
		}()
		f.releaseMembers(g)
		got := <-drained
		t.Expect(got.err).NotTo(HaveOccurred(), got.out)
		t.Expect(isGone(vm)(t.Context())).To(BeTrue())
		t.Expect(isGone(f.object)(t.Context())).To(BeTrue())
		t.Expect(f.Servers()).To(HaveLen(3))
	},

	"the cloud is down and a VM is paused: names both and fails; a second run finishes": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.readyVM("one")
		paused := f.readyVM("two")
		annotate(t, paused, pcapi.PausedAnnotation, "true")
		f.Disconnect()
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))
		out, err := f.drain(drain.Options{Policy: drain.PolicyDelete, Yes: true, Timeout: 20 * time.Second})
		t.Expect(err).To(MatchError(ContainSubstring("not complete")))
		t.Expect(out).To(And(
			ContainSubstring("vms "+f.namespace+"/one since"),
			MatchRegexp(`vms \S+/two since \S+: paused`),
			// The reason depends on whether the Cloud was reconciled since it is deleted.
			MatchRegexp(`clouds `+f.object.Name+` since \S+: .*(Unreachable|InUse)`),
		))
		f.reconnect()
		touch(t, f.object)
		annotate(t, paused, pcapi.PausedAnnotation, "")
		out, err = f.drain(drain.Options{Policy: drain.PolicyDelete, Yes: true})
		t.Expect(err).NotTo(HaveOccurred(), out)
		t.Expect(f.Servers()).To(BeEmpty())
	},
}
