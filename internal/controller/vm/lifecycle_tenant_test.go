package vm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// wantNoWords fails if a condition of the VM holds one of these words.
func (h *harness) wantNoWords(words ...string) {
	h.t.Helper()
	for _, c := range h.vm().Status.Conditions {
		for _, word := range words {
			if strings.Contains(c.Message, word) {
				h.t.Errorf("%s has the message %q", c.Type, c.Message)
			}
		}
	}
}

func TestRememberedRefusalNamesNoOtherTenant(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.cloud.FailAlways(cloudfake.CheckName, &cloud.Error{Kind: cloud.Taken, Op: "check name", Detail: "taken by team-b/web at https://cloud.internal"}, false)
	for range 3 {
		h.mustReconcile()
		h.wantNoWords("team-b", "cloud.internal")
		h.advance(time.Second)
	}
}

func TestServerOfAnotherOwnerShowsNothingInTheStatus(t *testing.T) {
	busy := 77
	theirs := func(s *cloud.Server) {
		s.Name, s.Host, s.CPUUtilization, s.Interfaces = "team-b-db", "host-of-team-b", &busy, ",10.0.0.5"
		s.Labels = map[string]string{"samplecontroller.k8s.io/uid": "uid-b", "samplecontroller.k8s.io/cluster": "cluster"}
	}
	h := harnessWithServer(t, everything, onRecord(), serverWith(theirs))
	for range 2 {
		h.mustReconcile()
		h.later(time.Minute)
	}
	h.wantNoWords("team-b")
	if vm := h.vm(); vm.Status.Host == "host-of-team-b" || vm.Status.CPUUtilization != nil || vm.Status.Network != nil {
		t.Errorf("the status shows host %q, utilization %v and network %v of a server that another object owns", vm.Status.Host, vm.Status.CPUUtilization, vm.Status.Network)
	}
}

func TestVMThatMayNotImportDoesNotBlockTheOneThatMay(t *testing.T) {
	rival := other("b", createdAfter(-time.Hour), importing, func(vm *pcapi.VM) { vm.Namespace, vm.Status = "beside", pcapi.VMStatus{} })
	for name, caps := range map[string]cloud.Capabilities{"labels": everything, "names": uniqueNamesOnly} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(importing), rival.DeepCopy())
			h.editCloud(func(c *pcapi.Cloud) {
				c.Spec = pcapi.CloudSpec{Imports: pcapi.ImportPolicyListed, Importable: []pcapi.ImportableVM{{VMID: "s1", Namespace: "ns"}}}
			})
			h.cloud.AddServers(serverWith())
			for range 2 {
				h.later(time.Second)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestImportOfNobodyDoesNotBlockAdoption(t *testing.T) {
	rival := other("b", importing, func(vm *pcapi.VM) { vm.Namespace, vm.Status = "beside", pcapi.VMStatus{} })
	h := harnessWithLostAnswer(t, uniqueNamesOnly, true)
	if err := h.client.Create(t.Context(), rival); err != nil {
		t.Fatal(err)
	}
	h.editCloud(func(c *pcapi.Cloud) { c.Spec = pcapi.CloudSpec{Imports: pcapi.ImportPolicyNone} })
	for range 10 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestFailedLookForTheOwnerOfAnImportNamesNoOtherTenant(t *testing.T) {
	h := newHarness(t, everything, vmWith(importing))
	h.cloud.AddServers(serverWith(func(s *cloud.Server) {
		s.Labels = map[string]string{
			"samplecontroller.k8s.io/uid": "uid-b", "samplecontroller.k8s.io/cluster": "cluster",
			"samplecontroller.k8s.io/namespace": "team-b", "samplecontroller.k8s.io/name": "db",
		}
	}))
	h.kind.Live = interceptor.NewClient(h.client.(client.WithWatch), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return errors.New(`Get "https://10.96.0.1:443/apis/samplecontroller.k8s.io/v1alpha1/namespaces/` + key.Namespace + `/vms/db": timeout`)
		},
	})
	h.later(time.Second)
	_, _ = h.reconcile()
	h.wantNoWords("team-b", "10.96.0.1")
}
