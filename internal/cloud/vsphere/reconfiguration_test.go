package vsphere

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestLabelsOfAVMThatHasNoneAreAnEmptyObject(t *testing.T) {
	spec := reconfiguration(entity{}, cloud.Update{cloud.RemoveLabel("a")})
	if spec == nil || len(spec.ExtraConfig) != 1 {
		t.Fatalf("%+v, want a change of one key", spec)
	}
	if got := *spec.ExtraConfig[0].(*types.OptionValue); got.Key != labelsKey || got.Value != "{}" {
		t.Errorf("%+v, want {} for %s", got, labelsKey)
	}
}
