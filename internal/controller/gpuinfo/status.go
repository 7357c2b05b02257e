package gpuinfo

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// maxCandidates is how many candidates a status holds.
	maxCandidates = 64
	// maxHost bounds a host's name in a status, in bytes.
	maxHost = 253
)

// report writes the GPUInfo's own status from what the pass saw.
func report(gpu *v1alpha1.GPUInfo, obs *scope) reconciler.Summary {
	d := decide(gpu, obs)
	status := &gpu.Status
	switch {
	case obs.refused != nil:
		// What is known of a cloud is not for those who may not use it.
		forget(status, "")
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.PlacedCondition)
	case d.expired:
		forget(status, v1alpha1.NoneAvailable)
		status.ExpiredGeneration = gpu.Generation
		place(status, metav1.ConditionFalse, v1alpha1.ExpiredReason, plan(gpu, obs).Error())
	case d.stays:
	case obs.unknown != nil:
		if status.Reservation != nil {
			forget(status, "")
			meta.RemoveStatusCondition(&status.Conditions, v1alpha1.PlacedCondition)
		}
	case d.chosen == nil:
		forget(status, v1alpha1.NoneAvailable)
		answered(status, obs, d)
		place(status, metav1.ConditionFalse, v1alpha1.NoneAvailableReason, plan(gpu, obs).Error())
	default:
		reportChosen(status, d)
		answered(status, obs, d)
		place(status, metav1.ConditionTrue, v1alpha1.PlacedReason, placed(*status))
	}
	if status.Reservation == nil {
		return reconciler.Summary{}
	}
	return reconciler.Summary{Reason: v1alpha1.PlacedReason, Message: placed(*status), RequeueAfter: status.Reservation.Until.Sub(obs.now)}
}

// forget takes out all that a choice said, and leaves a word in place of the names.
func forget(status *v1alpha1.GPUInfoStatus, word string) {
	status.SuitableNodeName, status.SuitableHostName = word, word
	status.NodeCPUUsage, status.NodeMemoryUsage, status.AvailableAcceleratorTime = 0, 0, 0
	status.Reservation, status.Candidates = nil, nil
}

func reportChosen(status *v1alpha1.GPUInfoStatus, d decision) {
	c := d.chosen
	moved := status.SuitableNodeName != c.node
	if moved || worthTelling(status.NodeCPUUsage, c.mhz) {
		status.NodeCPUUsage = c.mhz
	}
	if moved || worthTelling(status.NodeMemoryUsage, c.mb) {
		status.NodeMemoryUsage = c.mb
	}
	status.SuitableNodeName, status.SuitableHostName = c.node, c.host
	status.AvailableAcceleratorTime = c.hours
	status.Reservation = d.reservation
}

// worthTelling: use moves all the time, and is written when it moved by more
// than a tenth of what is shown.
func worthTelling(shown, is int64) bool {
	moved := max(is-shown, shown-is)
	return moved*10 > shown
}

// answered writes down why each node was taken or not, and which request and
// spec that answers.
func answered(status *v1alpha1.GPUInfoStatus, obs *scope, d decision) {
	status.ExpiredGeneration, status.LastHandledReconcileAt = 0, obs.request
	status.Candidates = nil
	for _, c := range d.candidates[:min(len(d.candidates), maxCandidates)] {
		shown := v1alpha1.GPUCandidate{NodeName: c.node, HostName: c.host, Message: c.refusal}
		switch d.rank(c) {
		case 0:
			shown.Message = "chosen, and kept as long as it suits"
		case 1:
			shown.Message = "suits; another was chosen"
		}
		if len(c.host) > maxHost {
			shown.HostName = ""
		}
		status.Candidates = append(status.Candidates, shown)
	}
}

func place(status *v1alpha1.GPUInfoStatus, is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: v1alpha1.PlacedCondition, Status: is, Reason: reason, Message: message})
}

func placed(status v1alpha1.GPUInfoStatus) string {
	held := status.Reservation
	return fmt.Sprintf("node %q on host %q of Cloud %q is reserved for %.0f hours",
		status.SuitableNodeName, held.Host, held.Cloud, held.Until.Sub(held.Since.Time).Hours())
}
