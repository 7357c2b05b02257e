package network

import (
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// scope is what one pass knows. Observe fills it, steps add what they learn,
// plan and report read it and nothing else.
type scope struct {
	now time.Time
	// name is what the network is called in the cloud, which is what proves it ours.
	name string
	// cloud is the name of the Cloud that the Network is on or is to be on.
	cloud string
	inv   *inventory.Inventory
	view  inventory.View

	// counted: attached holds the names of the VMs that refer to the Network and
	// exist in the cloud, or may, sorted.
	counted  bool
	attached []string

	// denied says why this Network may not use its Cloud at all; nil if it may.
	denied error
	// moved: spec.cloudRef was edited while a create may have been sent to the Cloud named before, which this scope is about.
	moved bool
	// claimed: a create may have been sent, and fresh: not before this very pass.
	claimed, fresh bool

	// looked: the cloud's networks were looked through, as they were after the
	// last create that may have taken effect.
	looked bool
	// settles is how long such a create may still take effect unseen; 0 when over.
	settles time.Duration
	// network is what the cloud holds for this object; nil when it is not known or gone.
	network *cloud.Network
	// namesakes bear this object's name beside it, oldest first: without a record, all that do.
	namesakes []cloud.Network
	// gone: the cloud itself said that the recorded network does not exist.
	gone bool
	// how the network came to be this object's: a reason of the Created condition.
	how string
}

// caps is what the cloud can do.
func (s *scope) caps() cloud.Capabilities { return s.view.Capabilities }

// usable: the cloud can be asked.
func (s *scope) usable() bool { return s.view.Unavailable == "" }

// safe: a second create makes no second network on this cloud.
func (s *scope) safe() bool {
	return s.caps().Has(cloud.Idempotency) || s.caps().Has(cloud.UniqueNames)
}
