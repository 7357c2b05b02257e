package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApprovalPolicy is whether changes in the cloud wait until somebody approves them.
// +kubebuilder:validation:Enum=NotRequired;Required
type ApprovalPolicy string

const (
	ApprovalNotRequired ApprovalPolicy = "NotRequired"
	ApprovalRequired    ApprovalPolicy = "Required"
)

// PlanPhase is how far a plan is.
// +kubebuilder:validation:Enum=Pending;Approved;Applied;Obsolete
type PlanPhase string

const (
	// PlanPending: the plan waits for its approval.
	PlanPending PlanPhase = "Pending"
	// PlanApproved: the operator makes the changes.
	PlanApproved PlanPhase = "Approved"
	// PlanApplied: the changes are made, and the approval is used up.
	PlanApplied PlanPhase = "Applied"
	// PlanObsolete: there is nothing to approve any more, such as after an edit.
	PlanObsolete PlanPhase = "Obsolete"
)

// PlanStatus is the last plan of an object whose spec requires an approval.
type PlanStatus struct {
	// number counts the plans of the object, from 1. It is part of the hash, so that an
	// approval holds for one plan only.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int64 `json:"number"`

	// hash identifies the plan: the annotation samplecontroller.k8s.io/approved-plan with
	// this value approves it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Hash string `json:"hash"`

	// phase is how far the plan is: Pending, Approved, Applied or Obsolete.
	// +required
	Phase PlanPhase `json:"phase"`

	// generation is that of the spec that the plan is for.
	// +required
	Generation int64 `json:"generation"`

	// cloud is the name of the Cloud on which the changes are made. Absent if it is not known.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Cloud string `json:"cloud,omitempty"`

	// approvedBy is who approved the plan, as the approval names its user, at most 320 characters.
	// For a member of a VmGroup whose plan was approved, "VmGroup/" and the name of the group, and
	// in parentheses who approved that plan. Absent if nobody did, or if the approval names nobody.
	// +kubebuilder:validation:MaxLength=320
	// +optional
	ApprovedBy string `json:"approvedBy,omitempty"`

	// approvedTime is when the operator found the plan approved. Absent if it is not.
	// +optional
	ApprovedTime *metav1.Time `json:"approvedTime,omitempty"`

	// changes are those in the cloud, in their order, at most 64. In the plan of a VmGroup,
	// those that are made are removed.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Changes []PlannedChange `json:"changes,omitempty"`
}

// PlannedAction is what a planned change does in the cloud.
// +kubebuilder:validation:Enum=Create;Delete;Import;Release;Update;PowerOn;PowerOff;Suspend;Resume;Restart;Revert
type PlannedAction string

const (
	// PlannedCreate creates the resource, and PlannedDelete deletes it.
	PlannedCreate PlannedAction = "Create"
	PlannedDelete PlannedAction = "Delete"
	// PlannedImport sets the owner labels of a resource that exists, and PlannedRelease
	// removes them.
	PlannedImport  PlannedAction = "Import"
	PlannedRelease PlannedAction = "Release"
	// PlannedUpdate changes what the details say.
	PlannedUpdate PlannedAction = "Update"
	// PlannedPowerOn and the next three change the power state of a server. PlannedRestart
	// stops it, after which it is started.
	PlannedPowerOn  PlannedAction = "PowerOn"
	PlannedPowerOff PlannedAction = "PowerOff"
	PlannedSuspend  PlannedAction = "Suspend"
	PlannedResume   PlannedAction = "Resume"
	PlannedRestart  PlannedAction = "Restart"
	// PlannedRevert reverts a server to a snapshot.
	PlannedRevert PlannedAction = "Revert"
)

// PlannedChange is one change in the cloud that the operator is going to make.
type PlannedChange struct {
	// action is what is done.
	// +required
	Action PlannedAction `json:"action"`

	// name is that of the resource in the cloud, or of the object if that gives the name.
	// Absent in the plan of a VmGroup.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`

	// id is the cloud's id of the resource. Absent if it does not exist yet, and in the plan
	// of a VmGroup.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ID string `json:"id,omitempty"`

	// count is how many members of a VmGroup are changed so. Absent for 1.
	// +kubebuilder:validation:Minimum=2
	// +optional
	Count int32 `json:"count,omitempty"`

	// members are the names of the VMs of a VmGroup that exist and are changed so, sorted; one that is
	// changed so several times is listed several times. A plan names 10000 at most: it counts those
	// beyond. Absent for members that are created, and in the plan of a VM.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Members []string `json:"members,omitempty"`

	// details are what the resource gets, such as "cpu 2 to 4", at most 64.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +optional
	Details []string `json:"details,omitempty"`

	// ifStopNeeded is what happens if the cloud makes this change of a server that runs only
	// while it is stopped: Restart to stop and start it, or Wait until somebody stops it.
	// Absent for any other change.
	// +optional
	IfStopNeeded StopNeeded `json:"ifStopNeeded,omitempty"`
}

// StopNeeded is what happens if a change needs a stopped server.
// +kubebuilder:validation:Enum=Restart;Wait
type StopNeeded string

const (
	StopNeededRestart StopNeeded = "Restart"
	StopNeededWait    StopNeeded = "Wait"
)

// Approval returns whether changes of the VM wait for an approval, and its last plan.
func (v *VM) Approval() (ApprovalPolicy, *PlanStatus) { return v.Spec.Approval, v.Status.Plan }

// SetPlan replaces the last plan of the VM.
func (v *VM) SetPlan(plan *PlanStatus) { v.Status.Plan = plan }

// Approval returns whether changes of the group wait for an approval, and its last plan.
func (g *VmGroup) Approval() (ApprovalPolicy, *PlanStatus) { return g.Spec.Approval, g.Status.Plan }

// SetPlan replaces the last plan of the group.
func (g *VmGroup) SetPlan(plan *PlanStatus) { g.Status.Plan = plan }
