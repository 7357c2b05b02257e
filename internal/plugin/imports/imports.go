// Package imports is the command that writes VM manifests for the servers of a cloud that no
// object manages.
//
//	imports.go    the command
//	manifest.go   the manifest of a server, or why there is none (pure)
//	names.go      names of objects made from names of servers (pure)
//	nodes.go      the Nodes of the cluster, whose servers are left out (pure)
//	policy.go     what the Cloud allows, and what is to be set (pure)
//	target.go     the namespace that the manifests are for
package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// options are the flags.
type options struct {
	operator       operator.Flags
	cloud          string
	match          string
	deletionPolicy string
	output         string
	nodes          bool
}

// NewCommand returns the command "import".
func NewCommand(env *plugin.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Write VM manifests for the servers of a cloud that no object manages",
		Long: `Write a VM manifest to stdout for each server of a cloud that no object manages, so that applying
them takes the servers over. Nothing is changed before that. Applying them as they are changes nothing
in the cloud but labels: size, disks and networks stay as they are, a server that is stopped or suspended
stays so, and with the deletionPolicy Orphan a server stays if its object is deleted.

Servers that objects have, import or claim are left out, as are orphans (see the command orphans), servers
of other clusters, those that are being created or deleted or have failed, and those whose name is not allowed
in spec.vmname. So are those of the Nodes of this cluster, unless --include-nodes is set: those with the id in
spec.providerID of a Node or with its system UUID, or with its name if its providerID names no other server.
What is left out is listed on stderr, with the reason.

The Cloud must allow imports (spec.imports). If it does not allow these, stderr says what has to be set, and
-o importable prints a patch for it that lists them.

Rights: ` + operator.Rights + `
Also list vms in the namespace, and, to find out what the Cloud allows and which Cloud is the
default of the namespace, get clouds and namespaces; without these two, cloudRef is always written.
To leave out the servers of Nodes, list nodes; a note says that these may be among the manifests without.`,
		Example: `  kubectl privatecloud import --cloud production --match '^web-' -n team-a > vms.yaml
  kubectl privatecloud import --cloud production -n team-a -o importable > allow.yaml
  kubectl patch cloud production --type=merge --patch-file allow.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), env) },
	}
	o.operator.Bind(cmd.Flags())
	cmd.Flags().StringVar(&o.cloud, "cloud", "", "the Cloud whose servers are imported; required")
	cmd.Flags().StringVar(&o.match, "match", "", "a regular expression: only servers whose name matches; by default all")
	cmd.Flags().StringVar(&o.deletionPolicy, "deletion-policy", string(pcapi.DeletionPolicyOrphan), "spec.deletionPolicy of the VMs: Orphan, or Delete to delete a server with its object")
	cmd.Flags().StringVarP(&o.output, "output", "o", formatYAML, "yaml, json for one List, or importable for a patch of the Cloud that allows the imports")
	cmd.Flags().BoolVar(&o.nodes, "include-nodes", false, "also the servers of the Nodes of this cluster")
	cobra.CheckErr(cmd.MarkFlagRequired("cloud"))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("cloud", env.CompleteClouds))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formatYAML, formatJSON, formatImportable}, cobra.ShellCompDirectiveNoFileComp)))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("deletion-policy", cobra.FixedCompletions([]string{string(pcapi.DeletionPolicyOrphan), string(pcapi.DeletionPolicyDelete)}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (o *options) validate() (*regexp.Regexp, error) {
	match, err := regexp.Compile(o.match)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--match %q is no regular expression: %w", o.match, err)
	case o.cloud == "":
		return nil, errors.New("--cloud is empty: name the Cloud whose servers are imported")
	case o.deletionPolicy != string(pcapi.DeletionPolicyOrphan) && o.deletionPolicy != string(pcapi.DeletionPolicyDelete):
		return nil, fmt.Errorf("--deletion-policy is %q: set Orphan or Delete", o.deletionPolicy)
	case o.output != formatYAML && o.output != formatJSON && o.output != formatImportable:
		return nil, fmt.Errorf("--output is %q: set yaml, json or importable", o.output)
	}
	return match, nil
}

func (o *options) run(ctx context.Context, env *plugin.Env) error {
	match, err := o.validate()
	if err != nil {
		return err
	}
	to, err := targetOf(ctx, env, o.cloud, !o.nodes)
	if err != nil {
		return err
	}
	asked, err := operator.Connect(ctx, env, o.operator)
	if err != nil {
		return err
	}
	defer asked.Close()
	out, err := newWriter(env.Out, o.output, to.policy)
	if err != nil {
		return err
	}
	p := &planner{target: to, deletionPolicy: pcapi.DeletionPolicy(o.deletionPolicy)}
	head, err := asked.Servers(ctx, o.cloud, wire.StateUnmanaged, func(server wire.Server) error {
		if !match.MatchString(server.Name) {
			return nil
		}
		vm, why := p.plan(server)
		if why != "" {
			fmt.Fprintf(env.ErrOut, "left out: server %s %q: %s\n", plugin.Plain(server.ID), server.Name, plugin.Plain(why))
			return nil
		}
		return out.write(vm)
	})
	if err != nil {
		return err
	}
	if err := out.end(); err != nil {
		return err
	}
	report(env.ErrOut, p, head, out.omitted)
	return nil
}

// report prints what was found, and what has to be set before the manifests are applied.
func report(to io.Writer, p *planner, head wire.Servers, omitted int) {
	fmt.Fprintf(to, "%d servers of Cloud %q to import, %d left out, as of %s.\n", p.planned, head.Cloud, p.leftOut, head.ListedAt.Format("15:04:05 MST"))
	if head.Counts.Orphaned > 0 {
		fmt.Fprintf(to, "%d orphans are not among them: see kubectl privatecloud orphans --cloud %s\n", head.Counts.Orphaned, head.Cloud)
	}
	if head.Counts.OtherClusters > 0 {
		fmt.Fprintf(to, "%d servers of other clusters are not among them: release them there first\n", head.Counts.OtherClusters)
	}
	if p.ofNodes > 0 {
		fmt.Fprintf(to, "%d servers of Nodes of this cluster are not among them, since changes of their VMs would stop or delete Nodes: --include-nodes includes them\n", p.ofNodes)
	}
	if p.target.nodesUnknown {
		fmt.Fprint(to, "Servers of the Nodes of this cluster may be among them, since you may not list nodes: look for them before you apply the manifests\n")
	}
	fmt.Fprint(to, p.target.advice(p.planned, p.unlisted))
	if omitted > 0 {
		fmt.Fprintf(to, "%d servers are not in the patch, since spec.importable has at most %d entries: import the others, "+
			"remove their entries, which does not affect what is imported already, and run this again\n", omitted, maxImportable)
	}
}
