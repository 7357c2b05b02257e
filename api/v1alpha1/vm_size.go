package v1alpha1

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// VMCores is a number of cores: an integer, or the same as a text such as "4", 1-1024.
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1024 : self.matches('^[1-9][0-9]{0,3}$') && int(self) <= 1024",reason=FieldValueInvalid,message="cpu is a whole number of cores, 1-1024"
type VMCores intstr.IntOrString

// Cores returns n cores.
func Cores(n int32) *VMCores { return new(VMCores(intstr.FromInt32(n))) }

// Count returns the number of cores, 0 if c is nil or no number.
func (c *VMCores) Count() int {
	switch {
	case c == nil:
		return 0
	case c.Type == intstr.Int:
		return int(c.IntVal)
	}
	n, _ := strconv.Atoi(c.StrVal)
	return n
}

// Canonical returns the same number as an integer, nil for none.
func (c *VMCores) Canonical() *VMCores {
	if c.Count() == 0 {
		return nil
	}
	return Cores(int32(c.Count())) //nolint:gosec // 1-1024
}

// MarshalJSON returns an integer or a string.
func (c VMCores) MarshalJSON() ([]byte, error) { return intstr.IntOrString(c).MarshalJSON() }

// UnmarshalJSON reads an integer or a string. It returns an error for anything else.
func (c *VMCores) UnmarshalJSON(value []byte) error {
	return (*intstr.IntOrString)(c).UnmarshalJSON(value)
}

// VMFlavor is the name of a flavor of the cloud. It has 1-255 characters, which can be printed.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]*$')",reason=FieldValueInvalid,message="flavor is the name that the flavor has in the cloud, of printable characters, among which the only space is U+0020"
type VMFlavor string

// VMMemory is an amount of memory: an integer, which is in GiB, or a quantity in whole Mi, Gi
// or Ti such as 512Mi. 1-65536 or 1Mi-64Ti.
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 65536 : self.matches('^[1-9][0-9]*[MGT]i$') && !quantity('64Ti').isLessThan(quantity(self))",reason=FieldValueInvalid,message="memory is a whole number of GiB, 1-65536, or a quantity in whole Mi, Gi or Ti up to 64Ti, such as 512Mi"
type VMMemory intstr.IntOrString

// GiB returns n GiB of memory.
func GiB(n int32) *VMMemory { return new(VMMemory(intstr.FromInt32(n))) }

const mibPerGiB = 1 << 10

// MiB returns the amount in MiB, 0 if m is nil or no quantity.
func (m *VMMemory) MiB() int {
	switch {
	case m == nil:
		return 0
	case m.Type == intstr.Int:
		return int(m.IntVal) * mibPerGiB
	}
	quantity, err := resource.ParseQuantity(m.StrVal)
	if err != nil {
		return 0
	}
	return int(quantity.Value() >> 20)
}

// Canonical returns the same amount in GiB if that is a whole number, else in Mi, nil for none.
func (m *VMMemory) Canonical() *VMMemory {
	switch mib := m.MiB(); {
	case mib == 0:
		return nil
	case mib%mibPerGiB != 0:
		return new(VMMemory(intstr.FromString(strconv.Itoa(mib) + "Mi")))
	default:
		return GiB(int32(mib / mibPerGiB)) //nolint:gosec // at most 65536
	}
}

// MarshalJSON returns an integer or a string.
func (m VMMemory) MarshalJSON() ([]byte, error) { return intstr.IntOrString(m).MarshalJSON() }

// UnmarshalJSON reads an integer or a string. It returns an error for anything else.
func (m *VMMemory) UnmarshalJSON(value []byte) error {
	return (*intstr.IntOrString)(m).UnmarshalJSON(value)
}
