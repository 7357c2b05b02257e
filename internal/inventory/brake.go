package inventory

import (
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// Missing returns the known IDs that the snapshot lacks, sorted.
func (s *Snapshot) Missing(known []string) []string {
	var missing []string
	for _, id := range known {
		if !s.Has(id) {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return missing
}

// Alike returns how many of the ids, which the snapshot lacks, differ only in form from that of a listed server,
// the first of them, and the id that is listed instead; see cloud.AlikeIDs. It reads the ids of all servers once.
func (s *Snapshot) Alike(missing []string) (count int, id, listed string) {
	normal := make(map[string]string, len(missing))
	for _, id := range missing {
		normal[cloud.NormalID(id)] = id
	}
	for server := range s.ids.all() {
		wanted, found := normal[cloud.NormalID(server.id)]
		if !found {
			continue
		}
		count++
		if id == "" || wanted < id || wanted == id && server.id < listed {
			id, listed = wanted, server.id
		}
	}
	return count, id, listed
}

// Implausible reports whether so many of the known servers vanished at once that
// the listing is not trusted and the brake is to be set: at least two, and a
// quarter of all or fifty.
func Implausible(gone, known int) bool {
	return gone >= 2 && (gone*4 >= known || gone >= 50)
}

// Sample returns at most n of the IDs, evenly spread, in their order.
func Sample(ids []string, n int) []string {
	if len(ids) <= n {
		return slices.Clone(ids)
	}
	sample := make([]string, 0, n)
	for i := range n {
		sample = append(sample, ids[i*len(ids)/n])
	}
	return sample
}
