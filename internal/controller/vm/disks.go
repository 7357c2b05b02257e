package vm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
)

// keepDisks lets the cloud keep the disks of a server that is deleted which its VM says are kept, where the cloud does not do so yet.
// It returns the server with them. It fails if the cloud does not accept that: the disks would be lost.
func keepDisks(ctx context.Context, vm *pcapi.VM, obs *observation, server cloud.Server) (cloud.Server, error) {
	missing := slices.DeleteFunc(field.Difference(vm, server).Of(cloud.KeepPart), func(c cloud.ServerChange) bool {
		change, ok := c.(cloud.SetDiskKeep)
		return !ok || !change.Keep
	})
	if len(missing) == 0 || !obs.Capabilities().Has(cloud.KeepDisks) {
		return server, nil
	}
	log.FromContext(ctx).Info("keeping disks of a VM that is deleted", "server", server.ID, "changes", fmt.Sprint(missing))
	result, err := obs.View.Client.UpdateServer(ctx, server.ID, missing)
	switch {
	case err != nil:
		return server, err
	case result.Operation != "":
		return server, &cloud.Error{Kind: cloud.Busy, Op: "delete server " + server.ID, Detail: "its disks are made ones that are kept"}
	}
	for _, change := range cloud.Changes[cloud.SetDiskKeep](missing) {
		if !result.Server.Disks.Kept(change.Name) {
			return server, &cloud.Error{Kind: cloud.Failed, Op: "delete server " + server.ID, Detail: fmt.Sprintf(
				"the cloud does not keep the disk %q: set its deletionPolicy in spec.disks to Delete to delete it with the VM", change.Name)}
		}
	}
	return result.Server, nil
}

// recordKept records an event that names the disks that the cloud keeps when a server is deleted.
func recordKept(ctx context.Context, recorder events.EventRecorder, vm *pcapi.VM, server cloud.Server) {
	names := server.Disks.KeptNames()
	if len(names) == 0 {
		return
	}
	log.FromContext(ctx).Info("disks of a VM that is deleted are kept", "server", server.ID, "disks", names)
	recorder.Eventf(vm, nil, corev1.EventTypeNormal, pcapi.DisksKeptReason, external.StepDelete,
		"the cloud keeps disks of VM %s, which is deleted: %s", server.ID, firstOf(names))
}

// firstOf returns the first of some names as a text.
func firstOf(names []string) string {
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// recordDetached records an event that names the disks that were detached from a server before
// its deletion, since others had attached them.
func recordDetached(ctx context.Context, recorder events.EventRecorder, vm *pcapi.VM, serverID string, disks []string) {
	if len(disks) == 0 {
		return
	}
	log.FromContext(ctx).Info("disks that others attached were detached from a VM that is deleted", "server", serverID, "disks", disks)
	recorder.Eventf(vm, nil, corev1.EventTypeWarning, pcapi.DisksDetachedReason, external.StepDelete,
		"disks that others had attached to VM %s were detached from it and are kept: %s", serverID, firstOf(disks))
}
