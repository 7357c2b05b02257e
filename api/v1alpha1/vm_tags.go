package v1alpha1

// TagValue is the value of a tag: at most 255 characters, none of them a control character.
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]*$`
type TagValue string
