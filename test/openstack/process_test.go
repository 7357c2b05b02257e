package openstack_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// cluster is a Kubernetes cluster with a Cloud and managers that are processes.
type cluster struct {
	t   *testkit.T
	env *testkit.Env
	// id is what the operator marks the servers of this cluster with.
	id       string
	binary   string
	log      *testkit.Buffer
	managers []*testkit.Process
}

// newCluster starts an API server with a Cloud of a project.
func newCluster(t *testkit.T, binary, endpoint string, p project) *cluster {
	t.Helper()
	env, err := testkit.Start(testkit.Options{})
	t.Expect(err).NotTo(HaveOccurred())
	c := &cluster{t: t, env: env, binary: binary, log: &testkit.Buffer{}}
	t.Cleanup(func() {
		for len(c.managers) > 0 {
			c.kill()
		}
		if t.Failed() {
			t.Logf("the managers of cluster %s:\n%s", c.id, c.log)
		}
		t.Expect(env.Stop()).To(Succeed())
	})
	system := &corev1.Namespace{}
	t.Expect(env.Client.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, system)).To(Succeed())
	c.id = string(system.UID)
	for _, name := range []string{namespace, specs.OperatorNamespace} {
		t.Expect(env.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	}
	t.Expect(env.Client.Create(t.Context(), secretFor(cloudName, map[string]string{"username": user, "password": password}))).To(Succeed())
	t.Expect(env.Client.Create(t.Context(), openStackCloud(cloudName, p, func(c *pcapi.Cloud) { c.Spec.Endpoint = endpoint }))).To(Succeed())
	return c
}

// start starts a manager beside those that run, with these flags.
func (c *cluster) start(flags ...string) {
	c.t.Helper()
	flags = append(flags, "--namespace="+specs.OperatorNamespace, "--health-probe-bind-address=0")
	m, err := testkit.StartProcess(c.binary, c.env.Kubeconfig(), c.log, 0, flags...)
	c.t.Expect(err).NotTo(HaveOccurred())
	c.managers = append(c.managers, m)
}

// kill kills the manager that was started first.
func (c *cluster) kill() {
	c.t.Helper()
	first := c.managers[0]
	c.managers = c.managers[1:]
	c.t.Expect(first.Kill()).To(Succeed())
}

// killRepeatedly kills the manager and starts another one, a number of times.
func (c *cluster) killRepeatedly(times int) {
	c.t.Helper()
	ticks := time.NewTicker(killInterval)
	defer ticks.Stop()
	for range times {
		select {
		case <-ticks.C:
		case <-c.t.Context().Done():
			c.t.Fatal("the test ended")
		}
		c.kill()
		c.start()
	}
}

func (c *cluster) vms() ([]pcapi.VM, error) {
	var list pcapi.VMList
	err := c.env.Client.List(c.t.Context(), &list, client.InNamespace(namespace))
	return list.Items, err
}

func (c *cluster) vm(name string) *pcapi.VM {
	c.t.Helper()
	vm := &pcapi.VM{}
	c.t.Expect(c.env.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, vm)).To(Succeed())
	return vm
}

// patch changes a VM as a user does.
func (c *cluster) patch(name, patch string) {
	c.t.Helper()
	c.t.Expect(c.env.Client.Patch(c.t.Context(), c.vm(name), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

func (c *cluster) snapshots() ([]pcapi.VMSnapshot, error) {
	var list pcapi.VMSnapshotList
	err := c.env.Client.List(c.t.Context(), &list, client.InNamespace(namespace))
	return list.Items, err
}

// snapshotsReady returns how many VMSnapshots are ready.
func (c *cluster) snapshotsReady() (count int, err error) {
	all, err := c.snapshots()
	for i := range all {
		if ready, _ := testkit.BeReady().Match(&all[i]); ready {
			count++
		}
	}
	return count, err
}

// notReady returns the names of the VMs that are not ready, with the reason.
func (c *cluster) notReady() ([]string, error) {
	vms, err := c.vms()
	var names []string
	for i := range vms {
		if ready, _ := testkit.BeReady().Match(&vms[i]); !ready {
			names = append(names, vms[i].Name+" "+strings.TrimSpace(conditionsOf(&vms[i])))
		}
	}
	return names, err
}

func conditionsOf(vm *pcapi.VM) string {
	var text strings.Builder
	for _, condition := range vm.Status.Conditions {
		if condition.Status == metav1.ConditionFalse {
			text.WriteString(condition.Type + " " + condition.Reason + " ")
		}
	}
	return text.String()
}

func newT(t *testing.T) *testkit.T {
	t.Helper()
	return testkit.NewT(t, 10*time.Minute, pollTime)
}
