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

// AlikeID returns the id of a listed server that differs from id only in form, the first of them;
// see cloud.AlikeIDs. Empty if there is none. It compares the ids of all servers.
func (s *Snapshot) AlikeID(id string) string {
	alike, normal := "", cloud.NormalID(id)
	for server := range s.ids.all() {
		if server.id != id && cloud.NormalID(server.id) == normal && (alike == "" || server.id < alike) {
			alike = server.id
		}
	}
	return alike
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
