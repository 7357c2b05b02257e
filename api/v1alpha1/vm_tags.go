package v1alpha1

// TagValue is the value of a tag: at most 255 characters that can be shown, which control
// characters and noncharacters of Unicode cannot.
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f\x{FFFE}\x{FFFF}]*$`
type TagValue string
