package v1alpha1

// TagValue is the value of a tag: at most 255 characters that can be shown, which control
// characters and noncharacters of Unicode cannot.
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f\x{FFFE}\x{FFFF}]*$`
type TagValue string

// VMTags are labels of a server in the cloud that users choose, by their keys.
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 63 && k.matches('^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$'))",message="a key of tags is 1-63 letters a-z and A-Z, digits, '.', '_' and '-', the last three not at its ends"
// +kubebuilder:validation:XValidation:rule="self.map(k, size(k)).sum() <= 240",message="the keys of tags have more than 240 characters together: use shorter or fewer keys"
// +kubebuilder:validation:XValidation:rule="self.map(k, size(k) + size(self[k])).sum() <= 1024",message="tags have more than 1024 characters in all keys and values together: use shorter or fewer tags"
// +kubebuilder:validation:XValidation:rule="self.all(k, self.exists_one(o, o.lowerAscii() == k.lowerAscii()))",message="two keys of tags differ only in upper and lower case, which some clouds do not keep apart: remove or rename one"
type VMTags map[string]TagValue
