package cloud

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Report writes the Cloud's own status and conditions.
func (k *kind) Report(c *pcapi.Cloud, obs *observation, outcome error) reconciler.Summary {
	if !c.DeletionTimestamp.IsZero() && obs.users == 0 {
		return reconciler.Summary{Reason: "Disconnected", Message: "no VM or Network refers to the Cloud any more"}
	}
	reportAuthenticated(c, obs, outcome)
	if obs.fresh != nil {
		c.Status.Servers = new(obs.counts)
		c.Status.Capabilities = nil
		for _, name := range obs.caps {
			c.Status.Capabilities = append(c.Status.Capabilities, string(name))
		}
	}
	reportBraked(c, obs)
	reportConformant(c, obs)
	reportInUse(c, obs)
	reportInsecure(c)
	return reconciler.Summary{Reason: pcapi.ConnectedReason, Message: connected(obs.caps), RequeueAfter: obs.again}
}

func reportAuthenticated(c *pcapi.Cloud, obs *observation, outcome error) {
	condition := metav1.Condition{Type: pcapi.AuthenticatedCondition}
	switch reason := reconciler.Reason(outcome); {
	case obs.usable && reconciler.Reason(obs.refused) == "": // an error of the API server says nothing of the credentials
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, pcapi.AcceptedReason, "the cloud accepted the credentials"
		if c.Spec.CredentialsSecretRef == nil {
			condition.Message = "the cloud asks for no credentials"
		}
	case reason == pcapi.AuthenticationFailedReason, reason == pcapi.SecretMissingReason:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, reason, outcome.Error()
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, pcapi.ConnectingReason, "the cloud has not answered; see Ready"
	}
	meta.SetStatusCondition(&c.Status.Conditions, condition)
}

func reportBraked(c *pcapi.Cloud, obs *observation) {
	condition := metav1.Condition{Type: pcapi.BrakedCondition, Status: metav1.ConditionFalse, Reason: pcapi.ReleasedReason, Message: "no brake is on"}
	if obs.released || (obs.acknowledged && obs.brake) {
		c.Status.BrakedSnapshot = ""
	}
	switch {
	case c.Status.BrakedSnapshot != "":
		return
	case obs.brake:
		c.Status.BrakedSnapshot = obs.fresh.ID
		condition.Status, condition.Reason = metav1.ConditionTrue, pcapi.ServersVanishedReason
		form := ""
		if count, id, listed := obs.fresh.Alike(obs.vanished); count > 0 {
			form = fmt.Sprintf(" (it lists %d of them by other ids, %q by %q among them: %s. Do not acknowledge that)", count, id, listed, cloud.FormOfIDs)
		}
		condition.Message = fmt.Sprintf("snapshot %[1]s lacks %[2]d servers that VMs of this cluster record, %[3]s among them%[6]s; nothing is created or deleted on this cloud "+
			"until you have looked and run: kubectl annotate cloud %[4]s --overwrite %[5]s=%[1]s",
			obs.fresh.ID, obs.gone, obs.vanished[0], c.Name, pcapi.AcknowledgeAnnotation, form)
	}
	meta.SetStatusCondition(&c.Status.Conditions, condition)
}

// reportInUse names what keeps a deleted Cloud. The names are in no other condition:
// Ready is recorded as an event, which users of the namespace default may read.
func reportInUse(c *pcapi.Cloud, obs *observation) {
	if obs.users == 0 {
		meta.RemoveStatusCondition(&c.Status.Conditions, pcapi.InUseCondition)
		return
	}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: pcapi.InUseCondition, Status: metav1.ConditionTrue, Reason: pcapi.InUseReason, Message: obs.shown.text,
	})
}

// ready reports whether VMs can use the Cloud.
func ready(outcome error) bool {
	stalled, _ := errors.AsType[*reconciler.StalledError](outcome)
	return outcome == nil || (stalled != nil && stalled.Reason == pcapi.InUseReason)
}

// connected reports what the cloud guarantees about creates.
func connected(caps cloud.Capabilities) string {
	guarantee, _ := caps.CreateGuarantee("VM", false)
	return "connected; " + guarantee
}
