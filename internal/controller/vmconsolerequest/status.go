package vmconsolerequest

import (
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the answer to the status.
func (k *kind) Report(r *pcapi.VMConsoleRequest, obs *observation, _ error) reconciler.Summary {
	if obs.cloud != "" {
		r.Status.Cloud = obs.cloud
	}
	if obs.console != "" {
		r.Status.Console, r.Status.ReadTime = obs.console, new(reconciler.StatusTime(obs.now))
	}
	return reconciler.Summary{
		Reason: pcapi.InSyncReason, Message: fmt.Sprintf("the console of VM %q was read", r.Spec.VMName),
		RequeueAfter: max(timeLeft(r, obs.now), time.Second),
	}
}
