package alerts_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	tenant = "team"
	// manyVMs is how many VMs wait on the slow Cloud, for a multiple of the windows.
	manyVMs = 20
	// manyGPUInfos is how many GPUInfos fail, so that the rate stays high while each of
	// them is retried less and less often.
	manyGPUInfos = 30
	// manyDenied is how many VMs of one namespace refer to a Cloud that does not exist, and
	// how many to one that the namespace may not use: enough for VMsNotReady.
	manyDenied = 6
)

// faults are Clouds, each with one fault, but for the Cloud home, whose VMs have faults.
type faults struct {
	*testkit.T

	env    *testkit.Env
	clouds map[string]*testkit.CloudServer
	// restore undoes what is not undone with the faults of clouds.
	restore []func()
}

func newFaults(t *testkit.T) *faults {
	t.Helper()
	env, err := testkit.Start(testkit.Options{})
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { t.Expect(env.Stop()).To(Succeed()) })
	f := &faults{T: t, env: env, clouds: map[string]*testkit.CloudServer{}}
	for _, name := range []string{"home", "down", "flaky", "throttled", "braked", "slow", "closed", "capped"} {
		f.clouds[name], err = testkit.ServeCloud(mockcloud.Options{})
		t.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { t.Expect(f.clouds[name].Close()).To(Succeed()) })
	}
	return f
}

// expected returns for each alert labels with which it fires.
func (f *faults) expected() map[string]map[string]string {
	on := func(cloud string) map[string]string { return map[string]string{"cloud": cloud} }
	return map[string]map[string]string{
		"CloudNotReady": on("down"), "InventoryStale": on("down"), "CloudCallsFail": on("flaky"), "CloudThrottles": on("throttled"),
		"CloudBraked": on("braked"), "ListingIncomplete": on("capped"), "OrphanedServers": on("home"),
		"VMsWaitForWorkers": on("slow"), "VMsNotReady": on("slow"), "TimeToReadyHigh": {"cloud": "slow", "kind": "VM"},
		"VMsLost":         {"cloud": "home", "namespace": tenant},
		"ObjectsStalled":  {"cloud": "home", "namespace": tenant, "kind": "VM", "reason": "Prohibited"},
		"DeletionHangs":   {"cloud": "home", "namespace": tenant, "kind": "VM"},
		"ReconcileErrors": {"controller": "gpuinfo"},
		"CacheFails":      {"kind": "VMSnapshot"},
	}
}

// unexpected reports whether an alert has a Cloud with which it must not fire: of VMs that
// may not use their Cloud, and of a brake, which has its own alert.
func unexpected(a alert) bool {
	switch cloud := a.Labels["cloud"]; a.Labels["alertname"] {
	case "VMsNotReady":
		return cloud != "slow"
	case "CloudNotReady":
		return cloud == "braked"
	default:
		return cloud == "closed"
	}
}

