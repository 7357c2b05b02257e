package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// second returns a time that is a number of seconds after the begin of a minute.
func second(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }

func TestPopulationIsLikeItsSample(t *testing.T) {
	p := &population{
		sample: pcapi.VM{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			pcapi.ClaimedNameAnnotation: "sample", pcapi.ClaimedCloudAnnotation: "default",
		}}, Spec: pcapi.VMSpec{VMName: "sample"}, Status: pcapi.VMStatus{
			VMID: "id1", Host: "a", NameInCloud: "sample", Network: &pcapi.VMNetworkStatus{PrimaryIP4: "10.0.0.1"}, State: pcapi.VMStateRunning, ObservedGeneration: 2,
			Conditions: []metav1.Condition{{Type: pcapi.NameCheckedCondition, Message: `VM id1 has the name "sample"`, ObservedGeneration: 2}},
		}},
		server: mockcloud.Server{Labels: map[string]string{inventory.UIDLabel: "u1", inventory.ClusterLabel: "c", inventory.NameLabel: "sample"}},
	}
	vm := newVM("vm", 7, pcapi.DefaultCloudName)
	vm.UID, vm.Generation = "u2", 1

	wantStatus := pcapi.VMStatus{
		VMID: "id2", Host: "b", NameInCloud: vm.Name, State: pcapi.VMStateRunning, ObservedGeneration: 1,
		Network: &pcapi.VMNetworkStatus{
			PrimaryIP4: "10.0.0.2",
			Interfaces: []pcapi.VMInterfaceStatus{{MACAddress: "fa:16:3e:00:00:02", Addresses: []string{"10.0.0.2"}}},
		},
		Conditions: []metav1.Condition{{Type: pcapi.NameCheckedCondition, Message: `VM id2 has the name "vm-00007"`, ObservedGeneration: 1}},
	}
	server := mockcloud.Server{
		ID: "id2", Host: "b", Name: vm.Name,
		Interfaces: []mockcloud.Interface{{MACAddress: "fa:16:3e:00:00:02", Addresses: []string{"10.0.0.2"}}},
	}
	if diff := cmp.Diff(wantStatus, p.status(vm, server)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	wantLabels := map[string]string{
		inventory.UIDLabel: "u2", inventory.ClusterLabel: "c", inventory.NamespaceLabel: namespace, inventory.NameLabel: vm.Name,
	}
	if diff := cmp.Diff(wantLabels, p.labels(vm)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantAnnotations := map[string]string{pcapi.ClaimedNameAnnotation: vm.Name, pcapi.ClaimedCloudAnnotation: "default"}
	if diff := cmp.Diff(wantAnnotations, p.annotations(vm)); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if p.sample.Status.Conditions[0].ObservedGeneration != 2 {
		t.Error("the sample was changed")
	}
}

func TestCreatedAtReturnsTheFirstServerOfAName(t *testing.T) {
	ledger := []mockcloud.LedgerEntry{
		{Op: mockcloud.OpUpdate, Name: "a", Time: second(1)}, {Op: mockcloud.OpCreate, Name: "b", Time: second(2)},
		{Op: mockcloud.OpCreate, Name: "a", Time: second(3)}, {Op: mockcloud.OpCreate, Name: "a", Time: second(4)},
	}
	if at, found := createdAt(ledger, "a"); !found || !at.Equal(second(3)) {
		t.Errorf("a: %s, %t; want %s", at, found, second(3))
	}
	if at, found := createdAt(ledger, "c"); found {
		t.Errorf("c, which was not created: %s", at)
	}
}
