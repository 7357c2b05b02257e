package cloud

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestNamesOfWhatKeepsADeletedCloud(t *testing.T) {
	keys := func(namespaces, each int) (keys []types.NamespacedName) {
		for n := range namespaces {
			for v := range each {
				keys = append(keys, types.NamespacedName{Namespace: fmt.Sprintf("ns-%d", namespaces-n), Name: fmt.Sprintf("web-%d", each-v)})
			}
		}
		return keys
	}
	for name, tc := range map[string]struct {
		keys []types.NamespacedName
		want string
	}{
		"none": {nil, "VMs: 0"},
		"one":  {keys(1, 1), "VMs: 1 (ns-1 1: web-1)"},
		"as many as are named, in any order: sorted":   {keys(2, 3), "VMs: 6 (ns-1 3: web-1, web-2, web-3; ns-2 3: web-1, web-2, web-3)"},
		"more names than are named: the first of them": {keys(1, 4), "VMs: 4 (ns-1 4: web-1, web-2, web-3, …)"},
		"more namespaces than are named: the first of them, and how many there are": {
			keys(7, 1), "VMs: 7 (ns-1 1: web-1; ns-2 1: web-1; ns-3 1: web-1; ns-4 1: web-1; ns-5 1: web-1; 2 more namespaces)",
		},
	} {
		t.Run(name, func(t *testing.T) { equal(t, "text", tc.want, named("VMs", tc.keys)) })
	}
}

func TestDeletedCloudIsWrittenOnceARecheckWhileItsUsersGo(t *testing.T) {
	users := []client.Object{&pcapi.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "net"}, Spec: pcapi.NetworkSpec{CloudRef: &pcapi.CloudReference{Name: "home"}},
	}}
	for n := range 5 {
		users = append(users, vm(fmt.Sprintf("v0%d", n)))
	}
	w := newWorld(t, home(claimed, deleted), newCloud(nil), users...)
	remove := func(o client.Object) {
		t.Helper()
		if err := w.client.Delete(t.Context(), o); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	w.reconcile()
	w.wantCondition(pcapi.InUseCondition, "True InUse", "VMs: 5 (ns 5: v00, v01, v02, …); Networks: 1 (ns 1: net)")
	w.reconcile()
	w.writes = nil
	for _, gone := range users[1:4] {
		remove(gone)
		w.reconcile()
	}
	equal(t, "writes while VMs go", []string(nil), w.writes)

	w.advance(recheck)
	w.reconcile()
	w.wantCondition(pcapi.InUseCondition, "True InUse", "VMs: 2 (ns 2: v03, v04); Networks: 1 (ns 1: net)")
	w.wantCondition(pcapi.ReadyCondition, "False InUse", "refer to this Cloud: 3")
	equal(t, "writes after the time of a recheck", 1, len(w.writes))

	for _, gone := range []client.Object{users[0], users[4], users[5]} {
		remove(gone)
	}
	w.reconcile()
	if _, there := w.find(); there {
		t.Error("the Cloud is still there after its last user")
	}
}
