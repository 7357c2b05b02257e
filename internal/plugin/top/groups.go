package top

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
)

// groupRow is a VmGroup with the sums of its members that are ready.
type groupRow struct {
	Namespace         string `json:"namespace"`
	Name              string `json:"name"`
	CPUUtilization    *int32 `json:"cpuUtilization,omitempty"`
	MaxCPUUtilization *int32 `json:"maxCPUUtilization,omitempty"`
	ReadyReplicas     int32  `json:"readyReplicas"`
	Replicas          int32  `json:"replicas"`
	CPU               int64  `json:"cpu,omitempty"`
	Memory            string `json:"memory,omitempty"`

	members usage
}

func (r *groupRow) key() string       { return r.Namespace + "/" + r.Name }
func (r *groupRow) cpu() *int32       { return r.CPUUtilization }
func (r *groupRow) namespace() string { return r.Namespace }
func (r *groupRow) cells() []string {
	return []string{
		r.Name, percent(r.CPUUtilization), percent(r.MaxCPUUtilization), fmt.Sprintf("%d/%d", r.ReadyReplicas, r.Replicas),
		orUnknown(fmt.Sprint(r.CPU)), orUnknown(r.Memory),
	}
}

func (c *command) groups(ctx context.Context, reader client.Reader) error {
	namespace, err := c.namespace()
	if err != nil {
		return err
	}
	rows, byUID := []*groupRow{}, map[types.UID]*groupRow{}
	err = plugin.Each(ctx, reader, &pcapi.VmGroupList{}, func(g *pcapi.VmGroup) error {
		r := &groupRow{Namespace: g.Namespace, Name: g.Name, Replicas: g.Status.Replicas}
		rows, byUID[g.UID] = append(rows, r), r
		return nil
	}, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	err = plugin.Each(ctx, reader, &pcapi.VMList{}, func(vm *pcapi.VM) error {
		owner := metav1.GetControllerOf(vm)
		if owner == nil || byUID[owner.UID] == nil || !meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition) {
			return nil
		}
		r := byUID[owner.UID]
		r.ReadyReplicas++
		r.members.add(vm)
		return nil
	}, client.InNamespace(namespace))
	if err != nil {
		return err
	}
	for _, r := range rows {
		r.CPUUtilization, r.MaxCPUUtilization = r.members.mean(), r.members.highest()
		r.CPU, r.Memory = r.members.cores, r.members.size()
	}
	return write(c, rows, true, "NAME", "MEAN CPU%", "MAX CPU%", "READY", "CORES", "MEMORY")
}