// prepare creates Clouds and VMs, and waits until they are ready.
func (f *faults) prepare() {
	f.Helper()
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}})
	for name, server := range f.clouds {
		f.create(testkit.Cloud(name, server.URL, func(c *pcapi.Cloud) {
			if name == "closed" {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"closed": "allowed"}}
			}
		}))
	}
	group := testkit.VmGroup(tenant, "group", func(group *pcapi.VmGroup) { group.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} })
	f.create(group)
	for _, name := range []string{"lost", "stuck", "a", "b"} {
		f.create(on("home", name))
	}
	for i := range 4 {
		f.create(on("braked", fmt.Sprintf("vanished-%d", i)))
	}
	for _, name := range []string{"unlisted-0", "unlisted-1"} {
		f.create(on("capped", name))
	}
	for name := range f.clouds {
		f.ready(&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, name := range []string{"lost", "stuck", "a", "b", "vanished-0", "vanished-1", "vanished-2", "vanished-3", "unlisted-0", "unlisted-1"} {
		f.ready(testkit.VM(tenant, name))
	}
	f.ready(group)
}

// begin switches all faults on.
func (f *faults) begin() {
	f.Helper()
	calls := func(method, path string) mockcloud.Match { return mockcloud.Match{Method: method, Path: path} }
	f.clouds["down"].SetUnavailable(true)
	// Hosts are listed as often as servers, and the Cloud stays ready, so that calls to it do not pause.
	f.fault("flaky", mockcloud.Fault{Match: calls("GET", "/hosts"), Status: 500})
	// The Cloud is listed again after ten seconds, so that it does not always wait.
	f.fault("throttled", mockcloud.Fault{Match: calls("GET", "/servers"), Status: 429, RetryAfter: "9"})
	f.fault("capped", mockcloud.Fault{Match: calls("GET", "/servers"), List: &mockcloud.ListFault{Empty: true}})
	f.fault("slow", mockcloud.Fault{Match: calls("POST", "/servers"), Delay: mockcloud.Duration(2 * time.Second)})
	f.fault("home", mockcloud.Fault{Match: calls("DELETE", "/servers/*"), Status: 500})
	f.removeGPUInfoRights()
	f.storeUndecodable()
	for i := range manyVMs {
		f.create(on("slow", fmt.Sprintf("slow-%d", i)))
	}
	for i := range manyGPUInfos {
		f.create(&pcapi.GPUInfo{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: fmt.Sprintf("gpu-%d", i)},
			Spec:       pcapi.GPUInfoSpec{DesAccTime: 1, CloudRef: &pcapi.CloudReference{Name: "home"}},
		})
	}
	f.create(&pcapi.GPUInfo{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "flaky"},
		Spec:       pcapi.GPUInfoSpec{DesAccTime: 1, CloudRef: &pcapi.CloudReference{Name: "flaky"}},
	})
	for _, vm := range denied() {
		f.create(vm)
	}
	f.create(on("home", "forbidden"))
	f.Expect(f.env.Client.Delete(f.Context(), testkit.VM(tenant, "stuck"))).To(Succeed())
	f.deleteServer("home", "lost")
	for i := range 4 {
		f.deleteServer("braked", fmt.Sprintf("vanished-%d", i))
	}
	f.putOrphan()
}

// end switches all faults off.
func (f *faults) end() {
	f.Helper()
	f.clouds["down"].SetUnavailable(false)
	for _, server := range f.clouds {
		server.ClearFaults()
	}
	for _, undo := range f.restore {
		undo()
	}
	f.acknowledgeBrake()
	f.annotate(testkit.VM(tenant, "stuck"), pcapi.ReconcileRequestedAtAnnotation, "now")
	for _, name := range []string{"forbidden", "lost", "vanished-0", "vanished-1", "vanished-2", "vanished-3"} {
		f.Expect(f.env.Client.Delete(f.Context(), testkit.VM(tenant, name))).To(Succeed())
	}
	for _, vm := range denied() {
		f.Expect(f.env.Client.Delete(f.Context(), vm)).To(Succeed())
	}
}

// denied returns VMs that may not use their Cloud, or whose Cloud does not exist.
func denied() (vms []*pcapi.VM) {
	for i := range manyDenied {
		vms = append(vms, on("missing", fmt.Sprintf("missing-%d", i)), on("closed", fmt.Sprintf("closed-%d", i)))
	}
	return vms
}

// removeGPUInfoRights lets writes of the status of GPUInfos fail.
func (f *faults) removeGPUInfoRights() {
	f.Helper()
	var roles rbacv1.ClusterRoleList
	f.Expect(f.env.Client.List(f.Context(), &roles)).To(Succeed())
	const resource, without = "gpuinfos/status", "gpuinfos/none"
	replaced := 0
	for _, role := range roles.Items {
		for i, rule := range role.Rules {
			for j := range rule.Resources {
				if rule.Resources[j] != resource || role.Name != "manager-role" {
					continue
				}
				replaced++
				set := func(to string) {
					patch := fmt.Appendf(nil, `[{"op":"replace","path":"/rules/%d/resources/%d","value":%q}]`, i, j, to)
					f.Expect(f.env.Client.Patch(f.Context(), &role, client.RawPatch(types.JSONPatchType, patch))).To(Succeed())
				}
				set(without)
				f.restore = append(f.restore, func() { set(resource) })
			}
		}
	}
	f.Expect(replaced).To(Equal(1))
}

