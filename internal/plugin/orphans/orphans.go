// Package orphans is the command that lists the servers of this cluster without an object.
package orphans

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// NewCommand returns the command "orphans".
func NewCommand(env *plugin.Env) *cobra.Command {
	var flags operator.Flags
	var cloud, output string
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "List the servers of this cluster in a cloud whose VM object does not exist",
		Long: `List the servers of a cloud that carry the owner labels of this cluster and whose VM object does not
exist: its finalizer was removed by hand, or the object was restored from a backup with another UID.
OBJECT is the object that they were made for, as namespace/name.

Nothing is changed. What can be done with them is printed below the table.

` + operator.Rights,
		Example: `  kubectl privatecloud orphans
  kubectl privatecloud orphans --cloud production -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "" && output != "json" {
				return fmt.Errorf("-o %s is unknown: use -o json, or leave it out for a table", output)
			}
			asked, err := operator.Connect(cmd.Context(), env, flags)
			if err != nil {
				return err
			}
			defer asked.Close()
			found := wire.Servers{Servers: []wire.Server{}}
			head, err := asked.Servers(cmd.Context(), cloud, wire.StateOrphaned, func(s wire.Server) error {
				found.Servers = append(found.Servers, s)
				return nil
			})
			if err != nil {
				return err
			}
			found.Cloud, found.ListedAt, found.Counts = head.Cloud, head.ListedAt, head.Counts
			if output == "json" {
				encoder := json.NewEncoder(env.Out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(found)
			}
			if err := table(env.Out, found.Servers); err != nil {
				return err
			}
			fmt.Fprint(env.ErrOut, advice(found))
			return nil
		},
	}
	flags.Bind(cmd.Flags())
	cmd.Flags().StringVar(&cloud, "cloud", pcapi.DefaultCloudName, "the Cloud whose servers are listed")
	cmd.Flags().StringVarP(&output, "output", "o", "", "json; by default a table")
	return cmd
}

func table(to io.Writer, servers []wire.Server) error {
	if len(servers) == 0 {
		return nil
	}
	out := tabwriter.NewWriter(to, 0, 0, 3, ' ', 0)
	fmt.Fprintln(out, "ID\tNAME\tSTATE\tOBJECT\tCREATED")
	for i := range servers {
		s := &servers[i]
		created := "<unknown>"
		if s.CreatedAt != nil {
			created = s.CreatedAt.Format("2006-01-02 15:04")
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", s.ID, s.Name, s.State, object(s.Owner), created)
	}
	return out.Flush()
}

func object(owner *wire.Owner) string {
	if owner == nil || owner.Name == "" {
		return "<unknown>"
	}
	return owner.Namespace + "/" + owner.Name
}

// advice says what can be done with orphans.
func advice(found wire.Servers) string {
	if len(found.Servers) == 0 {
		return fmt.Sprintf("No orphans on Cloud %q, as of %s.\n", found.Cloud, found.ListedAt.Format("15:04:05 MST"))
	}
	first := found.Servers[0]
	return fmt.Sprintf(`
%d orphaned, as of %s. For each of them:
- To keep it, import it: create a VM with spec.vmname %q and spec.import.vmId %q, for example
  (spec.imports of the Cloud must allow it). The labels are replaced.
- To delete it, delete it in the cloud, or import it and delete the VM object.
- To have the operator delete all of them, now and later: kubectl patch cloud %s --type=merge -p '{"spec":{"orphanPolicy":"Delete"}}'
`, len(found.Servers), found.ListedAt.Format("15:04:05 MST"), first.Name, cmp.Or(first.ID, "ID"), found.Cloud)
}
