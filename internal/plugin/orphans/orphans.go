// Package orphans is the command that lists the servers of this cluster without an object.
package orphans

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// NewCommand returns the command "orphans".
func NewCommand(env *plugin.Env) *cobra.Command {
	var flags operator.Flags
	var output plugin.Output
	var cloud string
	cmd := &cobra.Command{
		Use:   "orphans",
		Short: "List the servers of this cluster in a cloud whose VM object does not exist",
		Long: `List the servers of a cloud that carry the owner labels of this cluster and whose VM object does not
exist: its finalizer was removed by hand, or the object was restored from a backup with another UID.
OBJECT is the object that they were made for, as namespace/name.

Nothing is changed. What can be done with them is printed to stderr.

Rights: ` + operator.Rights,
		Example: `  kubectl privatecloud orphans
  kubectl privatecloud orphans --cloud production -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
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
			return output.Print(env.Out, found, func(out io.Writer) error {
				fmt.Fprint(env.ErrOut, advice(found))
				return table(out, found.Servers)
			})
		},
	}
	flags.Bind(cmd.Flags())
	cmd.Flags().StringVar(&cloud, "cloud", pcapi.DefaultCloudName, "the Cloud whose servers are listed")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("cloud", env.CompleteClouds))
	output.AddFlag(cmd)
	return cmd
}

func table(out io.Writer, servers []wire.Server) error {
	if len(servers) == 0 {
		return nil
	}
	rows := [][]string{{"ID", "NAME", "STATE", "OBJECT", "CREATED"}}
	for i := range servers {
		s := &servers[i]
		created := plugin.Unknown
		if s.CreatedAt != nil {
			created = s.CreatedAt.Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{s.ID, s.Name, s.State, object(s.Owner), created})
	}
	return plugin.Table(out, rows...)
}

func object(owner *wire.Owner) string {
	if owner == nil || owner.Name == "" {
		return plugin.Unknown
	}
	return owner.Namespace + "/" + owner.Name
}

// advice says what can be done with orphans.
func advice(found wire.Servers) string {
	if len(found.Servers) == 0 {
		return fmt.Sprintf("No orphans on Cloud %q, as of %s.\n", found.Cloud, found.ListedAt.Format("15:04:05 MST"))
	}
	return fmt.Sprintf(`%d orphaned on Cloud %q, as of %s. For each of them:
- To keep it, import it: create a VM with its name as spec.vmname and its ID as spec.import.vmId, if spec.imports of the
  Cloud allows that. The labels are replaced.
- To delete it, delete it in the cloud, or import it and delete the VM.
- To have the operator delete all of them, now and later, run:
  kubectl patch cloud %s --type=merge -p '{"spec":{"orphanPolicy":"Delete"}}'
`, len(found.Servers), found.Cloud, found.ListedAt.Format("15:04:05 MST"), found.Cloud)
}
