package testkit

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HaveCondition succeeds on an object that has the condition with this status and
// reason, of which an empty one matches any, and a message that contains each of parts.
func HaveCondition(kind string, status metav1.ConditionStatus, reason string, parts ...string) types.GomegaMatcher {
	return &conditionMatcher{kind: kind, status: status, reason: reason, parts: parts}
}

// BeReady succeeds on an object whose Ready condition is True.
func BeReady() types.GomegaMatcher { return HaveCondition("Ready", metav1.ConditionTrue, "") }

type conditionMatcher struct {
	kind   string
	status metav1.ConditionStatus
	reason string
	parts  []string
}

var _ gomega.OmegaMatcher = (*conditionMatcher)(nil)

func (m *conditionMatcher) Match(actual any) (bool, error) {
	object, ok := actual.(interface{ GetConditions() []metav1.Condition })
	if !ok {
		return false, fmt.Errorf("HaveCondition needs an object with conditions, not %T", actual)
	}
	found := meta.FindStatusCondition(object.GetConditions(), m.kind)
	return found != nil && (m.status == "" || found.Status == m.status) &&
		(m.reason == "" || found.Reason == m.reason) && containsAll(found.Message, m.parts), nil
}

func (m *conditionMatcher) FailureMessage(actual any) string {
	return m.message(actual, "to have the condition")
}

func (m *conditionMatcher) NegatedFailureMessage(actual any) string {
	return m.message(actual, "not to have the condition")
}

func (m *conditionMatcher) message(actual any, verb string) string {
	var has strings.Builder
	if object, ok := actual.(interface{ GetConditions() []metav1.Condition }); ok {
		for _, c := range object.GetConditions() {
			fmt.Fprintf(&has, "\n  %s=%s %s %q", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return fmt.Sprintf("expected the object %s\n  %s=%s %s %q\nit has%s", verb, m.kind, m.status, m.reason, m.parts, has.String())
}
