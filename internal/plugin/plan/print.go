package plan

import (
	"fmt"
	"io"
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
)

// maxNamed bounds the resources that one line names.
const maxNamed = 5

// verbs are the words for actions in the output.
var verbs = map[pcapi.PlannedAction]string{
	pcapi.PlannedCreate: "create", pcapi.PlannedImport: "import", pcapi.PlannedUpdate: "change", pcapi.PlannedPowerOn: "power on", pcapi.PlannedPowerOff: "power off",
	pcapi.PlannedSuspend: "suspend", pcapi.PlannedResume: "resume", pcapi.PlannedRestart: "restart", pcapi.PlannedRevert: "revert", pcapi.PlannedRelease: "release",
	pcapi.PlannedDelete: "delete",
}

// print writes the plan for people.
func (p *Plan) print(out io.Writer) error {
	counts, unchanged := map[pcapi.PlannedAction]int{}, 0
	waiting := 0
	for _, o := range p.Objects {
		for _, change := range o.Changes {
			counts[change.Action]++
		}
		if o.Waits != "" {
			waiting++
		}
		if len(o.Changes) == 0 && o.Waits == "" && o.Assumed == "" && o.Error == "" {
			unchanged++
			continue
		}
		fmt.Fprintf(out, "%s %s\n", o.Kind, plugin.Plain(o.named()))
		for _, line := range lines(o.Changes) {
			fmt.Fprintf(out, "  %s\n", plugin.Plain(line))
		}
		for _, note := range []struct{ label, text string }{{"waits", o.Waits}, {"note", o.Assumed}, {"error", o.Error}} {
			if note.text != "" {
				fmt.Fprintf(out, "  %s: %s\n", note.label, plugin.Plain(note.text))
			}
		}
	}
	changes := 0
	for action, n := range counts {
		if action != pcapi.PlannedCreate && action != pcapi.PlannedDelete {
			changes += n
		}
	}
	fmt.Fprintf(out, "Plan: %d to create, %d to change, %d to delete in the cloud; objects unchanged: %d, waiting: %d.\n",
		counts[pcapi.PlannedCreate], changes, counts[pcapi.PlannedDelete], unchanged, waiting)
	return nil
}

// listed returns names, or one and how often it stands there.
func listed(names []string) string {
	if len(names) > 1 && names[0] == names[len(names)-1] {
		return fmt.Sprintf("%d %s", len(names), names[0])
	}
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// lines returns a line for each change. Equal changes of several resources, as a group makes
// them, are one line.
func lines(changes []pcapi.PlannedChange) []string {
	type like struct {
		action       pcapi.PlannedAction
		details      string
		ifStopNeeded pcapi.StopNeeded
	}
	var kinds []like
	named := map[like][]string{}
	for _, change := range changes {
		k := like{change.Action, strings.Join(change.Details, ", "), change.IfStopNeeded}
		if !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
		name := change.Name
		if change.ID != "" {
			name += " (" + change.ID + ")"
		}
		named[k] = append(named[k], name)
	}
	var text []string
	for _, k := range kinds {
		line := verbs[k.action] + " " + listed(named[k])
		if k.details != "" {
			line += ": " + k.details
		}
		switch k.ifStopNeeded {
		case pcapi.StopNeededRestart:
			line += "; stopped and started if the cloud changes it only while it is off"
		case pcapi.StopNeededWait:
			line += "; waits until somebody stops it if the cloud changes it only while it is off"
		}
		text = append(text, line)
	}
	return text
}
