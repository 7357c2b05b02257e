package vm

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/tenancy"
)

// inOneBucket returns n ids of servers of the Cloud default that share a bucket of serverIndex.
func inOneBucket(n int) []string {
	ids := map[string][]string{}
	for i := 0; ; i++ {
		id := fmt.Sprintf("s-%d", i)
		in := bucket(key("default", id))
		if ids[in] = append(ids[in], id); len(ids[in]) == n {
			return ids[in]
		}
	}
}

func TestLookupsInAnIndexReturnNoOtherVMOfTheBucket(t *testing.T) {
	ids := inOneBucket(3) // the server of the last one belongs to no VM
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	for _, id := range ids[:2] {
		vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "of-" + id, UID: types.UID("uid-" + id)}}
		vm.Spec.VMName, vm.Status.VMID, vm.Status.Cloud = "web-"+id, id, "default"
		objects = append(objects, vm)
	}
	h := newHarness(t, cloud.Capabilities{}, objects...)
	find := tenancy.NewFinder(h.client, &pcapi.VMList{})
	obs := &observation{}
	obs.Cloud = "default"
	for i, id := range ids {
		var requests []reconcile.Request
		var names []string
		if i < 2 {
			requests = []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "of-" + id}}}
			names = []string{"of-" + id}
		}
		equal(t, "requests for the VMs of server "+id, requests, onServer(t.Context(), find, "default", id))
		others, err := h.kind.observer.others(t.Context(), &pcapi.VM{}, obs, serverIndex, id, func(*pcapi.VM) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, vm := range others {
			got = append(got, vm.Name)
		}
		equal(t, "other VMs with server "+id, names, got)
	}
}
