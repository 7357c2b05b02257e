package rest

import (
	"context"
	"net/http"

	"github.com/privatecloud/operator/internal/cloud"
)

// CreateServer asks for a server. The key is sent only to a cloud that honours
// keys; only then is the call ever sent twice.
func (c *Client) CreateServer(ctx context.Context, req cloud.CreateServer) (cloud.Server, error) {
	op := "create server " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Server{}, err
	}
	has, err := c.capable(ctx, op)
	if err != nil {
		return cloud.Server{}, err
	}
	if err := lacking(op, has, createNeeds(req)...); err != nil {
		return cloud.Server{}, err
	}
	call := &call{
		about: aboutCreate, method: http.MethodPost, route: "/servers", path: "/servers", op: op, limit: maxBody,
		body: encode(wireCreate{
			Name: req.Name, CPU: req.CPU, Memory: req.MemoryGiB, Template: req.Template, Folder: req.Folder,
			NetworkID: req.NetworkID, PowerState: string(req.PowerState), Labels: req.Labels,
		}),
	}
	if has.Has(cloud.Idempotency) {
		call.key = req.IdempotencyKey
	}
	if !sendable(call.key) {
		return cloud.Server{}, refuse(op, cloud.Rejected, "the idempotency key holds characters that cannot be sent")
	}
	got, err := c.serve(ctx, call)
	if err != nil {
		return cloud.Server{}, err
	}
	server, err := decodeServer(call, got)
	if err != nil {
		return cloud.Server{}, err
	}
	if server.Name != req.Name {
		return cloud.Server{}, unreadable(call, got, "the answer is about a server of another name")
	}
	return server, nil
}

func createNeeds(req cloud.CreateServer) []cloud.Capability {
	var needs []cloud.Capability
	if req.CPU != 0 || req.MemoryGiB != 0 || req.Template != "" {
		needs = append(needs, cloud.Sizing)
	}
	if req.Folder != "" {
		needs = append(needs, cloud.Folders)
	}
	if req.NetworkID != "" {
		needs = append(needs, cloud.Networks)
	}
	if req.PowerState != "" {
		needs = append(needs, cloud.Power)
	}
	if len(req.Labels) > 0 {
		needs = append(needs, cloud.Labels)
	}
	return needs
}

// UpdateServer changes a server in place. It is never sent twice.
func (c *Client) UpdateServer(ctx context.Context, id string, req cloud.UpdateServer) (cloud.Server, error) {
	call, err := serverCall(http.MethodPatch, id, "update server ")
	if err != nil {
		return cloud.Server{}, err
	}
	needs := updateNeeds(req)
	if len(needs) == 0 {
		return cloud.Server{}, refuse(call.op, cloud.Rejected, "nothing to change was given")
	}
	has, err := c.capable(ctx, call.op)
	if err != nil {
		return cloud.Server{}, err
	}
	if err := lacking(call.op, has, needs...); err != nil {
		return cloud.Server{}, err
	}
	call.body = encode(wireUpdate{
		CPU: req.CPU, Memory: req.MemoryGiB, PowerState: (*string)(req.PowerState), Labels: req.Labels,
	})
	return c.serverOf(ctx, call, id)
}

func updateNeeds(req cloud.UpdateServer) []cloud.Capability {
	var needs []cloud.Capability
	if req.CPU != nil || req.MemoryGiB != nil {
		needs = append(needs, cloud.Resize)
	}
	if req.PowerState != nil {
		needs = append(needs, cloud.Power)
	}
	if len(req.Labels) > 0 {
		needs = append(needs, cloud.Labels)
	}
	return needs
}
