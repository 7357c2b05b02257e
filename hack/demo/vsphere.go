package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	vsphereName = "vsphere"
	// vsphereFolder is the VM folder that belongs to the operator.
	vsphereFolder = "vm-operator"
	// vsphereTemplate is the template of VMs that name none.
	vsphereTemplate = "vm-operator-template"
	// lostVM is the sample whose VM is deleted in the vCenter.
	lostVM = "web"
)

// vsphere is a simulated vCenter.
type vsphere struct{}

func (vsphere) title() string   { return "simulated vCenter" }
func (vsphere) program() string { return "vcsim" }
func (vsphere) samples() string { return "hack/demo/vsphere" }
func (vsphere) refused() string { return "hack/demo/vsphere/taken" }
func (vsphere) guide() string   { return vsphereGuide }

func (vsphere) args() []string {
	return []string{
		"--listen=127.0.0.1:0", "--admin=127.0.0.1:0", "--clone-task=3s", "--folder=" + vsphereFolder,
		"--template=" + vsphereTemplate, "--template=debian-13",
		"--vm=worker-1=DC0_C0_H0", "--vm=worker-2=DC0_C0_H1", "--gpu-host=DC0_C0_H0",
	}
}

func (vsphere) expected() expectations {
	all := maps.Clone(expected)
	for _, name := range []string{"VM/networked", "VM/router", "VM/bastion", "VM/archive", "Network/example-network", "Network/backend"} {
		delete(all, name)
	}
	all["VM/taboo"] = expectation{
		conditions: map[string]string{
			"Ready": "False/Taken", "NameChecked": "False/Taken", "Created": "False/Pending", "Stalled": "True/Taken",
		},
		status: map[string]string{"vmId": absent, "cpuUtilization": absent, "state": "Failed"},
	}
	all["VM/replica"] = expectation{
		conditions: running, status: map[string]string{"vmId": anyUUID, "cpuUtilization": anyPercent, "state": "Running", "zone": "zone-a"},
	}
	// The simulator runs no guests.
	all["VM/frontend"] = expectation{conditions: map[string]string{"Ready": "True/Running", "GuestReady": "False/NoAddress"}}
	// The id of a snapshot is a managed object id there.
	all["VMSnapshot/before-upgrade"] = expectation{
		conditions: expected["VMSnapshot/before-upgrade"].conditions, status: map[string]string{"vmId": anyUUID, "cloud": "default"},
	}
	placed := map[string]string{"Ready": "True/Placed", "Placed": "True/Placed"}
	// A vCenter sets no end to the hours of a host.
	all["GPUInfo/gpuinfo-sample"] = expectation{conditions: placed, status: map[string]string{
		"suitableNodeName": "worker-1", "suitableHostName": "DC0_C0_H0", "availableAcceleratorTime": "87600",
	}}
	all["GPUInfo/plain"] = expectation{conditions: placed, status: map[string]string{
		"suitableNodeName": "worker-2", "suitableHostName": "DC0_C0_H1", "availableAcceleratorTime": "87600",
	}}
	return all
}

// addServers does nothing: the vCenter starts with the VMs of the Nodes.
func (vsphere) addServers(context.Context, *stack) error { return nil }

func (vsphere) managerArgs(*stack) []string { return nil }

// connect creates the Cloud of the vCenter, and its Secret.
func (vsphere) connect(ctx context.Context, s *stack) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: operatorNamespace, Name: "vcenter", Labels: map[string]string{pcapi.CredentialsForLabel: pcapi.DefaultCloudName},
		},
		StringData: map[string]string{"username": "operator@vsphere.local", "password": "secret"},
	}
	if err := s.api.Client.Create(ctx, secret); err != nil {
		return fmt.Errorf("creating the Secret of the vCenter: %w", err)
	}
	home := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: pcapi.DefaultCloudName}, Spec: pcapi.CloudSpec{
		Type: pcapi.CloudTypeVSphere, Endpoint: s.cloudURL, CredentialsSecretRef: &pcapi.SecretReference{Name: secret.Name}, InsecureAllowHTTP: true,
		VSphere: &pcapi.VSphereCloud{
			Datacenter: "DC0", Folder: vsphereFolder, ResourcePool: "/DC0/host/DC0_C0/Resources", Datastore: "LocalDS_0",
			Zones:     []pcapi.VSphereZone{{Name: "zone-a", ResourcePool: "/DC0/host/DC0_C0/Resources"}},
			Templates: pcapi.VSphereTemplates{Folder: "/DC0/vm", Default: vsphereTemplate},
		},
	}}
	if err := s.api.Client.Create(ctx, home); err != nil {
		return fmt.Errorf("creating the Cloud of the vCenter: %w", err)
	}
	s.say("created Secret/vcenter and Cloud/%s of type VSphere: folder %s of datacenter DC0", pcapi.DefaultCloudName, vsphereFolder)
	return nil
}

// showRefusal applies a VM whose name another VM of the folder has. It is stored with a
// warning of the webhook, and created once the name is free.
func (vsphere) showRefusal(ctx context.Context, s *stack) error {
	var warning string
	err := poll(ctx, func(ctx context.Context) bool {
		_, output, err := s.kubectlOutputs(ctx, "apply", "-f", s.on.refused(), "--dry-run=server")
		warning = strings.TrimSpace(string(output))
		return err == nil && strings.Contains(warning, "is taken")
	})
	if err != nil {
		return fmt.Errorf("waiting for a warning about the name in %s: %w\n%s", s.on.refused(), err, warning)
	}
	if err := s.runKubectl(ctx, "apply", "-f", s.on.refused()); err != nil {
		return err
	}
	s.say("  %s", warning)
	return nil
}

