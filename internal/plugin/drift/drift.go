// Package drift is the command "kubectl privatecloud drift".
//
//	drift.go   the command, and its rows
//	reader.go  a client that reads each Cloud, namespace and class once
package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller/network"
	"github.com/privatecloud/operator/internal/controller/vm"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Row is an object whose resource is not as the spec says.
type Row struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Differences are what the operator would change, or what it cannot correct.
	Differences []string `json:"differences"`
	// Since is when the object was last as the spec says; zero if it is not known.
	Since time.Time `json:"since,omitzero"`
	// Because is why the difference is there at the moment.
	Because string `json:"because"`
}

// uncorrected are the reasons of Ready for differences that the operator does not correct.
var uncorrected = []string{pcapi.DriftReason, pcapi.NeedsRestartReason, pcapi.UnsupportedReason}

type command struct {
	env    *plugin.Env
	output plugin.Output
	all    bool
}

// NewCommand returns the command.
func NewCommand(env *plugin.Env) *cobra.Command {
	c := command{env: env}
	cmd := &cobra.Command{
		Use:   "drift",
		Short: "List VMs and Networks that are not in the cloud as their specs say",
		Long: `List VMs and Networks whose server or network is not as the spec says, as far as the status shows: what differs, since
when, and why the operator has not corrected it. What is lost, because its server or network is gone from the cloud, and
what cannot be compared is listed, too. A VM that is only observed or paused is compared as if it were not. The status
of a paused object shows its server as it was before: what is changed in the cloud meanwhile is not seen.

The exit code is 0 if nothing differs, 2 if something does or is lost, and 1 after an error.

Rights: list of vms and networks in the namespace, or in the cluster with --all-namespaces. Get of Clouds, VMClasses
and namespaces is used where it is allowed; a note says what is assumed without.`,
		Example: `  # In the namespace of the context
  kubectl privatecloud drift

  # In all namespaces, for a pipeline
  kubectl privatecloud drift -A -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	c.output.AddFlag(cmd)
	cmd.Flags().BoolVarP(&c.all, "all-namespaces", "A", false, "in all namespaces")
	return cmd
}

func (c *command) run(ctx context.Context) error {
	api, err := c.env.Client()
	if err != nil {
		return err
	}
	namespace := ""
	if !c.all {
		if namespace, err = c.env.Namespace(); err != nil {
			return err
		}
	}
	rows, unreadable, err := find(ctx, newReader(api), namespace)
	if err != nil {
		return err
	}
	if unreadable != nil {
		fmt.Fprintf(c.env.ErrOut, "note: what cannot be read is taken to be available, and able to do what the specs ask for: %v\n", unreadable)
	}
	err = c.output.Print(c.env.Out, map[string]any{"objects": rows}, func(out io.Writer) error { return table(out, rows) })
	if err == nil && len(rows) > 0 {
		return &plugin.ExitError{Code: plugin.ExitChanges}
	}
	return err
}

// find returns the rows of a namespace, or of all if it is empty. Unreadable is the first of
// the errors of a user who may not read a Cloud.
func find(ctx context.Context, reader client.Client, namespace string) (rows []Row, unreadable, err error) {
	rows = []Row{}
	vms := vm.NewForecaster(reader, "", time.Now)
	err = plugin.Each(ctx, reader, &pcapi.VMList{}, func(o *pcapi.VM) error {
		if o.Status.VMID == "" || !o.DeletionTimestamp.IsZero() {
			return nil
		}
		if row, lost := lostRow("VM", o); lost {
			rows = append(rows, row)
			return nil
		}
		managed := o.DeepCopy()
		managed.Spec.ManagementPolicy = pcapi.ManagementPolicyManaged
		forecast, err := vms.Forecast(ctx, managed, managed)
		because := ""
		if o.Spec.ManagementPolicy == pcapi.ManagementPolicyObserveOnly {
			because = "spec.managementPolicy is ObserveOnly"
		}
		unreadable = cmp.Or(unreadable, forecast.Unreadable)
		rows = appendRow(rows, "VM", o, forecast, because)
		return err
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, nil, err
	}
	networks := network.NewForecaster(reader, "", time.Now)
	err = plugin.Each(ctx, reader, &pcapi.NetworkList{}, func(o *pcapi.Network) error {
		if o.Status.NetworkID == "" || !o.DeletionTimestamp.IsZero() {
			return nil
		}
		if row, lost := lostRow("Network", o); lost {
			rows = append(rows, row)
			return nil
		}
		forecast, err := networks.Forecast(ctx, o)
		unreadable = cmp.Or(unreadable, forecast.Unreadable)
		rows = appendRow(rows, "Network", o, forecast, "")
		return err
	}, client.InNamespace(namespace))
	return rows, unreadable, err
}

// lostRow returns the row of an object whose server or network is gone from the cloud. lost is
// false for others.
func lostRow(kind string, o reconciler.Object) (row Row, lost bool) {
	created := meta.FindStatusCondition(o.GetConditions(), pcapi.CreatedCondition)
	if created == nil || created.Reason != pcapi.LostReason {
		return Row{}, false
	}
	return Row{
		Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Differences: []string{pcapi.LostReason},
		Since: created.LastTransitionTime.Time, Because: created.Message,
	}, true
}

// appendRow appends the row of an object if something differs.
func appendRow(rows []Row, kind string, o reconciler.Object, forecast external.Forecasted, because string) []Row {
	row := Row{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Because: because}
	for _, change := range forecast.Changes {
		row.Differences = append(row.Differences, change.Details...)
		if len(change.Details) == 0 {
			row.Differences = append(row.Differences, string(change.Action))
		}
	}
	ready := meta.FindStatusCondition(o.GetConditions(), pcapi.ReadyCondition)
	if ready != nil && ready.Status != "True" {
		row.Since = ready.LastTransitionTime.Time
		if row.Because == "" {
			row.Because = ready.Reason + ": " + ready.Message
		}
		if len(row.Differences) == 0 && slices.Contains(uncorrected, ready.Reason) {
			row.Differences = []string{ready.Reason}
		}
	}
	if pcapi.Paused(o) {
		row.Because = "the object is paused"
	}
	if len(row.Differences) == 0 {
		row.explain(forecast.Outcome)
	}
	if len(row.Differences) == 0 {
		return rows
	}
	row.Because = cmp.Or(row.Because, "the operator is about to correct it")
	return append(rows, row)
}

// explain says why nothing would be changed. Ready does not show that of an object that is
// observed or paused, and may be True.
func (row *Row) explain(outcome error) {
	reason := reconciler.Reason(outcome)
	_, waits := errors.AsType[*reconciler.WaitError](outcome)
	switch {
	case slices.Contains(uncorrected, reason):
		row.Differences, row.Because = []string{reason}, cmp.Or(row.Because, reason)+": "+outcome.Error()
	case outcome != nil && !waits:
		row.Differences, row.Because = []string{"not compared"}, outcome.Error()
	}
}

func table(out io.Writer, rows []Row) error {
	if len(rows) == 0 {
		_, err := io.WriteString(out, "No drift: the VMs and Networks that exist in their clouds are as their specs say.\n")
		return err
	}
	lines := [][]string{{"KIND", "NAMESPACE", "NAME", "DIFFERENCE", "SINCE", "BECAUSE"}}
	for _, row := range rows {
		since := plugin.Unknown
		if !row.Since.IsZero() {
			since = duration.HumanDuration(time.Since(row.Since))
		}
		lines = append(lines, []string{row.Kind, row.Namespace, row.Name, strings.Join(row.Differences, ", "), since, row.Because})
	}
	return plugin.Table(out, lines...)
}
