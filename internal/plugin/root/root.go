// Package root is the root command of the kubectl plugin.
package root

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/privatecloud/operator/internal/plugin"
)

// New returns the command "kubectl privatecloud".
func New(streams genericiooptions.IOStreams, version string) *cobra.Command {
	env := plugin.NewEnv(streams, version)
	cmd := &cobra.Command{
		Use:           "kubectl-privatecloud",
		Short:         "Plan, explain and import what the private-cloud operator manages",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl privatecloud"},
		Version:       version,
		SilenceErrors: true, // main prints them, with what to do
		SilenceUsage:  true,
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)
	env.Config.AddFlags(cmd.PersistentFlags())
	cmd.AddCommand()
	return cmd
}