// changeByHand deletes a VM in the vCenter: its object becomes Lost.
func (vsphere) changeByHand(ctx context.Context, s *stack) (int, error) {
	if err := s.callAdmin(ctx, http.MethodDelete, "/vms/"+lostVM, nil, nil); err != nil {
		return 0, err
	}
	s.say("deleted the VM %s in the vCenter, without the operator", lostVM)
	begun := time.Now()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(pcapi.GroupVersion.WithKind("VM"))
	object.SetNamespace(metav1.NamespaceDefault)
	object.SetName(lostVM)
	lost := expectations{"VM/" + lostVM: {conditions: map[string]string{"Ready": "False/Lost", "Stalled": "True/Lost"}, status: map[string]string{"state": "Lost"}}}
	if err := s.awaitThat(ctx, shortWait, lost, object); err != nil {
		return 0, err
	}
	s.say("  the status of VM/%s shows it after %.1f s", lostVM, time.Since(begun).Seconds())
	return 1, s.print(ctx, "get vm "+lostVM, "events --for vm/"+lostVM)
}

// check compares the calls and the inventory of the vCenter with the expected numbers.
func (vsphere) check(ctx context.Context, s *stack, created, left counts) error {
	var calls map[string]int
	if err := s.callAdmin(ctx, http.MethodGet, "/calls", nil, &calls); err != nil {
		return err
	}
	var vms []vcenterVM
	if err := s.callAdmin(ctx, http.MethodGet, "/vms", nil, &vms); err != nil {
		return err
	}
	var folders []string
	if err := s.callAdmin(ctx, http.MethodGet, "/folders", nil, &folders); err != nil {
		return err
	}
	if wrong := wrongInVCenter(calls["CloneVM_Task"], vms, folders, created.servers, left.servers); len(wrong) > 0 {
		return fmt.Errorf("the vCenter is not as expected:\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

// vcenterVM is a VM of the vCenter that is no template.
type vcenterVM struct {
	Name, Folder, ID string
	// Owned is whether an operator created it.
	Owned bool
}

// wrongInVCenter returns the differences between the vCenter and the expected numbers of
// created and remaining VMs, sorted, and nil if there are none.
func wrongInVCenter(clones int, vms []vcenterVM, folders []string, created, left int) []string {
	var wrong, owned []string
	ids := map[string]int{}
	used := map[string]bool{}
	for _, vm := range vms {
		used[vm.Folder] = true
		ids[vm.ID]++
		if ids[vm.ID] == 2 {
			wrong = append(wrong, "VMs have the instance UUID "+vm.ID)
		}
		if vm.Owned {
			owned = append(owned, vm.Folder+"/"+vm.Name)
		}
	}
	if clones != created {
		wrong = append(wrong, fmt.Sprintf("%d clones were requested, expected %d", clones, created))
	}
	if len(owned) != left {
		wrong = append(wrong, fmt.Sprintf("%d VMs exist, expected %d: %v", len(owned), left, owned))
	}
	for _, folder := range folders {
		if (strings.HasPrefix(folder, metav1.NamespaceDefault+"-") || slices.Contains(sampleFolders, folder)) && !used[folder] {
			wrong = append(wrong, fmt.Sprintf("the folder %s is empty, and was not removed", folder))
		}
	}
	slices.Sort(wrong)
	return wrong
}

// sampleFolders are the folders that samples name. Those of groups begin with the name
// of the namespace.
var sampleFolders = []string{"databases"}

const vsphereGuide = `
In a second terminal:

  export KUBECONFIG=%[1]s ADMIN=%[2]s%[3]s

  kubectl get clouds,vms,vg,gpu
  kubectl wait --for=condition=Ready vm/sample
  kubectl events
  # how the Cloud describes its part of the vCenter
  kubectl get cloud default -o jsonpath={.spec.vsphere}
  # five VMs instead of three; each is a clone of the template, in a folder of the group
  kubectl scale --replicas=5 vmgroup vmgroup-sample
  kubectl get vms -l samplecontroller.k8s.io/group=vmgroup-sample
  curl $ADMIN/vms
  # there is no such template: the VMs list those that exist; correct it
  kubectl get vms -l samplecontroller.k8s.io/group=vg-2 -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Ready")].message}{"\n"}{end}'
  kubectl patch vg vg-2 --type merge -p '{"spec":{"template":"vm-operator-template"}}'
  # another VM of the folder has this name: choose another
  kubectl patch vm taboo --type=merge -p '{"spec":{"vmname":"allowed"}}'
  # resize a VM; power on another
  kubectl patch vm web --type=merge -p '{"spec":{"cpu":4,"memory":8}}'
  kubectl patch vm standby --type=merge -p '{"spec":{"powerState":"On"}}'
  # stop a VM in the vCenter: the operator starts it again
  curl -X POST $ADMIN/vms/database/power-off
  # delete a VM in the vCenter: its object becomes Lost
  curl -X DELETE $ADMIN/vms/web
  # this returns once the VM is deleted in the vCenter
  kubectl delete vm sample
  # the calls that the operator sent
  curl $ADMIN/calls

Ctrl-C ends the demo.

`
