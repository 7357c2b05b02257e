package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// tenantWrites is how long the tenant writes; TENANT=10m sets another time.
	tenantWrites = 20 * time.Second
	// measuredVMs is how many VMs of another namespace are created at least, before and meanwhile.
	measuredVMs = 5
	// maxTenantMemory is what the manager may take beside such a tenant and the pages of its binary, in bytes.
	maxTenantMemory = 230 << 20
	// maxAnnotations is how much the API server accepts in the annotations of an object, in bytes, but for some that
	// the tenant writes in addition.
	maxAnnotations = 240 << 10
)

// tenantObjects are what a tenant writes to fill the memory of the operator: all metadata that the API server accepts, of each kind. They
// exist for a moment, so that no ResourceQuota bounds how many there are.
var tenantObjects = map[string]func(w *world, name string) client.Object{
	"VM with a claim": func(w *world, name string) client.Object {
		return testkit.VM(w.name, name, func(vm *pcapi.VM) {
			vm.Finalizers = []string{pcapi.VMFinalizer}
			vm.Annotations = map[string]string{pcapi.ClaimedCloudAnnotation: filler(name, maxAnnotations/2), pcapi.ClaimedNameAnnotation: filler(name, maxAnnotations/2)}
		})
	},
	"VM with owners and labels": func(w *world, name string) client.Object {
		return testkit.VM(w.name, name, func(vm *pcapi.VM) {
			controls := true
			vm.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: pcapi.GroupVersion.String(), Kind: "VmGroup", Name: filler(name, maxAnnotations), UID: types.UID(filler(name, maxAnnotations)), Controller: &controls,
			}}
			vm.Labels = map[string]string{}
			for i := range 500 {
				vm.Labels[fmt.Sprintf("example.com/%d-%s", i, name)] = filler(name, 63)
			}
		})
	},
	"VM that is observed and restarts in years": func(w *world, name string) client.Object {
		return testkit.VM(w.name, name, func(vm *pcapi.VM) {
			vm.Spec.CloudRef = &pcapi.CloudReference{Name: w.name}
			vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly
			vm.Spec.Import = &pcapi.VMImport{VMID: name}
			restart := metav1.NewTime(time.Now().AddDate(5, 0, 0).Truncate(time.Second))
			vm.Spec.NextRestartTime = &restart
		})
	},
	"VM on a Cloud that does not exist": func(w *world, name string) client.Object {
		return testkit.VM(w.name, name, func(vm *pcapi.VM) {
			vm.Spec.CloudRef = &pcapi.CloudReference{Name: name}
			vm.Annotations = map[string]string{pcapi.ApprovedPlanAnnotation: filler(name, maxAnnotations)}
		})
	},
	"VM with annotations of the group": func(w *world, name string) client.Object {
		return testkit.VM(w.name, name, func(vm *pcapi.VM) {
			vm.Annotations = map[string]string{pcapi.GroupVersion.Group + "/" + name: filler(name, maxAnnotations)}
		})
	},
	"Network": func(w *world, name string) client.Object {
		return testkit.Network(w.name, name, func(n *pcapi.Network) {
			n.Spec.CloudRef = &pcapi.CloudReference{Name: name}
			n.Annotations = map[string]string{"example.com/x": filler(name, maxAnnotations)}
		})
	},
	"VmGroup": func(w *world, name string) client.Object {
		return testkit.VmGroup(w.name, name, func(g *pcapi.VmGroup) {
			none := int32(0)
			g.Spec.Replicas = &none
			g.Annotations = map[string]string{pcapi.DeletionProtectionAnnotation: filler(name, maxAnnotations)}
		})
	},
	"VMSnapshot": func(w *world, name string) client.Object {
		return &pcapi.VMSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name, Annotations: map[string]string{"example.com/x": filler(name, maxAnnotations)}},
			Spec:       pcapi.VMSnapshotSpec{VMName: name},
		}
	},
	"VMConsoleRequest": func(w *world, name string) client.Object {
		return &pcapi.VMConsoleRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name, Annotations: map[string]string{"example.com/x": filler(name, maxAnnotations)}},
			Spec:       pcapi.VMConsoleRequestSpec{VMName: name, PublicKey: strings.Repeat("A", 87) + "="},
		}
	},
	"GPUInfo": func(w *world, name string) client.Object {
		return &pcapi.GPUInfo{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name, Annotations: map[string]string{"example.com/x": filler(name, maxAnnotations)}},
			Spec:       pcapi.GPUInfoSpec{DesAccTime: 1, CloudRef: &pcapi.CloudReference{Name: name}},
		}
	},
}

// filler returns a text of a length that no other name has.
func filler(name string, length int) string {
	return strings.Repeat(name+"-", length/len(name)+1)[:length-1] + "z"
}

