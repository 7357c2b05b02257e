package mockcloud

import (
	"context"
	"slices"
	"time"
)

// distortion is what the faults that fired do to a LIST.
type distortion []*ListFault

type distortionKey struct{}

func distortionFrom(fired []*activeFault) distortion {
	var d distortion
	for _, f := range fired {
		if f.List != nil {
			d = append(d, f.List)
		}
	}
	return d
}

func withDistortion(ctx context.Context, d distortion) context.Context {
	return context.WithValue(ctx, distortionKey{}, d)
}

func distortionOf(ctx context.Context) distortion {
	d, _ := ctx.Value(distortionKey{}).(distortion)
	return d
}

func (d distortion) hides(r *record, now time.Time) bool {
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

func (d distortion) any(is func(*ListFault) bool) bool { return slices.ContainsFunc(d, is) }

func (d distortion) loops() bool      { return d.any(func(f *ListFault) bool { return f.Loop }) }
func (d distortion) duplicates() bool { return d.any(func(f *ListFault) bool { return f.Duplicate }) }
func (d distortion) skips() bool      { return d.any(func(f *ListFault) bool { return f.Skip }) }

// bend distorts a list that fits on one page, where no page boundary can be
// got wrong.
func (d distortion) bend(records []*record) []*record {
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
