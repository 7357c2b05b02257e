package inventory

import (
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// leastUID is how many letters and digits of a UID a label must have to be an altered one.
const leastUID = 8

// AlteredUID reports whether a label is a UID that the cloud has altered: it is cut, in another
// case, or its dashes are other characters or missing.
func AlteredUID(label, uid string) bool {
	kept, whole := plainUID(label), plainUID(uid)
	return label != uid && kept != "" && (kept == whole || len(kept) >= leastUID && strings.HasPrefix(whole, kept))
}

// plainUID returns the letters and digits of a UID in lower case.
func plainUID(uid string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, uid)
}

// beginning returns what a UID and altered forms of it have in common.
func beginning(uid string) string {
	if len(uid) > leastUID { // a UUID has no dash in it
		uid = uid[:leastUID]
	}
	return plainUID(uid)
}

// Altered returns the listed servers whose owner labels are those of the object with this UID in cluster, but
// altered by the cloud, oldest first. It is about to delete none of them.
func (i *Inventory) Altered(uid, cluster string) []cloud.Server {
	i.mu.RLock()
	defer i.mu.RUnlock()
	if i.snapshot == nil {
		return nil
	}
	var found []cloud.Server
	for s := range i.snapshot.owned.with(beginning(uid)) {
		if s.owner.altered(uid, cluster) && s.state != cloud.StateDeleting && i.overlay.recorded(s.id) == nil {
			found = append(found, s.server())
		}
	}
	return sorted(found)
}

// altered reports whether a cloud may have made these owner labels from those of the object with this UID in
// cluster: it has altered one of them, or dropped that of the cluster.
func (o *owner) altered(uid, cluster string) bool {
	sameUID, sameCluster := o.uid == uid, o.cluster == cluster
	if sameUID && sameCluster {
		return false
	}
	return (sameUID || AlteredUID(o.uid, uid)) && (sameCluster || o.cluster == "" || AlteredUID(o.cluster, cluster))
}

// OwnerUID returns the UID in the owner labels of a server, and whether the server is listed.
func (s *Snapshot) OwnerUID(id string) (uid string, listed bool) {
	server := s.ids.get(id)
	if server == nil {
		return "", false
	}
	return ownerUID(server), true
}
