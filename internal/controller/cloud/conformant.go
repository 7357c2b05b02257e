package cloud

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// maxIgnoredText bounds the ignored fields in a message, in bytes.
const maxIgnoredText = 2048

// reportConformant reports what the operator could not read of the cloud's
// answers, and what the listing lacks. The message is the same at each listing as
// long as that is the same.
func reportConformant(c *pcapi.Cloud, obs *observation) {
	if obs.fresh == nil {
		return
	}
	last := meta.FindStatusCondition(c.Status.Conditions, pcapi.ConformantCondition)
	condition := metav1.Condition{
		Type: pcapi.ConformantCondition, Status: metav1.ConditionTrue, Reason: pcapi.ReadableReason,
		Message: "the operator reads all parts of the cloud's answers that it uses",
	}
	var texts []string
	if len(obs.ignored) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, pcapi.FieldsIgnoredReason
		text := strings.Join(obs.ignored, "; ")
		texts = append(texts, "parts of the cloud's answers cannot be read and are ignored: "+strings.ToValidUTF8(text[:min(len(text), maxIgnoredText)], ""))
	} else if obs.early && last != nil && last.Reason == pcapi.FieldsIgnoredReason {
		condition = *last // after a start, the calls that had these answers are still to be made
	}
	if obs.unlabelled != "" {
		if condition.Status == metav1.ConditionTrue {
			condition.Status, condition.Reason = metav1.ConditionFalse, pcapi.LabelsNotKeptReason
		}
		texts = append(texts, fmt.Sprintf(
			"the cloud has the capability labels, and servers do not have the owner labels of their creates, such as %s: their VMs are not changed or deleted; "+
				"check whether the cloud drops or cuts labels: if it does, declare its capabilities without labels", obs.unlabelled))
	}
	if len(obs.incomplete) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, pcapi.ListingIncompleteReason
		texts = append([]string{fmt.Sprintf(
			"the listing lacks servers that the cloud returns by id, such as %s: VMs of such servers are read one by one; check whether the cloud caps its listing. "+
				"A server that was deleted no longer counts once reads of it have answered 404 for settleTime while the cloud returned a server that it lists: if it lists none, create one",
			obs.incomplete[0])}, texts...)
	}
	if len(texts) > 0 {
		condition.Message = strings.Join(texts, ". ")
	}
	meta.SetStatusCondition(&c.Status.Conditions, condition)
}
