package vsphere

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// list lists the VMs below the root with one request a page. The marker has the
// token of the property collector, which is lost with the session, and the number of
// the page: nothing says that the tokens of all pages differ.
func (v *vms) list(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	const op = "list servers"
	if opts.Limit < 0 || opts.Limit > maxLimit {
		return cloud.ServerPage{}, refuse(op, cloud.Rejected, "the limit must be within 0 to %d", maxLimit)
	}
	ctx, end, err := v.calls.begin(cloudWide(ctx), op)
	if err != nil {
		return cloud.ServerPage{}, err
	}
	defer end()
	at, err := v.sites.locate(ctx)
	if err != nil {
		return cloud.ServerPage{}, v.faults.fail(ctx, op, err)
	}
	number, token, err := parseMarker(opts.Marker)
	if err != nil {
		return cloud.ServerPage{}, v.faults.fail(ctx, op, err)
	}
	vms, next, err := v.page(ctx, at, opts.Limit, token)
	if err != nil {
		return cloud.ServerPage{}, v.faults.fail(ctx, op, v.sites.misplaced(ctx, at, err))
	}
	servers, err := v.servers(ctx, at, vms)
	if err != nil {
		return cloud.ServerPage{}, v.faults.fail(ctx, op, err)
	}
	page := cloud.ServerPage{Servers: make([]cloud.Server, 0, len(servers))}
	if next != "" {
		page.Next = fmt.Sprintf("%d %s", number+1, next)
	}
	for _, server := range servers {
		if bears(server, opts.Labels) {
			page.Servers = append(page.Servers, server)
		}
	}
	return page, nil
}

// parseMarker returns the number of a page and the token that leads to it.
func parseMarker(marker string) (number int, token string, err error) {
	if marker == "" {
		return 1, "", nil
	}
	digits, token, ok := strings.Cut(marker, " ")
	if number, err = strconv.Atoi(digits); !ok || err != nil {
		return 0, "", refuse("", cloud.Rejected, "this is no marker of a listing")
	}
	return number, token, nil
}

// page returns the VMs of a page, without templates, and the token of the next one.
func (v *vms) page(ctx context.Context, at *site, limit int, token string) (vms []entity, next string, err error) {
	result, err := v.retrievePage(ctx, at, limit, token)
	if err != nil || result == nil {
		return nil, "", err
	}
	for _, vm := range objects(result.Objects) {
		if vm.flag(templatePath) || vm.deleted() {
			continue
		}
		if err := v.identifiable(vm); err != nil {
			return nil, "", err
		}
		vms = append(vms, vm)
	}
	return vms, result.Token, nil
}

// identifiable fails if the vCenter should have returned the id and the name of a VM, and
// did not: a listing without the VM would say that it was deleted. A VM that is being
// created has neither yet.
func (v *vms) identifiable(vm entity) error {
	hasID, hasName := v.idOf(vm) != "", vm.text("name") != ""
	if hasID && hasName {
		return nil
	}
	for _, path := range []string{"name", uuidPath, summaryUUIDPath} {
		if fault := vm.faults[path]; fault != nil {
			return refuse("", cloud.Unavailable, "the vCenter does not return the name or the id of a VM in spec.vsphere.folder (%s)", codeOf(fault))
		}
	}
	if hasID {
		return refuse("", cloud.Unavailable, "the vCenter does not return the name of a VM in spec.vsphere.folder")
	}
	return nil
}

func (v *vms) retrievePage(ctx context.Context, at *site, limit int, token string) (*types.RetrieveResult, error) {
	if token != "" {
		return proceed(ctx, at.vim, token)
	}
	most := int32(cmp.Or(limit, maxLimit)) //nolint:gosec // at most maxLimit
	var result *types.RetrieveResult
	err := v.session.sure(ctx, func() (bool, error) {
		res, err := methods.RetrievePropertiesEx(ctx, at.vim, &types.RetrievePropertiesEx{
			This: at.vim.ServiceContent.PropertyCollector, Options: types.RetrieveOptions{MaxObjects: most},
			SpecSet: []types.PropertyFilterSpec{{
				PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: v.place.pathsOf(vmPaths)}},
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
