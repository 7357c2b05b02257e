package inventory

import "slices"

// Vanished returns those of the known ids that the snapshot lacks, sorted, and
// whether they are so many that no ordinary cause explains them: at least two,
// and a quarter of all or fifty.
func Vanished(known []string, snap *Snapshot) (gone []string, brake bool) {
	for _, id := range known {
		if !snap.Has(id) {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	n := len(gone)
	return gone, n >= 2 && (n*4 >= len(known) || n >= 50)
}