// storeUndecodable stores a VMSnapshot with a time that the operator cannot decode, as a CRD
// without the pattern accepts it.
func (f *faults) storeUndecodable() {
	f.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	crd.SetName("vmsnapshots.samplecontroller.k8s.io")
	const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/maxAge/x-kubernetes-validations"
	f.Expect(f.env.Client.Patch(f.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"`+path+`"}]`)))).To(Succeed())
	snapshot := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"vmName": "a", "maxAge": "7d"}}}
	snapshot.SetGroupVersionKind(pcapi.GroupVersion.WithKind("VMSnapshot"))
	snapshot.SetNamespace(tenant)
	snapshot.SetName("undecodable")
	f.Eventually(func() error { return f.env.Client.Create(f.Context(), snapshot.DeepCopy()) }).Should(Succeed(), "the API server has the changed CRD")
	f.restore = append(f.restore, func() { f.Expect(f.env.Client.Delete(f.Context(), snapshot)).To(Succeed()) })
}

// putOrphan puts a server with the labels of a VM that does not exist.
func (f *faults) putOrphan() {
	f.Helper()
	var system corev1.Namespace
	f.Expect(f.env.Client.Get(f.Context(), client.ObjectKey{Name: "kube-system"}, &system)).To(Succeed())
	put, err := f.clouds["home"].PutServer(mockcloud.Server{Name: "orphan", Labels: map[string]string{
		inventory.ClusterLabel: string(system.UID), inventory.UIDLabel: "gone", inventory.NamespaceLabel: tenant, inventory.NameLabel: "gone",
	}})
	f.Expect(err).NotTo(HaveOccurred())
	f.restore = append(f.restore, func() { f.Expect(f.clouds["home"].DeleteServer(put.ID)).To(Succeed()) })
}

func (f *faults) deleteServer(cloud, name string) {
	f.Helper()
	vm := testkit.VM(tenant, name)
	f.Expect(f.env.Client.Get(f.Context(), client.ObjectKeyFromObject(vm), vm)).To(Succeed())
	f.Expect(f.clouds[cloud].DeleteServer(vm.Status.VMID)).To(Succeed())
}

func (f *faults) acknowledgeBrake() {
	f.Helper()
	braked := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "braked"}}
	f.Expect(f.env.Client.Get(f.Context(), client.ObjectKeyFromObject(braked), braked)).To(Succeed())
	f.Expect(braked.Status.BrakedSnapshot).NotTo(BeEmpty())
	f.annotate(braked, pcapi.AcknowledgeAnnotation, braked.Status.BrakedSnapshot)
}

func (f *faults) annotate(o client.Object, annotation, value string) {
	f.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, value)
	f.Expect(client.IgnoreNotFound(f.env.Client.Patch(f.Context(), o, client.RawPatch(types.MergePatchType, patch)))).To(Succeed())
}

func (f *faults) fault(cloud string, fault mockcloud.Fault) {
	f.Helper()
	_, err := f.clouds[cloud].AddFault(fault)
	f.Expect(err).NotTo(HaveOccurred())
}

// create creates an object. It may exist: the operator's namespace does.
func (f *faults) create(o client.Object) {
	f.Helper()
	if err := f.env.Client.Create(f.Context(), o); !apierrors.IsAlreadyExists(err) {
		f.Expect(err).NotTo(HaveOccurred())
	}
}

func (f *faults) ready(o client.Object) {
	f.Helper()
	f.Eventually(func(ctx context.Context) (client.Object, error) {
		return o, f.env.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
	}).Should(testkit.BeReady())
}

// on returns a VM of a Cloud.
func on(cloud, name string) *pcapi.VM {
	return testkit.VM(tenant, name, func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: cloud} })
}
