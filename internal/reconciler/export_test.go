package reconciler

import (
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// FillHistory adds steps of n other objects.
func FillHistory(h *History, n int) {
	for i := range n {
		h.add("VM", types.NamespacedName{Namespace: "others", Name: strconv.Itoa(i)}, PastStep{Step: "Claim"})
	}
}
