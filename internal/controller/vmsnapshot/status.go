package vmsnapshot

import (
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/names"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// recheck is how often a snapshot is looked at that is as it should be: each look
	// is a call.
	recheck = 10 * time.Minute
	// maxText bounds the texts of the cloud in the status, in bytes.
	maxText = 253
)

// Report writes the VMSnapshot's own status fields.
func (k *kind) Report(snap *pcapi.VMSnapshot, obs *observation, _ error) reconciler.Summary {
	status := &snap.Status
	if obs.Resource != nil && status.SnapshotID == "" {
		status.SnapshotID, status.Cloud = obs.Resource.ID, obs.Cloud
		status.CreatedTime = new(reconciler.StatusTime(obs.Now))
		status.NameInCloud = names.Bounded(maxText, obs.Resource.Name)
	}
	if s := obs.Resource; s != nil && s.ID == status.SnapshotID {
		status.SizeBytes, status.TakenTime = s.SizeBytes, nil
		if !s.CreatedAt.IsZero() {
			status.TakenTime = new(reconciler.StatusTime(s.CreatedAt))
		}
	}
	after := recheck
	if left, limited := timeLeft(snap, obs); limited && !pcapi.Protected(snap) {
		after = min(after, max(left, time.Second))
	}
	return reconciler.Summary{Reason: pcapi.InSyncReason, Message: fmt.Sprintf("snapshot %s of VM %s exists", status.SnapshotID, status.VMID), RequeueAfter: after}
}
