package vm

import (
	"context"
	"errors"
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

// keepDisks makes the cloud keep the disks for which the spec says Keep, before the server is deleted. It returns the server as it is
// then, and an error if the cloud does not keep them.
func keepDisks(ctx context.Context, vm *pcapi.VM, obs *observation, server cloud.Server) (cloud.Server, error) {
	client, op := obs.View.Client, "delete server "+server.ID
	keeps := slices.ContainsFunc(vm.Spec.Disks, func(d pcapi.VMDisk) bool { return d.DeletionPolicy == pcapi.VMDiskKeep })
	if !keeps || !obs.Capabilities().Has(cloud.KeepDisks) {
		return server, nil
	}
	if server.Disks == cloud.DisksUnknown {
		var err error
		if server, err = client.GetServer(ctx, server.ID); err != nil {
			return server, err
		}
		if server.Disks == cloud.DisksUnknown {
			return server, &cloud.Error{Kind: cloud.Busy, Op: op, Detail: "the cloud does not show which disks the server has"}
		}
	}
	missing := field.MissingKeeps(vm, server)
	if len(missing) == 0 {
		return server, nil
	}
	log.FromContext(ctx).Info("keeping disks of a VM that is deleted", "server", server.ID, "changes", fmt.Sprint(missing))
	result, err := client.UpdateServer(ctx, server.ID, missing)
	switch {
	case err != nil:
		return server, whileKeeping(missing, err)
	case result.Operation != "":
		return server, &cloud.Error{Kind: cloud.Busy, Op: op, Detail: "the cloud is still changing which disks it keeps"}
	case len(field.MissingKeeps(vm, result.Server)) > 0:
		return server, whileKeeping(missing, &cloud.Error{Kind: cloud.Rejected, Op: op, Detail: "the cloud accepts that disks are to be kept, and does not keep them"})
	}
	return result.Server, nil
}

// whileKeeping adds to an error what the user can do about it.
func whileKeeping(changes cloud.Update, err error) error {
	failed, ok := errors.AsType[*cloud.Error](err)
	if !ok || failed.Kind == cloud.NotFound {
		return err
	}
	var names []string
	for _, change := range cloud.Changes[cloud.SetDiskKeep](changes) {
		names = append(names, change.Name)
	}
	explained := *failed
	explained.Detail += fmt.Sprintf("; the VM is not deleted before the cloud keeps its disks %s: to delete them as well, set their deletionPolicy in spec.disks to Delete", firstOf(names))
	return &explained
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
