package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxLimit bounds the servers of a page, and defaultLimit is how many it has where
	// the caller does not say.
	maxLimit     = 1000
	defaultLimit = 500
)

// ListServers lists the VMs below the root with one request a page. The marker is the
// token of the property collector, which is lost with the session.
func (c *Client) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	const op = "list servers"
	if opts.Limit < 0 || opts.Limit > maxLimit {
		return cloud.ServerPage{}, refuse(op, cloud.Rejected, "the limit must be within 0 to %d", maxLimit)
	}
	ctx, end, err := c.begin(cloudWide(ctx), op)
	if err != nil {
		return cloud.ServerPage{}, err
	}
	defer end()
	at, err := c.locate(ctx)
	if err != nil {
		return cloud.ServerPage{}, c.fail(ctx, op, err)
	}
	vms, next, err := c.page(ctx, at, opts)
	if err != nil {
		return cloud.ServerPage{}, c.fail(ctx, op, c.misplaced(ctx, at, err))
	}
	servers, err := c.servers(ctx, at, vms)
	if err != nil {
		return cloud.ServerPage{}, c.fail(ctx, op, err)
	}
	page := cloud.ServerPage{Servers: make([]cloud.Server, 0, len(servers)), Next: next}
	for _, server := range servers {
		if bears(server, opts.Labels) {
			page.Servers = append(page.Servers, server)
		}
	}
	return page, nil
}

// page returns the VMs of a page, without templates, and the marker of the next one.
func (c *Client) page(ctx context.Context, at *site, opts cloud.ListServers) (vms []entity, next string, err error) {
	result, err := c.retrievePage(ctx, at, opts)
	if err != nil || result == nil {
		return nil, "", err
	}
	for _, vm := range objects(result.Objects) {
		if !vm.flag(templatePath) {
			vms = append(vms, vm)
		}
	}
	return vms, result.Token, nil
}

func (c *Client) retrievePage(ctx context.Context, at *site, opts cloud.ListServers) (*types.RetrieveResult, error) {
	collector := at.vim.ServiceContent.PropertyCollector
	if opts.Marker != "" {
		res, err := methods.ContinueRetrievePropertiesEx(ctx, at.vim, &types.ContinueRetrievePropertiesEx{This: collector, Token: opts.Marker})
		switch faultOf(err).(type) {
		case *types.InvalidProperty, *types.InvalidArgument, *types.ManagedObjectNotFound:
			return nil, refuse("", cloud.Unavailable, "the vCenter has forgotten where the listing was, as after the end of a session: it is begun again")
		}
		if err != nil {
			return nil, err
		}
		return &res.Returnval, nil
	}
	limit := int32(opts.Limit) //nolint:gosec // at most maxLimit
	if limit == 0 {
		limit = defaultLimit
	}
	var result *types.RetrieveResult
	err := c.session.sure(ctx, func() (bool, error) {
		res, err := methods.RetrievePropertiesEx(ctx, at.vim, &types.RetrievePropertiesEx{
			This: collector, Options: types.RetrieveOptions{MaxObjects: limit},
			SpecSet: []types.PropertyFilterSpec{{
				PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: vmPaths}},
				ObjectSet: []types.ObjectSpec{children(at.root, true)},
			}},
		})
		if err != nil {
			return false, err
		}
		result = res.Returnval
		return result == nil || len(result.Objects) == 0, nil
	})
	if err == nil && (result == nil || len(result.Objects) == 0) {
		err = readableRoot(ctx, at)
	}
	return result, err
}

// bears reports whether a server has all of the labels.
func bears(server cloud.Server, labels map[string]string) bool {
	for key, value := range labels {
		if has, ok := server.Labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
