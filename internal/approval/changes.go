package approval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// maxChanges bounds the changes of a plan. Those of more kinds are shown without details.
	maxChanges = 64
	// maxMembers bounds the names of members in a plan, and maxNames all of them, in bytes.
	maxMembers, maxNames = 10_000, 700 << 10
	// maxDescribed bounds the changes that a message describes, and the members that it names for each.
	maxDescribed = 3
	// maxDetails bounds the details of a change, and maxDetail each of them, in bytes.
	maxDetails, maxDetail = 64, 1024
	// maxAllDetails bounds the details of all changes of a plan, in bytes. With more, they are shown without details.
	maxAllDetails = 256 << 10
	// maxText bounds a description of changes, in bytes.
	maxText = 700
)

// OfMember returns changes in the plan of a VmGroup, which are those of one member. The name is empty for a
// member that does not exist yet.
func OfMember(name string, changes []pcapi.PlannedChange) []pcapi.PlannedChange {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Name, changes[i].ID = "", ""
		if name != "" && changes[i].Action != pcapi.PlannedCreate {
			changes[i].Members = []string{name}
		}
	}
	return changes
}

// Merged returns changes of the members of a group, sorted. Equal ones are one change with a count and
// the names of the members.
func Merged(changes []pcapi.PlannedChange) []pcapi.PlannedChange {
	var all []pcapi.PlannedChange
	places := map[string]int{}
	for _, change := range changes {
		n := number(change)
		key := fmt.Sprintf("%s %s %q", change.Action, change.IfStopNeeded, change.Details)
		place, known := places[key]
		if known {
			n += number(all[place])
			all[place].Members = append(all[place].Members, change.Members...)
		} else {
			change.Members = slices.Clone(change.Members)
			place, all = len(all), append(all, change)
			places[key] = place
		}
		if all[place].Count = 0; n > 1 {
			all[place].Count = n
		}
	}
	for i := range all {
		slices.Sort(all[i].Members)
	}
	slices.SortFunc(all, func(a, b pcapi.PlannedChange) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.IfStopNeeded, b.IfStopNeeded), slices.Compare(a.Details, b.Details))
	})
	return all
}

// number returns how many resources a change is about.
func number(change pcapi.PlannedChange) int32 { return max(1, change.Count) }

// bounded returns changes as the status can hold them.
func bounded(changes []pcapi.PlannedChange) []pcapi.PlannedChange {
	changes = slices.Clone(changes)
	size := 0
	for i := range changes {
		changes[i].Details = boundedDetails(changes[i].Details)
		for _, detail := range changes[i].Details {
			size += len(detail)
		}
	}
	if len(changes) > maxChanges || size > maxAllDetails {
		changes = withoutDetails(changes)
	}
	room, bytes := maxMembers, maxNames
	for i := range changes {
		named := 0
		for _, name := range changes[i].Members[:min(len(changes[i].Members), room)] {
			if bytes -= len(name); bytes < 0 {
				room = 0
				break
			}
			named++
		}
		changes[i].Members = changes[i].Members[:named]
		room = max(0, room-named)
	}
	return changes
}

// withoutDetails returns one change for each action and for what happens if it needs a stop, with the hash of what is
// left out: a plan that differs in that is another plan.
func withoutDetails(changes []pcapi.PlannedChange) []pcapi.PlannedChange {
	left := map[string][]string{}
	kind := func(change pcapi.PlannedChange) string { return fmt.Sprint(change.Action, " ", change.IfStopNeeded) }
	for i, change := range changes {
		left[kind(change)] = append(left[kind(change)], fmt.Sprintf("%q", []any{change.Name, change.ID, change.Count, change.Members, change.Details, change.IfStopNeeded}))
		changes[i].Name, changes[i].ID, changes[i].Details = "", "", nil
	}
	changes = Merged(changes)
	for i, change := range changes {
		changes[i].Details = []string{fmt.Sprintf("%d different changes, with the SHA-256 hash %s", len(left[kind(change)]), digest(strings.Join(left[kind(change)], "\n")))}
	}
	return changes
}

