package vm

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

// recordKept records an event that names the disks that the cloud keeps when a server is deleted.
func recordKept(ctx context.Context, recorder events.EventRecorder, vm *pcapi.VM, server cloud.Server) {
	var names []string
	for _, disk := range server.Disks.List() {
		if disk.Keep {
			names = append(names, disk.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	log.FromContext(ctx).Info("disks of a VM that is deleted are kept", "server", server.ID, "disks", names)
	recorder.Eventf(vm, nil, corev1.EventTypeNormal, pcapi.DisksKeptReason, external.StepDelete,
		"VM %s is deleted, and the cloud keeps its disks, as spec.disks says: %s", server.ID, strings.Join(names, ", "))
}

// recordDetached records an event that names the disks that were detached from a server before
// its deletion, since others had attached them.
func recordDetached(ctx context.Context, recorder events.EventRecorder, vm *pcapi.VM, serverID string, disks []string) {
	if len(disks) == 0 {
		return
	}
	text := strings.Join(disks[:min(len(disks), maxNamed)], ", ")
	if more := len(disks) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	log.FromContext(ctx).Info("disks that others attached were detached from a VM that is deleted", "server", serverID, "disks", disks)
	recorder.Eventf(vm, nil, corev1.EventTypeWarning, pcapi.DisksDetachedReason, external.StepDelete,
		"disks that others had attached to VM %s were detached from it and are kept: %s", serverID, text)
}