// TestHostileTenantTakesBoundedMemory runs a manager with the memory of its Deployment while a tenant creates, writes and deletes
// objects as fast as the API server accepts them.
func TestHostileTenantTakesBoundedMemory(tt *testing.T) {
	t := newT(tt)
	duration := tenantWrites
	if text := os.Getenv("TENANT"); text != "" {
		var err error
		duration, err = time.ParseDuration(text)
		t.Expect(err).NotTo(HaveOccurred())
	}
	w := openWorldIn(t, ownEnvironment(tt), setting{profile: extended, maxData: maxData})
	m, err := w.start()
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(w.perform(t.Context(), create("before"))).To(Succeed())
	namespace := testkit.Namespace("other-", nil)
	t.Expect(w.env.client.Create(t.Context(), namespace)).To(Succeed())
	before, err := w.measureVMs(t.Context(), namespace.Name, func(n int) bool { return n < measuredVMs })
	t.Expect(err).NotTo(HaveOccurred())
	atRest, idle, began := peakMemory(t, m), cpuTime(t, m), time.Now()

	until, stop := context.WithTimeout(t.Context(), duration)
	defer stop()
	written := make(chan int, len(tenantObjects))
	failed := make(chan error, cap(written))
	var tenants sync.WaitGroup
	for i, kind := range slices.Sorted(maps.Keys(tenantObjects)) {
		tenants.Go(func() {
			n := 0
			for ; until.Err() == nil; n++ {
				if err := w.writeAsTenant(t.Context(), tenantObjects[kind], fmt.Sprintf("tenant-%d-%d", i, n), n); err != nil {
					failed <- fmt.Errorf("%s: %w", kind, err)
					return
				}
			}
			written <- n
		})
	}
	t.Expect(w.perform(t.Context(), create("meanwhile"))).To(Succeed(), "a VM of another user of the namespace")
	meanwhile, err := w.measureVMs(t.Context(), namespace.Name, func(n int) bool { return n < measuredVMs || until.Err() == nil })
	t.Expect(err).NotTo(HaveOccurred(), "VMs of another namespace")
	tenants.Wait()
	close(written)
	close(failed)
	for err := range failed {
		t.Expect(err).NotTo(HaveOccurred())
	}
	objects := 0
	for n := range written {
		objects += n
	}
	t.Expect(m.Ended()).To(BeFalse(), "the manager runs")
	peak := peakMemory(t, m)
	t.Logf("the manager took %d MiB, and %d MiB before, while %d objects were written; it used %s of processor time in %s",
		peak>>20, atRest>>20, objects, cpuTime(t, m)-idle, time.Since(began).Round(time.Millisecond))
	t.Logf("VMs of another namespace were Ready after %s, and after %s before", meanwhile, before)
	t.Expect(objects).To(BeNumerically(">", len(tenantObjects)), "objects of the tenant")
	t.Expect(peak).To(BeNumerically("<", maxTenantMemory), "the peak of the manager's memory")
}

// delays are how long VMs of a namespace took to become Ready, and how long the API server took to store one of them.
type delays struct{ ready, stored []time.Duration }

// String returns the medians, and the longest time.
func (d delays) String() string {
	median := func(of []time.Duration) time.Duration {
		return slices.Sorted(slices.Values(of))[len(of)/2].Round(time.Millisecond)
	}
	return fmt.Sprintf("%s (at most %s, stored after %s, %d VMs)", median(d.ready), slices.Max(d.ready).Round(time.Millisecond), median(d.stored), len(d.ready))
}

// measureVMs creates and deletes VMs in a namespace, one after the other, as long as another returns true for the
// number of those before.
func (w *world) measureVMs(ctx context.Context, namespace string, another func(n int) bool) (delays, error) {
	var took delays
	for n := 0; another(n); n++ {
		vm := testkit.VM(namespace, fmt.Sprintf("vm-%d", n), func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: w.name} })
		began := time.Now()
		if err := w.env.client.Create(ctx, vm); err != nil {
			return took, fmt.Errorf("create %s: %w", vm.Name, err)
		}
		took.stored = append(took.stored, time.Since(began))
		err := w.until(ctx, func() error {
			if err := w.env.client.Get(ctx, client.ObjectKeyFromObject(vm), vm); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition) {
				return fmt.Errorf("%s is not Ready", vm.Name)
			}
			return nil
		})
		if err != nil {
			return took, err
		}
		took.ready = append(took.ready, time.Since(began))
		if err := w.env.client.Delete(ctx, vm); err != nil {
			return took, fmt.Errorf("delete %s: %w", vm.Name, err)
		}
	}
	return took, nil
}

// writeAsTenant creates an object, writes it several times, and deletes it, in spite of the finalizers that it has.
func (w *world) writeAsTenant(ctx context.Context, object func(*world, string) client.Object, name string, n int) error {
	o := object(w, name)
	if err := w.env.client.Create(ctx, o); err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	patches := []string{
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"yes-%d"}}}`, pcapi.DeletionProtectionAnnotation, n),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"on-%d"}}}`, pcapi.DeletionProtectionAnnotation, n),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, pcapi.ReconcileRequestedAtAnnotation, n),
		fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"},"finalizers":null}}`, pcapi.DeletionProtectionAnnotation),
	}
	var errs []error
	for _, patch := range patches {
		errs = append(errs, client.IgnoreNotFound(w.env.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))))
	}
	errs = append(errs, client.IgnoreNotFound(w.env.client.Delete(ctx, o)))
	for range 3 { // the operator may put its finalizer back
		err := w.env.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if apierrors.IsNotFound(err) {
			break
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
