package cloud

import (
	"maps"
	"slices"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// maxIgnored bounds the ignored fields that are remembered of a Cloud.
const maxIgnored = 32

// memory is what the controller remembers of a Cloud between two reconciles. The
// reconciles of a Cloud do not run concurrently.
type memory struct {
	// ignored are the fields of the cloud's answers that were ignored lately, and
	// when each was last.
	ignored map[string]time.Time
	// missing are servers that exist, as far as is known, although the listing lacked them, by
	// id: since when reads by id have answered that they do not exist; zero if they have not.
	missing map[string]time.Time
	// absent are the recorded servers that the last listing lacked, by id.
	absent map[string]absence
	// orphans are the orphans of the last listing, by id.
	orphans map[string]orphanRecord
	// window is when the first of the absences was reported that count together although
	// they were found one after the other.
	window time.Time
	// used is what the status says of the users of a deleted Cloud, and usedAt is when
	// they were counted for it.
	used   usage
	usedAt time.Time
}

// absence is what is remembered of a recorded server that the listing lacks.
type absence struct {
	// since is when the first listing of this process that lacked it began.
	since time.Time
	// counted is whether its absence was counted at a listing, and acknowledged whether
	// a brake was released since the first listing that lacked it.
	counted, acknowledged bool
}

// orphanRecord is since when a server has been an orphan, and of which object.
type orphanRecord struct {
	uid   string
	since time.Time
}

// memoryOf returns what is remembered of a Cloud.
func (k *kind) memoryOf(c *pcapi.Cloud) *memory {
	m, _ := k.memories.LoadOrStore(c.Name, &memory{
		ignored: map[string]time.Time{}, missing: map[string]time.Time{}, absent: map[string]absence{}, orphans: map[string]orphanRecord{},
	})
	return m.(*memory)
}

// ignoredLately returns the fields that the client ignored since the last listing,
// and those that it ignored within hold before, sorted. Calls that are not made
// between each two listings also ignore fields: without hold, the condition would
// change back and forth.
func (m *memory) ignoredLately(client cloud.Client, begun time.Time, hold time.Duration) []string {
	if reporter, ok := client.(cloud.IgnoredReporter); ok {
		for _, field := range reporter.Ignored() {
			if _, known := m.ignored[field]; known || len(m.ignored) < maxIgnored {
				m.ignored[field] = begun
			}
		}
	}
	maps.DeleteFunc(m.ignored, func(_ string, last time.Time) bool { return begun.Sub(last) > hold })
	return slices.Sorted(maps.Keys(m.ignored))
}

// stillMissing adds servers that the cloud returned by id, drops those for which
// missing does not hold any more, and returns the rest, sorted.
func (m *memory) stillMissing(found []string, missing func(id string) bool) []string {
	maps.DeleteFunc(m.missing, func(id string, _ time.Time) bool { return !missing(id) })
	for _, id := range found {
		if missing(id) {
			m.missing[id] = time.Time{}
		}
	}
	ids := slices.Sorted(maps.Keys(m.missing))
	for _, id := range ids[min(len(ids), maxSample):] {
		delete(m.missing, id)
	}
	return ids[:len(m.missing)]
}

// windowAt returns when the window began to which the absences belong that are found now,
// and whether there is one. A watch that reports an absence opens it: absences within a
// poll interval count together, as they do in a listing. Listings meanwhile, which
// somebody requested, belong to it.
func (m *memory) windowAt(now time.Time, length time.Duration, missing map[string]bool, reported bool) (began time.Time, open bool) {
	open = now.Sub(m.window) < length
	for id := range missing {
		if _, known := m.absent[id]; !open && !known && reported {
			m.window, open = now, true
		}
	}
	return m.window, open
}

// together returns the servers whose absence was counted before, and that are missing
// since the same listing, or the same window, as one of newly: newly may hold servers
// that were too young then. Otherwise servers that were created, or whose absence was
// reported, one after the other would count one after the other, and all would be lost.
// missing are the recorded servers that the listing lacks, and listed reports whether it
// has a server. begun is when the listing was begun, or the window. In a window an absence
// counts although the VM is gone: its group may have replaced it.
func (m *memory) together(newly []string, missing map[string]bool, listed func(id string) bool, begun time.Time) []string {
	maps.DeleteFunc(m.absent, func(id string, a absence) bool {
		return !missing[id] && (listed(id) || !a.counted || !a.since.Equal(m.window) || !begun.Equal(m.window))
	})
	for id := range missing {
		if _, known := m.absent[id]; !known {
			m.absent[id] = absence{since: begun}
		}
	}
	since := map[time.Time]bool{}
	for _, id := range newly {
		since[m.absent[id].since] = true
		m.absent[id] = absence{since: m.absent[id].since}
	}
	var earlier []string
	for id, a := range m.absent {
		if a.counted && !a.acknowledged && since[a.since] {
			earlier = append(earlier, id)
		}
	}
	for _, id := range newly {
		m.absent[id] = absence{since: m.absent[id].since, counted: true}
	}
	slices.Sort(earlier)
	return earlier
}

// acknowledge records that a brake was released: the servers that are missing now do
// not count for another one.
func (m *memory) acknowledge() {
	for id, a := range m.absent {
		a.acknowledged = true
		m.absent[id] = a
	}
}

// removableOrphans returns the orphans that have been orphans of the same object for at
// least the settle time: reads may lag behind the removal of the labels of a server
// that was released. foundAt is when they were found, and begun up to when that has all
// changes, which may be long before.
func (m *memory) removableOrphans(found []cloud.Server, foundAt, begun time.Time, settleTime time.Duration) []cloud.Server {
	orphans := make(map[string]orphanRecord, len(found))
	var removable []cloud.Server
	for _, s := range found {
		o := orphanRecord{uid: s.Labels[inventory.UIDLabel], since: foundAt}
		if last, known := m.orphans[s.ID]; known && last.uid == o.uid {
			o = last
		}
		orphans[s.ID] = o
		if begun.Sub(o.since) >= settleTime {
			removable = append(removable, s)
		}
	}
	m.orphans = orphans
	return removable
}
