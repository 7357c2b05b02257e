package why

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
)

// States of entries.
const (
	stateReady    = "Ready"
	stateNotReady = "NotReady"
	// stateUnknown is that the operator has not reconciled the object yet.
	stateUnknown = "Unknown"
	// stateExists is that the object exists and has no conditions.
	stateExists = "Exists"
	// stateMissing is that the object does not exist.
	stateMissing = "Missing"
	// stateUnreadable is that the user may not read it.
	stateUnreadable = "Unreadable"
)

// entry is one object of the chain.
type entry struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	State     string `json:"state"`
	// Reason, Message and Since are those of the condition Ready.
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	// Stalled is whether the operator waits until somebody acts.
	Stalled bool `json:"stalled,omitempty"`
	// Notes are what else there is to know.
	Notes []string `json:"notes,omitempty"`
}

func newEntry(k key, state string) entry {
	return entry{Kind: k.kind, Namespace: k.namespace, Name: k.name, State: state}
}

// entryOf returns the entry of an object that was read.
func entryOf(k key, o client.Object) entry {
	with, ok := o.(object)
	if !ok {
		return newEntry(k, stateExists)
	}
	l := newEntry(k, stateUnknown)
	conditions := with.GetConditions()
	if ready := meta.FindStatusCondition(conditions, pcapi.ReadyCondition); ready != nil {
		l.State, l.Reason, l.Message = stateNotReady, ready.Reason, ready.Message
		if ready.Status == metav1.ConditionTrue {
			l.State = stateReady
		}
		l.Since = new(ready.LastTransitionTime.UTC())
		l.Stalled = meta.IsStatusConditionTrue(conditions, pcapi.StalledCondition)
		if ready.ObservedGeneration != 0 && ready.ObservedGeneration < o.GetGeneration() {
			l.Notes = append(l.Notes, "the operator has not reconciled the last change of its spec yet")
		}
	}
	if deleted := o.GetDeletionTimestamp(); deleted != nil {
		l.Notes = append(l.Notes, fmt.Sprintf("its deletion was requested at %s", deleted.UTC().Format(time.RFC3339)))
	}
	if pcapi.Paused(o) && l.Reason != pcapi.PausedReason {
		l.Notes = append(l.Notes, "it is paused: remove the annotation "+pcapi.PausedAnnotation)
	}
	if planned, ok := o.(approval.Object); ok {
		l.Notes = append(l.Notes, notesOfPlan(k, planned)...)
	}
	if k.kind == cloudKind {
		l.Notes = append(l.Notes, notesOfCloud(conditions)...)
	}
	return l
}

// notesOfPlan returns which plan of an object waits for an approval, or who approved the last one.
func notesOfPlan(k key, o approval.Object) []string {
	_, plan := o.Approval()
	switch {
	case plan == nil:
		return nil
	case plan.Phase == pcapi.PlanPending:
		return []string{fmt.Sprintf("plan %d waits for an approval: look at it with kubectl privatecloud approve %s/%s -n %s", plan.Number, named(k.kind).resource, k.name, k.namespace)}
	case plan.ApprovedTime == nil:
		return nil
	}
	return []string{fmt.Sprintf("plan %d is %s; %s approved it at %s: %s",
		plan.Number, plan.Phase, approval.Approver(plan), plan.ApprovedTime.UTC().Format(time.RFC3339), approval.Describe(plan.Changes))}
}

// notesOfCloud returns what the other conditions of a Cloud say that keeps objects from
// being reconciled.
func notesOfCloud(conditions []metav1.Condition) []string {
	var notes []string
	for _, kind := range []string{pcapi.BrakedCondition, pcapi.InUseCondition} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			notes = append(notes, fmt.Sprintf("%s: %s", kind, c.Message))
		}
	}
	return notes
}

// done reports whether nothing keeps the object of an entry from being ready.
func (l *entry) done() bool { return l.State == stateReady || l.State == stateExists }
