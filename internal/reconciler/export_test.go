package reconciler

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
)

// LimitEventsAlone is LimitEvents with budgets of its own.
func LimitEventsAlone(to events.EventRecorder) events.EventRecorder {
	return &limitedRecorder{EventRecorder: to, budgets: newEventBudgets()}
}

// FillHistory adds steps of n other objects.
func FillHistory(h *History, n int) {
	for i := range n {
		h.add("VM", types.NamespacedName{Namespace: "others", Name: strconv.Itoa(i)}, PastStep{Step: "Claim"})
	}
}
