package inventory

import "slices"

// Vanished returns the known IDs that the snapshot lacks, sorted, and reports
// whether so many vanished at once that the snapshot is not trusted and the
// brake is to be set: at least two, and a quarter of all or fifty.
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
