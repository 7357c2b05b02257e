package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// once are the requests that are sent once: those that change something, and the one
// whose token is used up by the first answer.
var once = map[string]bool{
	"CloneVM_Task": true, "ReconfigVM_Task": true, "PowerOnVM_Task": true, "PowerOffVM_Task": true, "SuspendVM_Task": true, "ShutdownGuest": true, "Destroy_Task": true, "UnregisterAndDestroy_Task": true,
	"ReconfigureComputeResource_Task": true, "CreateFolder": true, "CreateSnapshotEx_Task": true, "RemoveSnapshot_Task": true, "RevertToSnapshot_Task": true, "ContinueRetrievePropertiesEx": true,
}

// try sends a request, and sends one that reads again after a failure that may pass.
func (s *sender) try(ctx context.Context, req, res soap.HasFault) error {
	for try := 1; ; try++ {
		err := s.send(ctx, req, res)
		if err == nil || try == transport.MaxTries || once[routeOf(req)] || !s.temporary(ctx, err) {
			return err
		}
		if !transport.Pause(ctx, try) {
			return err
		}
	}
}

// temporary reports whether the next try, a moment later, may succeed.
func (s *sender) temporary(ctx context.Context, err error) bool {
	if faultOf(err) != nil || soap.IsSoapFault(err) || ctx.Err() != nil {
		return false
	}
	e := s.faults.unanswered(ctx, err)
	return transport.Transient(e, 0)
}
