package mockcloud

import (
	"context"
	"slices"
	"time"
)

// listFaults are the list faults that fired for a call.
type listFaults []*ListFault

type listFaultsKey struct{}

func listFaultsFrom(fired []*activeFault) listFaults {
	var d listFaults
	for _, f := range fired {
		if f.List != nil {
			d = append(d, f.List)
		}
	}
	return d
}

func withListFaults(ctx context.Context, d listFaults) context.Context {
	return context.WithValue(ctx, listFaultsKey{}, d)
}

func listFaultsOf(ctx context.Context) listFaults {
	d, _ := ctx.Value(listFaultsKey{}).(listFaults)
	return d
}

func (d listFaults) hides(r *record, now time.Time) bool {
	for _, f := range d {
		switch {
		case f.Empty,
			f.HideYounger > 0 && now.Sub(r.CreatedAt) < durationOf(f.HideYounger),
			f.Drop > 0 && float64(hash(f.Seed, r.ID, 0)%1000) < f.Drop*1000,
			slices.Contains(f.HideIDs, r.ID):
			return true
		}
	}
	return false
}

func (d listFaults) any(is func(*ListFault) bool) bool { return slices.ContainsFunc(d, is) }

func (d listFaults) loops() bool      { return d.any(func(f *ListFault) bool { return f.Loop }) }
func (d listFaults) duplicates() bool { return d.any(func(f *ListFault) bool { return f.Duplicate }) }
func (d listFaults) skips() bool      { return d.any(func(f *ListFault) bool { return f.Skip }) }

// applyToPage applies Skip and Duplicate to a list of a single page, which has no
// page boundary.
func (d listFaults) applyToPage(records []*record) []*record {
	if len(records) == 0 {
		return records
	}
	if d.skips() {
		middle := len(records) / 2
		records = slices.Delete(slices.Clone(records), middle, middle+1)
	}
	if d.duplicates() && len(records) > 0 {
		records = append(records, records[0])
	}
	return records
}
