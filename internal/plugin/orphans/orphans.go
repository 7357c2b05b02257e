// Package orphans is the command that lists the servers of this cluster without an object.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

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
		Short: "List the servers of this cluster in its clouds whose VM object does not exist",
		Long: `List the servers that carry the owner labels of this cluster and whose VM object does not exist: its
finalizer was removed by hand, or the object was restored from a backup with another UID. OBJECT is the
object that they were made for, as namespace/name.

Nothing is changed. What can be done with them is printed to stderr.

Rights: ` + operator.Rights,
		Example: `  kubectl privatecloud orphans
  kubectl privatecloud orphans --cloud production -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := read(cmd.Context(), env, flags, cloud)
			if found == nil {
				return err
			}
			printed := output.Print(env.Out, found, func(out io.Writer) error {
				fmt.Fprint(env.ErrOut, advice(found))
				return table(out, found)
			})
			return errors.Join(printed, err)
		},
	}
	flags.Bind(cmd.Flags())
	cmd.Flags().StringVar(&cloud, "cloud", "", "the Cloud whose servers are listed; by default all Clouds")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("cloud", env.CompleteClouds))
	output.AddFlag(cmd)
	return cmd
}

// read returns the orphans of a Cloud, or of each Cloud. Those that it could read are not
// nil although others failed.
func read(ctx context.Context, env *plugin.Env, flags operator.Flags, cloud string) ([]wire.Servers, error) {
	asked, err := operator.Connect(ctx, env, flags)
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	clouds := []string{cloud}
	if cloud == "" {
		if clouds, err = asked.Clouds(ctx); err != nil {
			return nil, err
		}
	}
	all := []wire.Servers{}
	var failed error
	for _, name := range clouds {
		servers := []wire.Server{}
		found, err := asked.Servers(ctx, name, wire.StateOrphaned, func(s wire.Server) error {
			servers = append(servers, s)
			return nil
		})
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		found.Servers = servers
		all = append(all, found)
	}
	if len(all) == 0 && failed != nil {
		return nil, failed
	}
	return all, failed
}

func table(out io.Writer, all []wire.Servers) error {
	rows := [][]string{{"CLOUD", "ID", "NAME", "STATE", "OBJECT", "CREATED"}}
	for i := range all {
		for j := range all[i].Servers {
			s := &all[i].Servers[j]
			created := plugin.Unknown
			if s.CreatedAt != nil {
				created = s.CreatedAt.Format("2006-01-02 15:04")
			}
			rows = append(rows, []string{all[i].Cloud, s.ID, s.Name, s.State, object(s.Owner), created})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return plugin.Table(out, rows...)
}

func object(owner *wire.Owner) string {
	if owner == nil || owner.Name == "" {
		return plugin.Unknown
	}
	return owner.Namespace + "/" + owner.Name
}

// advice says how many orphans there are, and what can be done with them.
func advice(all []wire.Servers) string {
	var text strings.Builder
	orphans := 0
	for i := range all {
		orphans += len(all[i].Servers)
		fmt.Fprintf(&text, "%d orphans on Cloud %q, as of %s.\n", len(all[i].Servers), all[i].Cloud, all[i].ListedAt.Format("15:04:05 MST"))
	}
	if orphans > 0 {
		text.WriteString(`For each of them:
- To keep it, import it: create a VM with its name as spec.vmname and its ID as spec.import.vmId, if spec.imports of the
  Cloud allows that. The labels are replaced.
- To delete it, delete it in the cloud, or import it and delete the VM.
- To have the operator delete all orphans of a Cloud, now and later, run:
  kubectl patch cloud CLOUD --type=merge -p '{"spec":{"orphanPolicy":"Delete"}}'
`)
	}
	return text.String()
}
