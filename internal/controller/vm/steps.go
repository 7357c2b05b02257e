package vm

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The names of the steps that only VMs have.
const (
	stepTakeClass     = "TakeClass"
	stepReadUserData  = "ReadUserData"
	stepCheckName     = "CheckName"
	stepConfirmName   = "ConfirmName"
	stepConfirmImport = "ConfirmImport"
	stepLabel         = "Label"
	stepUnlabel       = "Unlabel"
	stepUpdate        = "Update"
)

type step = reconciler.Step[*pcapi.VM, *observation]

// steps are the steps that only VMs have, beside those of restarts and reverts.
type steps struct {
	// takeClass stores the size of the class. A create must not be sent before: one with the
	// same key must have the same size, also if the class was created anew meanwhile.
	takeClass step
	// readUserData reads the Secret with the user data. It needs what the create needs:
	// the Secret is not read before it is sent.
	readUserData step
	// checkName asks the cloud for the name. It is not run while the brake is
	// on: a claim proves that a name is free only if the create follows at once.
	checkName step
	// confirmName asks the cloud for the claimed name, before the claim is removed.
	confirmName step
	// confirmImport reads a server that is taken over: since the last listing, it may have been deleted, and the cloud
	// may have given its id to another server, or another VM may have taken it over. The next listing decides then.
	confirmImport step
	// label marks an imported server as the VM's, and unlabel removes the marks.
	label, unlabel step
	// update changes what differs from the spec.
	update step
}

// newSteps returns the steps of k, whose parts must be set.
func newSteps(k *kind) steps {
	return steps{
		takeClass:     k.Step(stepTakeClass, reconciler.Mutates, k.takeClass),
		readUserData:  k.Step(stepReadUserData, reconciler.NeedsCloud|reconciler.NeedsBrakeOff, k.readUserData),
		checkName:     k.Step(stepCheckName, reconciler.NeedsCloud|reconciler.NeedsBrakeOff, k.names.check),
		confirmName:   k.Step(stepConfirmName, reconciler.NeedsCloud, k.names.confirm),
		confirmImport: k.Step(stepConfirmImport, reconciler.NeedsCloud, k.confirmImport),
		label:         k.Step(stepLabel, reconciler.NeedsCloud|reconciler.Mutates, k.changer.label),
		unlabel:       k.Step(stepUnlabel, reconciler.NeedsCloud|reconciler.Mutates, k.changer.unlabel),
		update:        k.Step(stepUpdate, reconciler.NeedsCloud|reconciler.Mutates, k.changer.update),
	}
}
