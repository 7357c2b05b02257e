package cloud

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// atOnce is the time until the reconcile that lists the servers with a new client.
const atOnce = time.Millisecond

// Plan decides what to do, from the Cloud and the observation and nothing else.
// The brake is set before the listing that caused it is published, so that
// nothing acts on that listing.
func (k *kind) Plan(c *pcapi.Cloud, obs *observation) plan {
	if !c.DeletionTimestamp.IsZero() && obs.users == 0 {
		return reconciler.Do(k.release())
	}
	var p plan
	if !obs.configured {
		p.Steps = append(p.Steps, configure())
	}
	if obs.unproven {
		p.Steps = append(p.Steps, k.dropClient())
	}
	if obs.failed != nil {
		p.Steps = append(p.Steps, k.markUnavailable())
		return p.Then(failedOutcome(c, obs))
	}
	if !obs.claimed && c.DeletionTimestamp.IsZero() {
		p.Steps = append(p.Steps, k.claim())
	}
	switch {
	case obs.client != nil:
		p.Steps = append(p.Steps, k.connect())
		return p.Then(connecting(atOnce, "the servers are listed next"))
	case !obs.configured:
		return p.Then(connecting(atOnce, "whether a listing is due is checked next"))
	}
	braked := obs.brake || (c.Status.BrakedSnapshot != "" && !obs.acknowledged)
	switch {
	case braked:
		p.Steps = append(p.Steps, brake())
	case obs.acknowledged || (obs.held && obs.fresh != nil):
		p.Steps = append(p.Steps, k.releaseBrake())
	}
	if obs.fresh != nil {
		p.Steps = append(p.Steps, k.publish())
		if c.Spec.OrphanPolicy == pcapi.OrphanPolicyDelete && len(obs.orphans) > 0 && !braked {
			p.Steps = append(p.Steps, k.removeOrphans())
		}
	}
	return p.Then(outcomeAfter(c, obs, braked))
}

// failedOutcome is the outcome of a reconcile whose cloud cannot be used. It says what a Secret is needed for that was
// deleted before what the Cloud has made.
func failedOutcome(c *pcapi.Cloud, obs *observation) error {
	stalled, ok := errors.AsType[*reconciler.StalledError](obs.failed)
	if !ok || stalled.Reason != pcapi.SecretMissingReason || c.DeletionTimestamp.IsZero() {
		return obs.failed
	}
	return stall(stalled.Reason, fmt.Errorf("%w; it is needed to delete the VMs, Networks and VMSnapshots that refer to this Cloud (%d): "+
		"the condition InUse names them; this Cloud is removed after the last of them", stalled.Cause, obs.shown.count))
}

// outcomeAfter is the outcome of a reconcile whose steps succeeded.
func outcomeAfter(c *pcapi.Cloud, obs *observation, braked bool) error {
	switch {
	case !c.DeletionTimestamp.IsZero():
		kept := ""
		if obs.secretGone {
			kept = fmt.Sprintf("; Secret %q does not exist any more, and is used as it was until this process ends: create it again if the deletion is to take longer", c.Spec.CredentialsSecretRef.Name)
		}
		return &reconciler.StalledError{Reason: pcapi.InUseReason, Recheck: recheck,
			Cause: fmt.Errorf("VMs, Networks and VMSnapshots that refer to this Cloud: %d; delete them first, it goes when the last is gone; the condition InUse names them%s", obs.shown.count, kept)}
	case braked:
		return &reconciler.StalledError{Reason: pcapi.ServersVanishedReason, Recheck: recheck,
			Cause: errors.New("the brake is on: nothing is created or deleted on this cloud; the Braked condition says how to release it")}
	case obs.refused != nil:
		return obs.refused
	case !obs.usable:
		return connecting(obs.again, "not due yet")
	case obs.invalid != nil:
		return &reconciler.StalledError{Reason: pcapi.InvalidConfigurationReason, Recheck: cmp.Or(obs.again, recheck),
			Cause: fmt.Errorf("no namespace may use this Cloud: spec.allowedNamespaces: %w", obs.invalid)}
	case obs.defect != nil:
		return &reconciler.StalledError{Reason: pcapi.InvalidConfigurationReason, Recheck: cmp.Or(obs.again, recheck),
			Cause: fmt.Errorf("%w; only VMs that need it wait", obs.defect)}
	}
	return nil
}

// connecting waits without a change of the status.
func connecting(after time.Duration, message string) error {
	return &reconciler.WaitError{After: after, Reason: pcapi.ConnectingReason, Message: message, Quiet: true}
}
