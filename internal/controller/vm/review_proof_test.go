package vm

import (
	"testing"
	"time"

	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// A listing that began before any DELETE was answered proves nothing, also if it lacks
// the server, as one that is capped does.
func TestListingBegunBeforeDeleteDoesNotProveThatServerIsGone(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith())
	h.mustReconcile()
	h.cloud.Hide("s1")
	h.later(settleTime + time.Minute)
	h.mustReconcile() // GET returns it
	h.later(pollInterval)
	h.remove()
	h.cloud.FailAlways(cloudfake.DeleteServer, errUnproven, false) // a gateway answers
	h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
	h.advance(time.Second)
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatal("the object was released by a listing that began before the DELETE, and its server exists")
	}
	h.showReads("s1")
	h.cloud.Heal(cloudfake.DeleteServer)
	for range 3 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantServers()
	h.wantGone()
}
