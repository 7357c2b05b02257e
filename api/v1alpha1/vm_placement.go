package v1alpha1

// AntiAffinityPolicy is what happens to a VM that cannot run on another host than the VMs of
// its anti-affinity group.
// +kubebuilder:validation:Enum=Required;Preferred
type AntiAffinityPolicy string

const (
	AntiAffinityRequired  AntiAffinityPolicy = "Required"
	AntiAffinityPreferred AntiAffinityPolicy = "Preferred"
)

// VMAntiAffinity keeps VMs of one namespace and Cloud on different hosts.
type VMAntiAffinity struct {
	// group is the name of the VMs that are kept on different hosts: all VMs of the namespace
	// with this group and policy on the same Cloud. Required, 1-63 characters: lower-case
	// letters, digits, '.' and '-', of which the last two are not at the ends.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +required
	Group string `json:"group"`

	// policy is Required to create the VM only on a host without another VM of the group, or
	// Preferred to create it on such a host if there is one. Defaults to Required.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Anti-affinity Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Required","urn:alm:descriptor:com.tectonic.ui:select:Preferred"}
	// +kubebuilder:default=Required
	// +optional
	Policy AntiAffinityPolicy `json:"policy,omitempty"`
}

// VmGroupAntiAffinity keeps the members of a VmGroup on different hosts. Their anti-affinity
// group has the name of the VmGroup.
type VmGroupAntiAffinity struct {
	// policy is Required to create a member only on a host without another one, or Preferred
	// to create it on such a host if there is one. Defaults to Required.
	// +kubebuilder:default=Required
	// +optional
	Policy AntiAffinityPolicy `json:"policy,omitempty"`
}
