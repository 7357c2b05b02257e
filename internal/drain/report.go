package drain

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// shown is how many objects of each kind are listed at the end, oldest first.
	shown = 20
	// repeatAfter is when progress that did not change is reported again.
	repeatAfter = 30 * time.Second
)

// waiting is an object that still exists, since when, and why.
type waiting struct {
	name  string
	since time.Time
	why   string
}

// remains are the objects that still exist, by the names of their kinds.
type remains map[string][]waiting

func (r remains) count() (sum int) {
	for _, objects := range r {
		sum += len(objects)
	}
	return sum
}

// String counts the objects of each kind.
func (r remains) String() string {
	var counts []string
	for _, k := range kinds {
		if n := len(r[k.name]); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, k.name))
		}
	}
	return strings.Join(counts, ", ")
}

// plan writes what a drain would do.
func (d *drain) plan(ctx context.Context) error {
	s, err := newScope(ctx, d.client, d.Options)
	if err != nil {
		return err
	}
	found := false
	for _, k := range kinds {
		counts, stay := map[string]int{}, map[string]int{}
		err := s.each(ctx, k, func(o object) error {
			if d.stays(o) {
				stay[o.GetNamespace()]++
			} else {
				counts[o.GetNamespace()]++
			}
			return nil
		})
		if err != nil {
			return err
		}
		found = found || len(counts)+len(stay) > 0
		d.planOf(k, string(d.Policy), counts)
		d.planOf(k, "keep", stay)
	}
	if !found {
		fmt.Fprintln(d.out, "Nothing is left.")
		return nil
	}
	fmt.Fprintln(d.out, "Nothing was changed. To do this, run it again with --yes.")
	return nil
}

// planOf writes what a drain would do with the objects of a kind, by namespace.
func (d *drain) planOf(k kind, action string, counts map[string]int) {
	for _, namespace := range slices.Sorted(maps.Keys(counts)) {
		where := ""
		if namespace != "" {
			where = " in namespace " + namespace
		}
		fmt.Fprintf(d.out, "%s: %d %s%s\n", action, counts[namespace], k.name, where)
	}
}

// waitingFor describes an object that still exists; kept is why its deletion is not
// requested yet, or "".
func waitingFor(o object, kept string) waiting {
	w := waiting{name: client.ObjectKeyFromObject(o).String(), since: o.GetCreationTimestamp().Time, why: why(o, kept)}
	w.name = strings.TrimPrefix(w.name, "/")
	if deleted := o.GetDeletionTimestamp(); deleted != nil {
		w.since = deleted.Time
	}
	return w
}

func why(o object, kept string) string {
	if pcapi.Paused(o) {
		return "paused: remove the annotation " + pcapi.PausedAnnotation
	}
	if o.GetDeletionTimestamp().IsZero() && kept != "" {
		return kept
	}
	for _, wanted := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{pcapi.StalledCondition, metav1.ConditionTrue},
		{pcapi.DeletingCondition, metav1.ConditionTrue},
		{pcapi.ReadyCondition, metav1.ConditionFalse},
	} {
		c := meta.FindStatusCondition(o.GetConditions(), wanted.condition)
		if c != nil && c.Status == wanted.status {
			return fmt.Sprintf("%s, %s: %s", c.Type, c.Reason, c.Message)
		}
	}
	return fmt.Sprintf("waits for the finalizers %v: check that the operator runs, and kubectl get clouds", o.GetFinalizers())
}

// progress writes the counts when they change, and from time to time.
type progress struct {
	out     io.Writer
	start   time.Time
	written time.Time
	last    remains
}

func newProgress(out io.Writer) *progress { return &progress{out: out, start: time.Now()} }

func (p *progress) report(left remains) {
	changed := left.String() != p.last.String()
	p.last = left
	if !changed && time.Since(p.written) < repeatAfter {
		return
	}
	p.written = time.Now()
	fmt.Fprintf(p.out, "%s: left: %s\n", time.Since(p.start).Round(time.Second), left)
	for _, k := range kinds {
		if objects := left[k.name]; len(objects) > 0 {
			oldest := slices.MinFunc(objects, older)
			fmt.Fprintf(p.out, "  oldest of %s: %s (%s)\n", k.name, oldest.name, oldest.why)
		}
	}
}

// unfinished writes what is left, and returns the error of the drain. err is that of the
// last round.
func (p *progress) unfinished(interrupted bool, err error) error {
	reason := "The timeout is over."
	if interrupted {
		reason = "The drain was interrupted."
	}
	if p.last == nil {
		fmt.Fprintln(p.out, reason, "What is left is not known, since the objects could not all be listed in this time: run it again with a longer --timeout.")
	} else {
		fmt.Fprintln(p.out, reason, "When last listed, there were left:")
	}
	for _, k := range kinds {
		objects := slices.SortedFunc(slices.Values(p.last[k.name]), older)
		for i, w := range objects {
			if i == shown {
				fmt.Fprintf(p.out, "  and %d more %s\n", len(objects)-shown, k.name)
				break
			}
			fmt.Fprintf(p.out, "  %s %s since %s: %s\n", k.name, w.name, w.since.UTC().Format(time.RFC3339), w.why)
		}
	}
	if err != nil {
		return fmt.Errorf("%w; the last error: %w", errLeft, err)
	}
	return errLeft
}

func older(a, b waiting) int { return a.since.Compare(b.since) }