// boundedDetails returns details as the status can hold them. Those that are too many or too long are cut, and
// the hash of them all shows in their place, so that a plan with others is another plan.
func boundedDetails(details []string) []string {
	if len(details) > maxDetails {
		rest := details[maxDetails-1:]
		details = append(slices.Clone(details[:maxDetails-1]), fmt.Sprintf("%d more, with the SHA-256 hash %s", len(rest), digest(fmt.Sprintf("%q", rest))))
	}
	if !slices.ContainsFunc(details, func(d string) bool { return len(d) > maxDetail }) {
		return details
	}
	details = slices.Clone(details)
	for i, detail := range details {
		if len(detail) > maxDetail {
			end := " ... with the SHA-256 hash " + digest(detail)
			details[i] = reconciler.Cut(detail, maxDetail-len(end)) + end
		}
	}
	return details
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// covers reports whether approved changes include those that are left. A change may have been
// made in part.
func covers(approved, left []pcapi.PlannedChange) bool {
	rest := make([]remainder, len(approved))
	for i, a := range approved {
		rest[i] = remainderOf(a)
	}
	for _, change := range left {
		open := remainderOf(change)
		for i, a := range approved {
			switch {
			case a.Name != change.Name, a.ID != "" && a.ID != change.ID:
			case impliedBy(a, change):
				all := remainderOf(a)
				open.take(&all, true)
			case a.Action == change.Action && coversStop(a, change) && !slices.ContainsFunc(change.Details, func(d string) bool { return !slices.Contains(a.Details, d) }):
				open.take(&rest[i], false)
			}
		}
		if open.unnamed > 0 || len(open.named) > 0 {
			return false
		}
	}
	return true
}

// coversStop reports whether a change stops no server that the approved one leaves running.
func coversStop(approved, change pcapi.PlannedChange) bool {
	return change.IfStopNeeded != pcapi.StopNeededRestart || approved.IfStopNeeded == pcapi.StopNeededRestart
}

// remainder is what of a change is not matched with another one.
type remainder struct {
	// named is how often each member is changed, and unnamed how many changes name nobody.
	named   map[string]int
	unnamed int32
}

func remainderOf(change pcapi.PlannedChange) remainder {
	r := remainder{named: map[string]int{}, unnamed: max(0, number(change)-int32(len(change.Members)))} //nolint:gosec // at most maxMembers
	for _, name := range change.Members {
		r.named[name]++
	}
	return r
}

// take removes from r what approved has, and from approved what r takes. An approved change that implies others
// implies any number of them for its members.
func (r *remainder) take(approved *remainder, implied bool) {
	for name, n := range r.named {
		taken := min(n, approved.named[name])
		if implied && taken > 0 {
			taken = n
		}
		approved.named[name] -= taken
		if r.named[name] -= taken; r.named[name] == 0 {
			delete(r.named, name)
		}
	}
	if implied {
		if approved.unnamed > 0 {
			r.unnamed = 0
			clear(r.named)
		}
		return
	}
	for name, n := range r.named { // a plan does not name more than maxMembers
		taken := min(int32(n), approved.unnamed) //nolint:gosec // at most maxMembers
		approved.unnamed -= taken
		if r.named[name] -= int(taken); r.named[name] == 0 {
			delete(r.named, name)
		}
	}
	taken := min(r.unnamed, approved.unnamed)
	approved.unnamed -= taken
	r.unnamed -= taken
}

// impliedBy reports whether a change is part of an approved one: a server is stopped for a
// restart, and started after it, after a revert, and after somebody stopped it for a change.
func impliedBy(approved, change pcapi.PlannedChange) bool {
	restart := approved.Action == pcapi.PlannedRestart || approved.IfStopNeeded == pcapi.StopNeededRestart
	switch change.Action {
	case pcapi.PlannedPowerOff:
		return restart
	case pcapi.PlannedPowerOn:
		return restart || approved.IfStopNeeded == pcapi.StopNeededWait || approved.Action == pcapi.PlannedRevert
	default:
		return false
	}
}

// Describe returns the first three changes as text, of at most 700 bytes.
func Describe(changes []pcapi.PlannedChange) string {
	var parts []string
	for _, change := range changes[:min(len(changes), maxDescribed)] {
		parts = append(parts, Text(change))
	}
	text := strings.Join(parts, ", ")
	if more := len(changes) - maxDescribed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	const end = " ..."
	if len(text) > maxText {
		text = reconciler.Cut(text, maxText-len(end)) + end
	}
	return text
}

// Text returns a change as text, such as "Update web-1 (cpu 2 to 4)".
func Text(change pcapi.PlannedChange) string {
	text := string(change.Action)
	switch {
	case change.Name != "":
		text += " " + Quoted(change.Name)
	case len(change.Members) > 0:
		text += " " + members(change)
	default:
		text += " " + count(number(change), "member")
	}
	if len(change.Details) > 0 {
		text += " (" + strings.Join(change.Details, ", ") + ")"
	}
	return text
}

// members returns the first members of a change, and how many there are beside them.
func members(change pcapi.PlannedChange) string {
	named := change.Members[:min(len(change.Members), maxDescribed)]
	text := strings.Join(named, " and ")
	if more := number(change) - int32(len(named)); more > 0 { //nolint:gosec // at most maxDescribed
		text = strings.Join(named, ", ") + fmt.Sprintf(" and %s", count(more, "more member"))
	} else if len(named) > 2 {
		text = strings.Join(named[:len(named)-1], ", ") + " and " + named[len(named)-1]
	}
	return text
}

func count(n int32, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Quoted returns a text that users or the cloud chose as a plan shows it: in quotes, unless it is one word of
// letters, digits and the characters of names and paths, so that it cannot be read as another part of the plan.
func Quoted(text string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-._/:@+=", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	return strconv.Quote(text)
}
