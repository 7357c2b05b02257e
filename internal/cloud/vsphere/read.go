package vsphere

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// get returns the VM with this instance UUID, in any spelling.
func (v *vms) get(ctx context.Context, id string) (cloud.Server, error) {
	id = cloud.CanonicalUUID(id)
	op := "get server " + quote(id)
	ctx, end, err := v.calls.begin(ctx, op)
	if err != nil {
		return cloud.Server{}, err
	}
	defer end()
	vm, at, err := v.find(ctx, op, id)
	if err != nil {
		return cloud.Server{}, err
	}
	servers, err := v.servers(ctx, at, []entity{vm})
	switch {
	case err != nil:
		return cloud.Server{}, v.faults.fail(ctx, op, err)
	case len(servers) == 0:
		return cloud.Server{}, refuse(op, cloud.Unavailable, "the VM is being created")
	}
	servers[0].ID = id
	return servers[0], nil
}

// status returns the use of the VM with this instance UUID.
func (v *vms) status(ctx context.Context, id string) (cloud.Status, error) {
	server, err := v.get(ctx, id)
	return cloud.Status{CPUUtilization: server.CPUUtilization}, err
}
