package inventory

import "strings"

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

// altered reports whether a cloud may have made these owner labels from those of the object with this UID in
// cluster: it has altered one of them, or dropped that of the cluster.
func (o *owner) altered(uid, cluster string) bool {
	sameUID, sameCluster := o.uid == uid, o.cluster == cluster
	if sameUID && sameCluster {
		return false
	}
	return (sameUID || AlteredUID(o.uid, uid)) && (sameCluster || o.cluster == "" || AlteredUID(o.cluster, cluster))
}
