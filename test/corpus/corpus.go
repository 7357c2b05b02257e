// Package corpus has the traces that the simulation has recorded, each with a bug that it shows. test/simulation
// replays them, and test/faults plays some of them on a real API server.
package corpus

import (
	"embed"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Folder is where the traces are, in the module.
const Folder = "test/corpus/traces"

//go:embed traces/*.txt
var files embed.FS

// Recording is a trace that is kept in a file, to be replayed by each test.
type Recording struct {
	// Name is that of the file, without its extension.
	Name string
	// Profile and Invariant are names: the invariant is the one that the trace violated when it was
	// recorded. Mutant is the bug that it showed, if that was put into the code.
	Profile, Invariant, Mutant string
	// About says what happens, in a sentence.
	About string
	// End is the state in which the run ends, as Ending returns it.
	End string
	// Trace has the names of decisions, in their order.
	Trace []string
}

// headerLine is a line before the trace: a key, and what it stands for.
type headerLine struct {
	key   string
	value *string
}

func (r *Recording) header() []headerLine {
	return []headerLine{{"profile:", &r.Profile}, {"invariant:", &r.Invariant}, {"mutant:", &r.Mutant}, {"about:", &r.About}, {"end:", &r.End}}
}

// Write stores a recording in a file.
func (r *Recording) Write(file string) error {
	var text strings.Builder
	for _, line := range r.header() {
		text.WriteString(strings.TrimSpace(line.key+" "+*line.value) + "\n")
	}
	text.WriteString("\n" + strings.Join(r.Trace, "\n") + "\n")
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// All returns all recordings, sorted by name. It returns an error if a file has no valid header.
func All() ([]*Recording, error) {
	entries, err := files.ReadDir("traces")
	if err != nil {
		return nil, err
	}
	var all []*Recording
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("traces", entry.Name()))
		if err != nil {
			return nil, err
		}
		r, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		r.Name = strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))
		all = append(all, r)
	}
	return all, nil
}

func parse(text string) (*Recording, error) {
	head, trace, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	r := &Recording{Trace: strings.Split(trace, "\n")}
	lines := strings.Split(head, "\n")
	for i, line := range r.header() {
		if i >= len(lines) || !strings.HasPrefix(lines[i], line.key) {
			return nil, fmt.Errorf("line %d has to begin with %q", i+1, line.key)
		}
		*line.value = strings.TrimSpace(strings.TrimPrefix(lines[i], line.key))
	}
	return r, nil
}

// object is an object of the operator.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// Ending returns the state of VMs, VmGroups and Networks, and how many servers and networks the cloud has. Of an
// object it has the reason why it is not Ready. Members of a group are left out.
func Ending(objects []client.Object, servers, networks int) string {
	var parts []string
	for _, o := range objects {
		if metav1.GetControllerOf(o) != nil {
			continue
		}
		reason := "Ready"
		if c := meta.FindStatusCondition(o.(object).GetConditions(), pcapi.ReadyCondition); c == nil {
			reason = "no condition"
		} else if c.Status != metav1.ConditionTrue {
			reason = c.Reason
		}
		kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1.")
		parts = append(parts, fmt.Sprintf("%s %s: %s", kind, o.GetName(), reason))
	}
	slices.Sort(parts)
	return strings.Join(append(parts, fmt.Sprintf("servers: %d", servers), fmt.Sprintf("networks: %d", networks)), "; ")
}
