// Package drain is the command "kubectl privatecloud drain".
package drain

import (
	"flag"

	"github.com/spf13/cobra"

	"github.com/privatecloud/operator/internal/drain"
	"github.com/privatecloud/operator/internal/plugin"
)

// NewCommand returns the command, which does what "manager drain" does.
func NewCommand(env *plugin.Env) *cobra.Command {
	var options drain.Options
	cmd := &cobra.Command{
		Use:   "drain --policy=delete|orphan",
		Short: "Delete what the operator manages, before it is uninstalled",
		Long: `Delete VMSnapshots, VmGroups, VMs, Networks, GPUInfos and Clouds in the right order,
and wait until the operator has completed it. The operator must run. Without --yes, show
what would be deleted, and change nothing.

Unlike with other commands, --namespace of the kubeconfig has no effect: the drain is of
all namespaces and Clouds unless --namespace or --cloud is set.
https://github.com/privatecloud/operator/blob/main/docs/install.md#uninstall has all steps.

Rights, in the cluster: list clouds, gpuinfos, networks, vmgroups, vms and vmsnapshots of
samplecontroller.k8s.io, and with --yes also delete; with --policy=orphan also patch vms
and vmsnapshots; with --cloud or --namespace also get namespaces.`,
		Example: `  kubectl privatecloud drain --policy=delete
  kubectl privatecloud drain --policy=delete --yes
  kubectl privatecloud drain --policy=orphan --cloud=default --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Namespace = *env.Config.Namespace
			if err := options.Validate(); err != nil {
				return err
			}
			c, err := env.Client()
			if err != nil {
				return err
			}
			return drain.Run(cmd.Context(), c, options, env.Out)
		},
	}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	options.Bind(flags)
	flags.VisitAll(func(f *flag.Flag) {
		if f.Name != "namespace" { // that of kubectl
			cmd.Flags().AddGoFlag(f)
		}
	})
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions([]string{string(drain.PolicyDelete), string(drain.PolicyOrphan)}, cobra.ShellCompDirectiveNoFileComp)))
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("cloud", env.CompleteClouds))
	return cmd
}
