package approval

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// maxChanges bounds the changes of a plan. Those of more kinds are counted without details.
	maxChanges = 64
	// maxDescribed bounds the changes that a message describes.
	maxDescribed = 3
	// maxDetail bounds a detail, in characters.
	maxDetail = 1024
)

// Unnamed returns changes of the members of a group without their names and ids, sorted. Equal
// ones are one change with a count.
func Unnamed(changes []pcapi.PlannedChange) []pcapi.PlannedChange {
	var all []pcapi.PlannedChange
	places := map[string]int{}
	for _, change := range changes {
		n := number(change)
		change.Name, change.ID, change.Count = "", "", 0
		key := fmt.Sprintf("%s %s %q", change.Action, change.IfStopNeeded, change.Details)
		place, known := places[key]
		if known {
			n += number(all[place])
		} else {
			place, all = len(all), append(all, change)
			places[key] = place
		}
		if n > 1 {
			all[place].Count = n
		}
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
	if len(changes) > maxChanges {
		counted := slices.Clone(changes)
		for i := range counted {
			counted[i].Details = nil
		}
		changes = Unnamed(counted)
	}
	changes = slices.Clone(changes)
	for i, change := range changes {
		if slices.ContainsFunc(change.Details, func(d string) bool { return len(d) > maxDetail }) {
			changes[i].Details = slices.Clone(change.Details)
			for j, detail := range changes[i].Details {
				changes[i].Details[j] = strings.ToValidUTF8(detail[:min(len(detail), maxDetail)], "")
			}
		}
	}
	return changes
}

// covers reports whether approved changes include those that are left. A change may have been
// made in part.
func covers(approved, left []pcapi.PlannedChange) bool {
	used := make([]int32, len(approved))
	for _, change := range left {
		n := number(change)
		for i, a := range approved {
			switch {
			case a.Name != change.Name, a.ID != "" && a.ID != change.ID:
			case impliedBy(a, change):
				n = 0
			case a.Action == change.Action && !slices.ContainsFunc(change.Details, func(d string) bool { return !slices.Contains(a.Details, d) }):
				taken := min(n, number(a)-used[i])
				used[i] += taken
				n -= taken
			}
		}
		if n > 0 {
			return false
		}
	}
	return true
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

// describe returns changes as text.
func describe(changes []pcapi.PlannedChange) string {
	var parts []string
	for _, change := range changes[:min(len(changes), maxDescribed)] {
		parts = append(parts, Text(change))
	}
	text := strings.Join(parts, ", ")
	if more := len(changes) - maxDescribed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Text returns a change as text, such as "Update web-1 (cpu 2 to 4)".
func Text(change pcapi.PlannedChange) string {
	text := string(change.Action)
	switch {
	case change.Name != "":
		text += " " + change.Name
	case change.Count > 1:
		text += fmt.Sprintf(" %d members", change.Count)
	default:
		text += " 1 member"
	}
	if len(change.Details) > 0 {
		text += " (" + strings.Join(change.Details, ", ") + ")"
	}
	return text
}
