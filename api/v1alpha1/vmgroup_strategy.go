package v1alpha1

import "k8s.io/apimachinery/pkg/util/intstr"

// StrategyType is how the operator replaces members of an older revision.
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type StrategyType string

const (
	StrategyRollingUpdate StrategyType = "RollingUpdate"
	StrategyOnDelete      StrategyType = "OnDelete"
)

// ScaleDownPolicy is which members are deleted first when a group scales down.
// +kubebuilder:validation:Enum=Newest;Oldest;LeastUtilised;Random
type ScaleDownPolicy string

const (
	ScaleDownNewest        ScaleDownPolicy = "Newest"
	ScaleDownOldest        ScaleDownPolicy = "Oldest"
	ScaleDownLeastUtilised ScaleDownPolicy = "LeastUtilised"
	ScaleDownRandom        ScaleDownPolicy = "Random"
)

// VmGroupStrategy is how the operator replaces members of an older revision.
// +kubebuilder:validation:XValidation:rule="self.type != 'RollingUpdate' || !(string(self.maxUnavailable) in ['0', '0%']) || !(string(self.maxSurge) in ['0', '0%'])",reason=FieldValueInvalid,fieldPath=".maxUnavailable",message="maxUnavailable and maxSurge must not both be 0: no member could ever be replaced"
type VmGroupStrategy struct {
	// type of the strategy: RollingUpdate replaces or resizes a few members at a
	// time, OnDelete replaces a member after somebody deleted it. Defaults to
	// RollingUpdate.
	// +kubebuilder:default=RollingUpdate
	// +optional
	Type StrategyType `json:"type,omitempty"`

	// maxUnavailable is how many members may be missing or not Ready during a
	// rolling update: a number, 0-10000, or a percentage of replicas, 0%-100%,
	// rounded down. Must not be 0 if maxSurge is 0. Defaults to 25%.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxUnavailable must be a number, 0-10000, or a percentage, 0%-100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many members beyond replicas may exist during a rolling
	// update: a number, 0-10000, or a percentage of replicas, 0%-100%, rounded up.
	// Must not be 0 if maxUnavailable is 0. Defaults to 25%.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')",message="maxSurge must be a number, 0-10000, or a percentage, 0%-100%"
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// VmGroupScaleDown is which members the operator deletes when there are too many.
type VmGroupScaleDown struct {
	// policy is which members are deleted first: Newest, Oldest, LeastUtilised (by
	// cpuUtilization) or Random. Members with the annotation
	// samplecontroller.k8s.io/delete-first precede all others, then those that are
	// not Ready. Defaults to Newest.
	// +kubebuilder:default=Newest
	// +optional
	Policy ScaleDownPolicy `json:"policy,omitempty"`
}
