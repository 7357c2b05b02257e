package objectmetrics

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// owner is to whom an object belongs.
type owner struct {
	// cloud is the Cloud that the object is recorded on or refers to; empty if the labels
	// of its namespace decide.
	kind, namespace, cloud string
}

// labels are those by which objects are counted.
type labels struct {
	owner

	state, condition, reason string
	// guest is the reason why the guest of a VM is not ready; empty if it is, or has no probe.
	guest string
}

// state is what the metrics need of an object.
type state struct {
	labels

	uid     types.UID
	created time.Time
	// deleted is when the deletion was requested; zero if it was not.
	deleted time.Time
	ready   bool
	// readySince is when Ready became what it is.
	readySince time.Time
	// fresh is whether the object shows that it has never been Ready.
	fresh bool
}

// unknown is the condition of an object that was not reconciled yet.
const unknown = "Unknown"

// conditioned is an object of this project.
type conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
}

// stateOf returns the state of an object.
func stateOf(o conditioned) state {
	s := state{uid: o.GetUID(), created: o.GetCreationTimestamp().Time}
	if requested := o.GetDeletionTimestamp(); requested != nil {
		s.deleted = requested.Time
	}
	conditions := o.GetConditions()
	ready := meta.FindStatusCondition(conditions, pcapi.ReadyCondition)
	s.fresh = ready == nil
	s.condition, s.reason = summaryOf(conditions, ready)
	if ready != nil {
		s.ready, s.readySince = ready.Status == metav1.ConditionTrue, ready.LastTransitionTime.Time
	}
	s.namespace = o.GetNamespace()
	switch o := o.(type) {
	case *pcapi.VM:
		s.kind, s.state, s.cloud = "VM", cmp.Or(string(o.Status.State), unknown), cmp.Or(o.Status.Cloud, nameOf(o.Spec.CloudRef))
		s.fresh = o.Status.VMID == ""
		if guest := meta.FindStatusCondition(conditions, pcapi.GuestReadyCondition); guest != nil && guest.Status != metav1.ConditionTrue {
			s.guest = guest.Reason
		}
	case *pcapi.VmGroup:
		s.kind, s.state, s.cloud = "VmGroup", cmp.Or(string(o.Status.Phase), unknown), nameOf(o.Spec.CloudRef)
	case *pcapi.Network:
		s.kind, s.cloud = "Network", cmp.Or(o.Status.Cloud, nameOf(o.Spec.CloudRef))
		s.fresh = o.Status.NetworkID == ""
	case *pcapi.VMSnapshot:
		s.kind, s.cloud = "VMSnapshot", o.Status.Cloud
		s.fresh = o.Status.SnapshotID == ""
	case *pcapi.GPUInfo:
		s.kind, s.cloud = "GPUInfo", nameOf(o.Spec.CloudRef)
	case *pcapi.Cloud:
		s.kind, s.cloud = "Cloud", o.Name
	}
	return s
}

// summaryOf returns the summary condition that holds, and its reason.
func summaryOf(conditions []metav1.Condition, ready *metav1.Condition) (condition, reason string) {
	if ready == nil {
		return unknown, ""
	}
	if meta.IsStatusConditionTrue(conditions, pcapi.StalledCondition) {
		return pcapi.StalledCondition, ready.Reason
	}
	if reconciling := meta.FindStatusCondition(conditions, pcapi.ReconcilingCondition); reconciling != nil && reconciling.Status == metav1.ConditionTrue {
		if reconciling.Reason == pcapi.PausedReason {
			return pcapi.ReconcilingCondition, pcapi.PausedReason
		}
		return pcapi.ReconcilingCondition, ready.Reason
	}
	if ready.Status == metav1.ConditionTrue {
		return pcapi.ReadyCondition, ready.Reason
	}
	return unknown, ready.Reason
}

func nameOf(ref *pcapi.CloudReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
