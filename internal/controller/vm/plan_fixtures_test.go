package vm

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// fraction is what a status, which has whole seconds, lacks of startTime.
const fraction = 600 * time.Millisecond

var startTime = time.Date(2026, 3, 1, 6, 0, 0, int(fraction), time.UTC)

// everything is the capabilities of a cloud with the extended profile.
var everything = cloud.NewCapabilities(cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.BulkStatus,
	cloud.Power, cloud.Resize, cloud.Folders, cloud.Sizing, cloud.ExclusiveNames, cloud.PowerAtCreate, cloud.WithUserData, cloud.WithDisks)

func without(missing ...cloud.Capability) cloud.Capabilities {
	return slices.DeleteFunc(slices.Clone(everything), func(c cloud.Capability) bool { return slices.Contains(missing, c) })
}

var (
	withoutKeys     = without(cloud.Idempotency)
	withoutProofs   = without(cloud.Idempotency, cloud.Labels, cloud.UniqueNames)
	uniqueNamesOnly = without(cloud.Idempotency, cloud.Labels)

	// capabilitySets are those that plans depend on. They are made once, since tests visit many thousands of situations.
	capabilitySets = []cloud.Capabilities{
		everything, withoutKeys, uniqueNamesOnly, withoutProofs, without(cloud.Labels), without(cloud.Labels, cloud.UniqueNames),
		without(cloud.Idempotency, cloud.UniqueNames), without(cloud.Resize, cloud.Power, cloud.Sizing), withSuspend,
	}
)

var (
	errProhibited = &cloud.Error{Kind: cloud.Prohibited, Code: "nameProhibited", Op: `check name "web"`, Detail: "not allowed"}
	errTaken      = &cloud.Error{Kind: cloud.Taken, Op: `check name "web"`, Detail: "already used"}
)

// vmWith returns the VM named web with 2 cores in its spec, with changes.
func vmWith(change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a", Generation: 1, CreationTimestamp: metav1.NewTime(startTime)},
		Spec: pcapi.VMSpec{
			VMName: "web", CloudRef: &pcapi.CloudReference{Name: "default"}, CPU: pcapi.Cores(2), PowerState: pcapi.PowerOn,
			DeletionPolicy: pcapi.DeletionPolicyDelete, ManagementPolicy: pcapi.ManagementPolicyManaged,
		},
	}
	for _, f := range change {
		f(vm)
	}
	return vm
}

func recorded(vm *pcapi.VM) {
	vm.Status.VMID, vm.Status.Cloud, vm.Status.NameInCloud = "s1", "default", "web"
}

// nameChecked sets the condition that the name was checked in an earlier reconcile.
func nameChecked(vm *pcapi.VM) {
	vm.Status.Conditions = []metav1.Condition{{Type: pcapi.NameCheckedCondition, Status: metav1.ConditionTrue, Reason: pcapi.AvailableReason}}
}

func importing(vm *pcapi.VM) {
	vm.Spec.Import = &pcapi.VMImport{VMID: "s1"}
}
func observing(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly }
func protected(vm *pcapi.VM) {
	vm.Annotations = map[string]string{pcapi.DeletionProtectionAnnotation: "true", pcapi.ClaimedNameAnnotation: "web"}
}
func orphaning(vm *pcapi.VM)  { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }
func poweredOff(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff }
func deleted(vm *pcapi.VM) {
	now := metav1.NewTime(startTime)
	vm.DeletionTimestamp = &now
}

// ownLabels are the owner labels of the VM that vmWith returns.
var ownLabels = pureKind.servers.ownerLabels(vmWith())

// pureKind and pure plan and report without a cluster or a cloud.
var (
	pureKind = newKind(nil, controller.Options{Cluster: "cluster", Clock: func() time.Time { return startTime }}, nil)
	pure     = pureKind.lifecycle
)

// serverWith returns the server s1 as the spec of vmWith says, with its owner labels, with changes.
func serverWith(change ...func(*cloud.Server)) cloud.Server {
	s := cloud.Server{ID: "s1", Name: "web", State: cloud.StateActive, CPU: 2, CreatedAt: startTime, Labels: ownLabels}
	for _, f := range change {
		f(&s)
	}
	return s
}

func withMemory(gib int) func(*cloud.Server) {
	return func(s *cloud.Server) { s.MemoryMiB = gib << 10 }
}
func withID(id string) func(*cloud.Server)          { return func(s *cloud.Server) { s.ID = id } }
func withName(name string) func(*cloud.Server)      { return func(s *cloud.Server) { s.Name = name } }
func inState(state cloud.State) func(*cloud.Server) { return func(s *cloud.Server) { s.State = state } }
func withCores(n int) func(*cloud.Server)           { return func(s *cloud.Server) { s.CPU = n } }
func unlabelled(s *cloud.Server)                    { s.Labels = nil }

// obsWith returns an observation of an available cloud, with changes.
func obsWith(caps cloud.Capabilities, change ...func(*observation)) *observation {
	obs := &observation{}
	obs.Now, obs.Cloud, obs.How, obs.View = startTime, "default", pcapi.CreatedReason, inventory.View{Capabilities: caps}
	for _, f := range change {
		f(obs)
	}
	return obs
}

// later advances the time of an observation.
func later(by time.Duration) func(*observation) {
	return func(obs *observation) { obs.Now = obs.Now.Add(by) }
}

// withServer sets the VM's server in an observation.
func withServer(s cloud.Server) func(*observation) {
	return func(obs *observation) {
		known := s.Clone()
		obs.Resource, obs.Owned, obs.Claimed = &known, true, "web"
	}
}

// withCandidates sets the servers that a search found, and what they prove.
func withCandidates(worth external.Proof, servers ...cloud.Server) func(*observation) {
	return func(obs *observation) {
		obs.Claimed, obs.ClaimProved, obs.Looked, obs.Proof, obs.Candidates = "web", true, true, worth, servers
	}
}

func unavailable(obs *observation)        { obs.View.Unavailable = "connection refused" }
func claimed(obs *observation)            { obs.Claimed = "web" }
func isNew(obs *observation)              { obs.New = true }
func unclaimed(obs *observation)          { obs.Claimed = "" }
func notOwned(obs *observation)           { obs.Owned = false }
func withRival(obs *observation)          { obs.rival = errRival }
func gone(obs *observation)               { obs.Gone = true }
func awaitingSettleTime(obs *observation) { obs.SettleTimeLeft = time.Minute }
func claimedOtherName(obs *observation)   { obs.Claimed = "former" }
func claimedFormerName(vm *pcapi.VM) {
	vm.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: "former"}
}
func denied(obs *observation) {
	obs.Denied = reconciler.Blocked("Cloud/default", pcapi.CloudUnavailableReason, "Cloud %q does not exist", "default")
}
