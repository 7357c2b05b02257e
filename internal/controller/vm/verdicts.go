package vm

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// progress is the outcome on a server that is on its way, or broken; nil when it stands.
func progress(server cloud.Server) error {
	switch server.State {
	case cloud.StateBuilding:
		return reconciler.Wait(safety, v1alpha1.CreatingReason, "the cloud is building VM %s", server.ID)
	case cloud.StateDeleting:
		return reconciler.Wait(safety, v1alpha1.DeletingReason, "VM %s is being deleted in the cloud, and not by this operator", server.ID)
	case cloud.StateError:
		return stall(v1alpha1.ServerErrorReason, fmt.Errorf("the cloud reports VM %s in error: look there for the cause", server.ID), recheckRefused)
	case cloud.StateUnknown:
		return stall(v1alpha1.UnknownStateReason, fmt.Errorf("the cloud reports VM %s in a state that this operator does not know", server.ID), recheckRefused)
	default:
		return nil
	}
}

// adopted is the outcome on a server that was just found: a spec that was
// edited since its create is followed in the next pass.
func adopted(vm *v1alpha1.VM, server cloud.Server) error {
	if err := progress(server); err != nil {
		return err
	}
	if server.Name != vm.Spec.VMName || !difference(vm, server).Empty() {
		return reconciler.Wait(time.Second, v1alpha1.ProgressingReason, "VM %s was found and is being brought in line with the spec", server.ID)
	}
	return nil
}

func stall(reason string, cause error, recheck time.Duration) error {
	return &reconciler.StalledError{Reason: reason, Cause: cause, Recheck: recheck}
}

func moved(obs *scope, id string) error {
	return stall(v1alpha1.DriftReason, fmt.Errorf(
		"VM %s is on Cloud %q already, which spec.cloudRef named before: set it back to that, or delete this VM and make another", id, obs.cloud), recheckRefused)
}

func taken(cause error) error { return stall(v1alpha1.TakenReason, cause, recheckTaken) }

// refusedName is the outcome on a name that the cloud does not allow.
func refusedName(cause error) error {
	if cloud.Is(cause, cloud.Taken) {
		return taken(cause)
	}
	return stall(v1alpha1.ProhibitedReason, cause, recheckRefused)
}

func foreign(server cloud.Server) error {
	return reconciler.Stalled(v1alpha1.BlockedReason, 0, fmt.Errorf(
		"VM %s does not carry this object's owner labels, so it is not touched: set spec.deletionPolicy to Orphan to let go of it, or look who made it", server.ID))
}

var errRival = errors.New("another VM object has this vmname or server on the same cloud: choose another, or delete that object")

func names(servers []cloud.Server) string {
	ids := make([]string, 0, len(servers))
	for _, s := range servers {
		ids = append(ids, s.ID)
	}
	const most = 5
	if len(ids) > most {
		return fmt.Sprintf("%d VMs named %q (%s, …)", len(ids), servers[0].Name, strings.Join(ids[:most], ", "))
	}
	return fmt.Sprintf("VM %s named %q", strings.Join(ids, ", "), servers[0].Name)
}
