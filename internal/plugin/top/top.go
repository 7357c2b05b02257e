// Package top is the command "kubectl privatecloud top".
//
//	top.go     the command
//	usage.go   what is known of VMs, and sums of it
//	vms.go     the rows of VMs
//	groups.go  the rows of VmGroups
//	clouds.go  the rows of Clouds
package top

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/plugin"
)

const sortByCPU, sortByName = "cpu", "name"

// command is what is to be shown.
type command struct {
	env           *plugin.Env
	output        plugin.Output
	allNamespaces bool
	sortBy        string
}

// tables are the names of the tables on the command line. The first is the default.
var tables = []string{"vms", "groups", "clouds"}

// show writes one of the tables.
func (c *command) show(ctx context.Context, reader client.Reader, table string) error {
	switch table {
	case "groups":
		return c.groups(ctx, reader)
	case "clouds":
		return c.clouds(ctx, reader)
	}
	return c.vms(ctx, reader)
}

// NewCommand returns the command.
func NewCommand(env *plugin.Env) *cobra.Command {
	c := &command{env: env}
	cmd := &cobra.Command{
		Use:   "top [vms|groups|clouds]",
		Short: "Show the CPU use and size of VMs, groups and Clouds",
		Long: `Show the CPU use and size of VMs, of VmGroups or of Clouds, as the operator last read
them from the cloud. Without an argument, show VMs.

The CPU use is the mean of the cores in percent. That of a group is the mean and the
maximum of its members that are ready, and that of a Cloud the mean of its VMs. What the
cloud does not report is <unknown>.

Rights: list vms.samplecontroller.k8s.io, and for groups also list
vmgroups.samplecontroller.k8s.io, in the namespace, or in the cluster with -A. For Clouds,
list clouds.samplecontroller.k8s.io in the cluster; without list
vms.samplecontroller.k8s.io in the cluster, the sums of VMs are <unknown>.`,
		Example: `  kubectl privatecloud top
  kubectl privatecloud top groups -A --sort-by=cpu
  kubectl privatecloud top clouds -o json`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), onlyKnown),
		ValidArgs: tables,
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.sortBy != sortByCPU && c.sortBy != sortByName {
				return fmt.Errorf("--sort-by is %q: set cpu or name", c.sortBy)
			}
			cluster, err := env.Client()
			if err != nil {
				return err
			}
			return c.show(cmd.Context(), cluster, append(args, tables[0])[0])
		},
	}
	cmd.Flags().BoolVarP(&c.allNamespaces, "all-namespaces", "A", false, "show the objects of all namespaces")
	cmd.Flags().StringVar(&c.sortBy, "sort-by", sortByName, "order of the rows: cpu, highest first, or name")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions([]string{sortByCPU, sortByName}, cobra.ShellCompDirectiveNoFileComp)))
	c.output.AddFlag(cmd)
	return cmd
}

func onlyKnown(_ *cobra.Command, args []string) error {
	if len(args) == 1 && !slices.Contains(tables, args[0]) {
		return fmt.Errorf("there is no table %q: name one of %s", args[0], strings.Join(tables, ", "))
	}
	return nil
}

// namespace returns which namespace is read, empty for all.
func (c *command) namespace() (string, error) {
	if c.allNamespaces {
		return "", nil
	}
	return c.env.Namespace()
}

// row is a row of a table.
type row interface {
	// key is the namespace and the name, for the order.
	key() string
	// cpu is the CPU use in percent, nil if unknown.
	cpu() *int32
	// cells are the columns without the namespace.
	cells() []string
	namespace() string
}

// write writes rows in the order of --sort-by.
func write[R row](c *command, rows []R, namespaced bool, heading ...string) error {
	slices.SortFunc(rows, func(a, b R) int {
		if order := byCPU(a.cpu(), b.cpu()); c.sortBy == sortByCPU && order != 0 {
			return order
		}
		return strings.Compare(a.key(), b.key())
	})
	return c.output.Print(c.env.Out, rows, func(out io.Writer) error {
		if len(rows) == 0 {
			fmt.Fprintln(c.env.ErrOut, "No resources found.")
			return nil
		}
		table := [][]string{heading}
		for _, r := range rows {
			table = append(table, r.cells())
		}
		if namespaced && c.allNamespaces {
			table[0] = append([]string{"NAMESPACE"}, table[0]...)
			for i, r := range rows {
				table[i+1] = append([]string{r.namespace()}, table[i+1]...)
			}
		}
		return plugin.Table(out, table...)
	})
}

// byCPU orders by CPU use, highest first and unknown last.
func byCPU(a, b *int32) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return int(*b) - int(*a)
}
