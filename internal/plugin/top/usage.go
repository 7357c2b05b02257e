package top

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
)

// usage sums the CPU use and size of VMs. What is unknown does not count.
type usage struct {
	percent, measured int64
	max               int32
	cores             int64
	memory            resource.Quantity
}

func (u *usage) add(vm *pcapi.VM) {
	if p := vm.Status.CPUUtilization; p != nil {
		u.percent += int64(*p)
		u.measured++
		u.max = max(u.max, *p)
	}
	if h := vm.Status.Hardware; h != nil {
		u.cores += int64(h.CPU)
		if h.Memory != nil {
			u.memory.Add(*h.Memory)
		}
	}
}

// mean returns the mean CPU use in percent, rounded down, nil if none is known.
func (u *usage) mean() *int32 {
	if u.measured == 0 {
		return nil
	}
	return new(int32(min(u.percent/u.measured, 100))) //nolint:gosec // a mean of percentages is at most 100
}

func (u *usage) highest() *int32 {
	if u.measured == 0 {
		return nil
	}
	return new(u.max)
}

// size returns the memory, empty if none is known.
func (u *usage) size() string {
	if u.memory.IsZero() {
		return ""
	}
	return u.memory.String()
}

func percent(value *int32) string {
	if value == nil {
		return plugin.Unknown
	}
	return strconv.Itoa(int(*value)) + "%"
}

// orUnknown returns the text of a cell: a size of 0 is one that the cloud does not report.
func orUnknown(text string) string {
	if text == "" || text == "0" {
		return plugin.Unknown
	}
	return text
}
