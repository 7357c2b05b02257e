package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// answerChoices returns with which servers of somebody else the cloud answers creates, which make nothing then. It does
// so on shared clouds, where the operator can know that the answer is wrong.
func (w *world) answerChoices() []choice {
	if !w.profile.shared {
		return nil
	}
	var all []choice
	for _, c := range w.calls.in(sent) {
		for _, id := range slices.Sorted(maps.Keys(w.foreign)) {
			if !c.creates() || !w.knowable(c, w.foreign[id]) {
				continue
			}
			all = append(all, choice{class: failCreate, name: fmt.Sprintf("answer with %s: %s", id, c), changing: true, do: func() {
				w.doubtful[strings.TrimPrefix(c.name, createPrefix)] = true
				w.cloud.AnswerCreateWith(id)
				w.arrive(c)
				w.cloud.AnswerCreateWith("")
			}})
		}
	}
	return all
}

// knowable reports whether the operator can know that a create did not make a server. With labels, it has none, and
// another name. Without, it has the name, and the process had listed it before it sent the create.
func (w *world) knowable(c *call, s cloud.Server) bool {
	alike := cloud.AlikeNames(s.Name, strings.TrimPrefix(c.name, createPrefix))
	if w.profile.capabilities.Has(cloud.Labels) {
		return len(s.Labels) == 0 && !alike
	}
	return alike && c.listing.After(s.CreatedAt)
}

// lastListing returns when the last listing of the Cloud that creates use was begun, zero if there is none.
func (p *process) lastListing() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listings[pcapi.DefaultCloudName]
}
