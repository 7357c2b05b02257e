package inventory

import (
	"fmt"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxServers bounds the servers of one listing.
	maxServers = 100_000
	// maxBytes bounds the memory of one listing, as the costs below estimate it. Two
	// listings are in memory while one is made: the last one stays until it is
	// replaced.
	maxBytes = 32 << 20
	// serverCost is the memory of a server beside its texts, in bytes, with its places
	// in the indexes, and ownerCost that of its owner labels.
	serverCost, ownerCost = 224, 72
	// textCost is the memory of a text beside its bytes, sharedCost that of a text in
	// intake.shared.
	textCost, sharedCost = 8, 64
)

// exceeded returns an error if a listing with so many servers, or of so many bytes, is larger than one may be.
func exceeded(servers, bytes int) error {
	tooLarge := func(what string) error {
		return &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: fmt.Sprintf(
			"the cloud lists more than %s, which is more than the operator reads: use credentials that see only the servers of this cluster", what)}
	}
	switch {
	case servers > maxServers:
		return tooLarge(fmt.Sprintf("%d servers", maxServers))
	case bytes > maxBytes:
		return tooLarge(fmt.Sprintf("%d MiB of servers", maxBytes>>20))
	}
	return nil
}

// commonCost is the part of costOf that is about texts which many servers share, and which are
// long. A listing counts them once. Changes count each that a server did not have before, and
// none that go: until the next listing, that is too much rather than too little.
func commonCost(l *listed) int {
	common := shared(l.traits)
	return len(common.tags) + len(common.fault) + len(common.groups) + len(common.allowed)
}

// costOf estimates the memory of a server of which no text is shared, in bytes.
func costOf(l *listed) int {
	cost := serverCost + 5*textCost + len(l.id) + len(l.name) + len(l.host) + len(l.folder) + len(l.interfaces)
	common := shared(l.traits)
	for _, text := range []string{string(shared(l.disks)), shared(l.zone), shared(l.public), string(common.groups), string(common.allowed), common.image.Name, common.image.ID, common.flavor, common.fault, common.root.Type, common.tags} {
		if text != "" {
			cost += textCost + len(text)
		}
	}
	if l.owner != nil {
		cost += ownerCost + 4*textCost + len(l.owner.uid) + len(l.owner.cluster) + len(l.owner.namespace) + len(l.owner.name)
	}
	return cost
}
