// Package brake is the command "kubectl privatecloud brake".
package brake

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// state is what is known of the brake of a Cloud.
type state struct {
	Cloud    string       `json:"cloud"`
	Braked   bool         `json:"braked"`
	Snapshot string       `json:"snapshot,omitempty"`
	Since    *metav1.Time `json:"since,omitempty"`
	Message  string       `json:"message,omitempty"`
	// Missing are the VMs whose servers are missing; nil if they are not known.
	Missing *wire.Missing `json:"missing,omitempty"`
}

// NewCommand returns the command that shows brakes, with the one that releases them.
func NewCommand(env *plugin.Env) *cobra.Command {
	output, flags := plugin.Output{}, operator.Flags{}
	cmd := &cobra.Command{
		Use:   "brake [CLOUD]",
		Short: "Show which Clouds the brake is on for, and release it",
		Long: `Show for each Cloud, or for one, whether its brake is on, since when, and what the
operator reports of the servers that are missing. Of the VMs that have these servers, in
all namespaces, the first ten are listed.

The brake is set when many servers vanish from the listing of a cloud at once. While it
is on, the operator creates and deletes nothing on this cloud.

Rights: get and list clouds.samplecontroller.k8s.io in the cluster; get alone is enough if
a Cloud is named. For the VMs of a brake that is on, also
` + operator.Rights + ` A note says that they are not known without.`,
		Example: `  kubectl privatecloud brake
  kubectl privatecloud brake default -o json
  kubectl privatecloud brake acknowledge default`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: env.CompleteNames("cloud"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Client()
			if err != nil {
				return err
			}
			states, err := read(cmd.Context(), c, args)
			if err != nil {
				return err
			}
			addMissing(cmd.Context(), env, flags, states)
			return output.Print(env.Out, states, func(out io.Writer) error { return show(out, states, time.Now()) })
		},
	}
	output.AddFlag(cmd)
	flags.Bind(cmd.Flags())
	cmd.AddCommand(newAcknowledge(env))
	return cmd
}

// read returns the states of the named Cloud, or of all of them, by name.
func read(ctx context.Context, reader client.Reader, names []string) ([]state, error) {
	states := []state{}
	if len(names) > 0 {
		c := &pcapi.Cloud{}
		if err := reader.Get(ctx, client.ObjectKey{Name: names[0]}, c); err != nil {
			return nil, fmt.Errorf("read Cloud %q: %w", names[0], err)
		}
		return append(states, stateOf(c)), nil
	}
	err := plugin.Each(ctx, reader, &pcapi.CloudList{}, func(c *pcapi.Cloud) error {
		states = append(states, stateOf(c))
		return nil
	})
	return states, err
}

// addMissing asks the operator for the VMs whose servers are missing, as far as it answers.
func addMissing(ctx context.Context, env *plugin.Env, flags operator.Flags, states []state) {
	if !slices.ContainsFunc(states, func(s state) bool { return s.Braked }) {
		return
	}
	unknown := func(err error) {
		fmt.Fprintf(env.ErrOut, "note: which VMs have the missing servers is not known: %v\n", err)
	}
	asked, err := operator.Connect(ctx, env, flags)
	if err != nil {
		unknown(err)
		return
	}
	defer asked.Close()
	for i := range states {
		if !states[i].Braked {
			continue
		}
		c, err := asked.Cloud(ctx, states[i].Cloud)
		if err != nil {
			unknown(err)
			continue
		}
		states[i].Missing = c.Missing
	}
}

func stateOf(c *pcapi.Cloud) state {
	s := state{Cloud: c.Name, Braked: c.Status.BrakedSnapshot != "", Snapshot: c.Status.BrakedSnapshot}
	if condition := meta.FindStatusCondition(c.Status.Conditions, pcapi.BrakedCondition); s.Braked && condition != nil {
		s.Since, s.Message = &condition.LastTransitionTime, condition.Message
	}
	return s
}

// show writes a table, and for each brake that is on what to check.
func show(out io.Writer, states []state, now time.Time) error {
	rows := [][]string{{"CLOUD", "BRAKE", "SINCE", "SNAPSHOT"}}
	for _, s := range states {
		row := []string{s.Cloud, "off", "", ""}
		if s.Braked {
			row = []string{s.Cloud, "on", age(s.Since, now), s.Snapshot}
		}
		rows = append(rows, row)
	}
	if err := plugin.Table(out, rows...); err != nil {
		return err
	}
	for _, s := range states {
		if s.Braked {
			fmt.Fprintf(out, "\n%s", advice(s))
		}
	}
	return nil
}

func age(since *metav1.Time, now time.Time) string {
	if since.IsZero() {
		return plugin.Unknown
	}
	return duration.HumanDuration(now.Sub(since.Time))
}

// advice returns what the operator reports of a brake, and what to check.
func advice(s state) string {
	what, _, _ := strings.Cut(s.Message, ";")
	if what == "" {
		what = "the condition Braked has no message"
	}
	return fmt.Sprintf(`Cloud %[1]s: %[2]s.
Nothing is created or deleted on this cloud. Check before you release the brake:
  - Does the cloud itself show these servers? Is its listing empty or cut off?
  - Do the credentials belong to another tenant? Does the endpoint lead to another cloud?
%[4]sThe servers that VMs of this cluster record:
  kubectl get vms -A -o custom-columns='NAMESPACE:.metadata.namespace,NAME:.metadata.name,ID:.status.vmId,CLOUD:.status.cloud'
Once you know the cause and have corrected it, or the servers are gone for good:
  kubectl privatecloud brake acknowledge %[1]s --snapshot=%[3]s
`, s.Cloud, what, s.Snapshot, missing(s))
}

// missing lists the VMs whose servers are missing; it is empty if they are not known.
func missing(s state) string {
	if s.Missing == nil || s.Missing.Count == 0 {
		return ""
	}
	var text strings.Builder
	text.WriteString("The VMs whose servers the last listing lacks:\n")
	for _, vm := range s.Missing.VMs {
		fmt.Fprintf(&text, "  %s/%s, server %s\n", vm.Namespace, vm.Name, plugin.Plain(vm.ID))
	}
	if more := s.Missing.Count - len(s.Missing.VMs); more > 0 {
		fmt.Fprintf(&text, "  and %d more\n", more)
	}
	return text.String()
}
