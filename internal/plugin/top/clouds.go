package top

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
)

// cloudRow is a Cloud with the counts of its last listing, and the sums of its VMs.
type cloudRow struct {
	Name           string              `json:"name"`
	Servers        *pcapi.CloudServers `json:"servers,omitempty"`
	VMs            *int32              `json:"vms,omitempty"`
	CPUUtilization *int32              `json:"cpuUtilization,omitempty"`
	CPU            int64               `json:"cpu,omitempty"`
	Memory         string              `json:"memory,omitempty"`

	used usage
}

func (r *cloudRow) key() string       { return r.Name }
func (r *cloudRow) cpu() *int32       { return r.CPUUtilization }
func (r *cloudRow) namespace() string { return "" }
func (r *cloudRow) cells() []string {
	cells := []string{r.Name, plugin.Unknown, plugin.Unknown, plugin.Unknown, plugin.Unknown, percent(r.CPUUtilization), orUnknown(fmt.Sprint(r.CPU)), orUnknown(r.Memory)}
	if s := r.Servers; s != nil {
		cells[1], cells[2], cells[3] = fmt.Sprint(s.Known), fmt.Sprint(s.Managed), fmt.Sprint(s.Orphaned)
	}
	if r.VMs != nil {
		cells[4] = fmt.Sprint(*r.VMs)
	}
	return cells
}

func (c *command) clouds(ctx context.Context, reader client.Reader) error {
	rows, byName := []*cloudRow{}, map[string]*cloudRow{}
	err := plugin.Each(ctx, reader, &pcapi.CloudList{}, func(found *pcapi.Cloud) error {
		r := &cloudRow{Name: found.Name, Servers: found.Status.Servers}
		rows, byName[found.Name] = append(rows, r), r
		return nil
	})
	if err != nil {
		return err
	}
	counts := map[string]int32{}
	err = plugin.Each(ctx, reader, &pcapi.VMList{}, func(vm *pcapi.VM) error {
		if r := byName[vm.Status.Cloud]; r != nil {
			counts[r.Name]++
			r.used.add(vm)
		}
		return nil
	})
	switch {
	case apierrors.IsForbidden(err):
		fmt.Fprintln(c.env.ErrOut, "The sums of VMs are not known: you may not list vms.samplecontroller.k8s.io in the cluster.")
	case err != nil:
		return err
	default:
		for _, r := range rows {
			r.VMs, r.CPUUtilization = new(counts[r.Name]), r.used.mean()
			r.CPU, r.Memory = r.used.cores, r.used.size()
		}
	}
	return write(c, rows, false, "NAME", "SERVERS", "MANAGED", "ORPHANED", "VMS", "MEAN CPU%", "CORES", "MEMORY")
}
