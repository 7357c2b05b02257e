package vsphere

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// hidden knows whether there are VMs without an instance UUID, because the vCenter cannot
// read them. While there are, that a search finds no VM proves nothing.
type hidden struct {
	mu    sync.Mutex
	until time.Time
	found bool
}

// any reports whether there are hidden VMs below the root. The answer is used for answerLifetime:
// a VM that was readable to this client before is found by its reference.
func (h *hidden) any(ctx context.Context, at *site) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.until) {
		return h.found, nil
	}
	vms, err := collect(ctx, at.vim, types.PropertyFilterSpec{
		PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{connectionPath, powerPath, uuidPath, summaryUUIDPath}}},
		ObjectSet: []types.ObjectSpec{children(at.root, true)},
	})
	if err != nil {
		return false, err
	}
	h.found = slices.ContainsFunc(vms, func(vm entity) bool {
		exists := vm.lost() || vm.faults[uuidPath] != nil || vm.props[powerPath] == types.VirtualMachinePowerStatePoweredOn // and is not being created
		return exists && !vm.configured() && vm.text(summaryUUIDPath) == ""
	})
	h.until = time.Now().Add(answerLifetime)
	return h.found, nil
}
