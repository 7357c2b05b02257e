package vsphere

import (
	"cmp"
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

// leaveRule takes a VM that is deleted out of the rule of its group. A failure does no harm:
// the vCenter does so too, and the next change removes rules with too few VMs.
func (c *Client) leaveRule(ctx context.Context, at *site, vm entity) {
	a := vm.antiAffinity()
	if a == (cloud.AntiAffinity{}) {
		return
	}
	release, err := c.ruleTurn(ctx, at, vm.ref)
	if err != nil {
		return
	}
	defer release()
	in, err := c.clusterOf(ctx, at, vm.ref)
	if err != nil {
		return
	}
	if specs := in.leave(ruleNamesOf(c.cloudName, a).owner, "", vm.ref); len(specs) > 0 {
		if refusal, err := c.changeRules(ctx, at, in.ref, specs, vm.ref); cmp.Or(refusal, err) != nil {
			c.log.V(1).Info("a deleted VM was left in its DRS rule", "reason", cmp.Or(refusal, err).Error())
		}
	}
}
