package vm

import (
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// proof is what makes a server ours when its id is not on record.
type proof int

const (
	// noProof: the name is the same, and names prove nothing on this cloud.
	noProof proof = iota
	// nameProof: names are unique, and this one was free when we claimed it.
	nameProof
	// labelProof: the server carries this object's UID, or we made it ourselves just now.
	labelProof
)

// scope is what one pass knows. Observe fills it, steps add what they learn,
// plan and report read it and nothing else.
type scope struct {
	now time.Time
	// cloud is the name of the Cloud that the VM is on or is to be on.
	cloud string
	inv   *inventory.Inventory
	view  inventory.View

	// denied says why this VM may not use its Cloud at all; nil if it may.
	denied error
	// cloudless: the Cloud object does not exist.
	cloudless bool
	// moved: spec.cloudRef was edited while a create may have been sent to the Cloud named before, which this scope is about.
	moved bool

	// server is what the cloud holds for this VM; nil when it is not known or gone.
	server *cloud.Server
	// gone: the cloud itself said that the recorded or imported server does not exist.
	gone bool
	// owned: the server's owner labels name this VM, or the cloud has no labels.
	owned bool
	// foreign: the server's owner labels name another cluster.
	foreign bool
	// duplicates carry this VM's owner labels beside the server that is kept.
	duplicates []cloud.Server
	// how the server came to be this VM's: a reason of the Created condition.
	how string
	// refresh is when the server's use is to be asked for again; 0 where the listing brings it.
	refresh time.Duration

	// claimed is the name that was checked and free when the claim was stored;
	// empty without a claim. A claim means that a create may have been sent.
	claimed string
	// fresh: the claim was stored by this very pass, so nothing was sent before it.
	fresh bool
	// horizon is the earliest begin of a listing that tells: that of the last
	// create that may have taken effect, and the end of its settle time once it is over.
	horizon time.Time
	// looked: a complete listing begun at the horizon or later was searched for this VM's server.
	looked bool
	// settles is how long such a create may still take effect unseen; 0 when over.
	settles time.Duration
	// candidates are what the search found, oldest first, and proof says what they are worth.
	candidates []cloud.Server
	proof      proof

	// checked: the cloud allowed the name in this pass, or refused it lately (nameErr).
	checked bool
	nameErr error
	// detached says why the Network that the spec names cannot take the VM; networkID is its id if it can.
	detached  error
	networkID string

	// rival is another VM that has the name, or the server, on a cloud where one excludes the other.
	rival error
}

// caps is what the cloud can do.
func (s *scope) caps() cloud.Capabilities { return s.view.Capabilities }
