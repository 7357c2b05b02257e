package gpuinfo

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// maxCandidates is how many candidates a status holds.
	maxCandidates = 64
	// maxHost bounds a host's name in a status, in bytes.
	maxHost = 253
)

// Report writes the GPUInfo's own status.
func (k *kind) Report(gpu *pcapi.GPUInfo, obs *observation, _ error) reconciler.Summary {
	if obs.decision == nil { // Observe failed, so that there is no plan
		return report(gpu, obs, decide(gpu, obs))
	}
	return report(gpu, obs, *obs.decision)
}

func report(gpu *pcapi.GPUInfo, obs *observation, d decision) reconciler.Summary {
	status := &gpu.Status
	held := status.Reservation
	switch {
	case obs.refused != nil:
		// A GPUInfo that may not use a Cloud shows nothing of it.
		forget(status, "")
		meta.RemoveStatusCondition(&status.Conditions, pcapi.PlacedCondition)
	case d.expired:
		forget(status, pcapi.NoneAvailable)
		status.ExpiredGeneration = gpu.Generation
		place(status, metav1.ConditionFalse, pcapi.ExpiredReason, expired(gpu).Error())
	case d.stays:
	case obs.unknown != nil:
		if status.Reservation != nil {
			forget(status, "")
			meta.RemoveStatusCondition(&status.Conditions, pcapi.PlacedCondition)
		}
	case d.chosen == nil:
		forget(status, pcapi.NoneAvailable)
		reportCandidates(status, obs, d)
		place(status, metav1.ConditionFalse, pcapi.NoneAvailableReason, noneAvailable(obs).Error())
	default:
		reportChosen(status, d)
		reportCandidates(status, obs, d)
		place(status, metav1.ConditionTrue, pcapi.PlacedReason, placed(*status))
	}
	if status.Reservation == nil {
		return reconciler.Summary{}
	}
	until := status.Reservation.Until.Time
	if status.Reservation == held {
		until = obs.end(held)
	}
	return reconciler.Summary{Reason: pcapi.PlacedReason, Message: placed(*status), RequeueAfter: until.Sub(obs.now)}
}

// forget removes the earlier choice, and sets the names to word.
func forget(status *pcapi.GPUInfoStatus, word string) {
	status.SuitableNodeName, status.SuitableHostName = word, word
	status.NodeCPUUsage, status.NodeMemoryUsage, status.AvailableAcceleratorTime = 0, 0, 0
	status.Reservation, status.Candidates = nil, nil
}

func reportChosen(status *pcapi.GPUInfoStatus, d decision) {
	c := d.chosen
	moved := status.SuitableNodeName != c.node
	if moved || changedEnough(status.NodeCPUUsage, c.mhz) {
		status.NodeCPUUsage = c.mhz
	}
	if moved || changedEnough(status.NodeMemoryUsage, c.mb) {
		status.NodeMemoryUsage = c.mb
	}
	status.SuitableNodeName, status.SuitableHostName = c.node, c.host
	status.AvailableAcceleratorTime = c.hours
	status.Reservation = d.reservation
}

// changedEnough reports whether a usage differs from the one shown by more than a
// tenth. Smaller changes are not written, because usage changes all the time.
func changedEnough(shown, is int64) bool {
	return max(is-shown, shown-is)*10 > shown
}

// reportCandidates writes why each node was chosen or not, and which request was
// handled.
func reportCandidates(status *pcapi.GPUInfoStatus, obs *observation, d decision) {
	status.ExpiredGeneration, status.LastHandledReconcileAt = 0, obs.request
	status.Candidates = nil
	for _, c := range d.candidates[:min(len(d.candidates), maxCandidates)] {
		shown := pcapi.GPUCandidate{NodeName: c.node, HostName: c.host, Message: c.refusal}
		switch d.rank(c) {
		case 0:
			shown.Message = "chosen, and kept as long as it suits"
			if c.unclear {
				shown.Message = "chosen, and kept while the node is Ready: " + c.refusal
			}
		case 1:
			shown.Message = "suits; another was chosen"
		}
		if len(c.host) > maxHost {
			shown.HostName = ""
		}
		status.Candidates = append(status.Candidates, shown)
	}
}

func place(status *pcapi.GPUInfoStatus, is metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pcapi.PlacedCondition, Status: is, Reason: reason, Message: message})
}

func placed(status pcapi.GPUInfoStatus) string {
	held := status.Reservation
	return fmt.Sprintf("node %q on host %q of Cloud %q is reserved for %.0f hours",
		status.SuitableNodeName, held.Host, held.Cloud, held.Until.Sub(held.Since.Time).Hours())
}
