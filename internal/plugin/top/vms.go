package top

import (
	"context"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
)

// vmRow is a VM.
type vmRow struct {
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	CPUUtilization *int32 `json:"cpuUtilization,omitempty"`
	CPU            int32  `json:"cpu,omitempty"`
	Memory         string `json:"memory,omitempty"`
	Host           string `json:"host,omitempty"`
	Cloud          string `json:"cloud,omitempty"`
	State          string `json:"state,omitempty"`
}

func (r vmRow) key() string       { return r.Namespace + "/" + r.Name }
func (r vmRow) cpu() *int32       { return r.CPUUtilization }
func (r vmRow) namespace() string { return r.Namespace }
func (r vmRow) cells() []string {
	return []string{r.Name, percent(r.CPUUtilization), orUnknown(strconv.Itoa(int(r.CPU))), orUnknown(r.Memory), orUnknown(r.Host), orUnknown(r.State)}
}

func (c *command) vms(ctx context.Context, reader client.Reader) error {
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	rows := []vmRow{}
	err = plugin.Each(ctx, reader, &pcapi.VMList{}, func(vm *pcapi.VM) error {
		rows = append(rows, rowOf(vm))
		return nil
	}, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	return write(c, rows, true, "NAME", "CPU%", "CORES", "MEMORY", "HOST", "STATE")
}

func rowOf(vm *pcapi.VM) vmRow {
	r := vmRow{
		Namespace: vm.Namespace, Name: vm.Name, CPUUtilization: vm.Status.CPUUtilization,
		Host: vm.Status.Host, Cloud: vm.Status.Cloud, State: string(vm.Status.State),
	}
	if h := vm.Status.Hardware; h != nil {
		r.CPU = h.CPU
		if h.Memory != nil {
			r.Memory = h.Memory.String()
		}
	}
	return r
}
