package rest

import (
	"context"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
)

// UpdateServer changes a server in place. It is never sent twice.
func (c *Client) UpdateServer(ctx context.Context, id string, req cloud.UpdateServer) (cloud.Result, error) {
	call, err := serverCall(http.MethodPatch, id, "update server ")
	if err != nil {
		return cloud.Result{}, err
	}
	needs := updateNeeds(req)
	if len(needs) == 0 {
		return cloud.Result{}, refuse(call.op, cloud.Rejected, "nothing to change was given")
	}
	has, err := c.capabilitiesFor(ctx, call.op)
	if err != nil {
		return cloud.Result{}, err
	}
	if err := require(call.op, has, needs...); err != nil {
		return cloud.Result{}, err
	}
	wire := wireUpdate{CPU: req.CPU, PowerState: (*string)(req.PowerState), Labels: req.Labels}
	if req.ShutsDown() {
		wire.PowerOffMode = "Soft"
	}
	if req.MemoryMiB != nil {
		memory, err := gib(call.op, *req.MemoryMiB)
		if err != nil {
			return cloud.Result{}, err
		}
		wire.Memory = &memory
	}
	if wire.Disks, err = wireDisks(call.op, req.Disks); err != nil {
		return cloud.Result{}, err
	}
	call.body = encode(wire)
	got, err := c.do(ctx, call)
	if err != nil {
		return cloud.Result{}, err
	}
	result, err := c.result(call, got, has)
	if err == nil && result.Server.ID != id && (result.Operation == "" || result.Server.ID != "") {
		err = c.ofAnotherID(call, got, "server", id, result.Server.ID)
	}
	if err != nil {
		return cloud.Result{}, err
	}
	return result, nil
}

func updateNeeds(req cloud.UpdateServer) []cloud.Capability {
	var needs []cloud.Capability
	if req.Flavor != nil {
		needs = append(needs, cloud.Flavors)
	}
	if req.CPU != nil || req.MemoryMiB != nil {
		needs = append(needs, cloud.Resize)
	}
	if req.PowerState != nil {
		needs = append(needs, cloud.Power)
	}
	if req.Suspends() {
		needs = append(needs, cloud.Suspend)
	}
	if req.ShutsDown() {
		needs = append(needs, cloud.SoftPowerOff)
	}
	if req.Disks != "" {
		needs = append(needs, cloud.WithDisks)
	}
	if len(req.Labels) > 0 {
		needs = append(needs, cloud.Labels)
	}
	return needs
}

// DeleteServer deletes the server of this id. A 202 says that the deletion has begun.
func (c *Client) DeleteServer(ctx context.Context, id string) (cloud.Result, error) {
	call, err := serverCall(http.MethodDelete, id, "delete server ")
	if err != nil {
		return cloud.Result{}, err
	}
	call.limit = 0
	got, err := c.do(ctx, call)
	if err != nil {
		return cloud.Result{}, err
	}
	if got.status != http.StatusAccepted {
		return cloud.Result{}, nil
	}
	result := cloud.Result{Server: cloud.Server{ID: id, State: cloud.StateDeleting}}
	if c.cachedCapabilities().Has(cloud.Operations) {
		// A reference that cannot be read leaves the state of the server, which shows as much.
		result.Operation, _ = operationOf(got)
	}
	return result, nil
}
