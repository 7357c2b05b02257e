package vmgroup

import (
	"errors"
	"strings"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

func TestGroupWhoseFlavorIsNotListedReplacesNoMember(t *testing.T) {
	g := groupOfSize(1, func(g *pcapi.VmGroup) { g.Spec.Flavor = "g1.large" })
	obs := &observation{template: templateOf(g, "default"), reachable: true, caps: cloud.NewCapabilities(cloud.Flavors)}
	if got := obs.lacking(); got != "" {
		t.Errorf("with a flavor that is listed, a new member lacks %q", got)
	}
	obs.flavorRefused = errors.New(`VMs may not name flavor "g1.large"`)
	if got := obs.lacking(); got != "flavor" {
		t.Errorf("a new member lacks %q, want flavor", got)
	}
	outcome := outcomeOf(g, obs, moves{})
	if !reconciler.IsStalled(outcome) || reconciler.Reason(outcome) != pcapi.RejectedReason || !strings.Contains(outcome.Error(), "g1.large") {
		t.Errorf("the outcome is %v, want it Stalled as Rejected, with the flavor", outcome)
	}
}
