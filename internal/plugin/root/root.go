// Package root is the root command of the kubectl plugin.
package root

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/approve"
	"github.com/privatecloud/operator/internal/plugin/brake"
	"github.com/privatecloud/operator/internal/plugin/console"
	"github.com/privatecloud/operator/internal/plugin/drain"
	"github.com/privatecloud/operator/internal/plugin/drift"
	"github.com/privatecloud/operator/internal/plugin/imports"
	"github.com/privatecloud/operator/internal/plugin/orphans"
	"github.com/privatecloud/operator/internal/plugin/plan"
	"github.com/privatecloud/operator/internal/plugin/report"
	"github.com/privatecloud/operator/internal/plugin/top"
	"github.com/privatecloud/operator/internal/plugin/why"
)

// New returns the command "kubectl privatecloud".
func New(env *plugin.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "kubectl-privatecloud",
		Short:         "Plan, approve, explain and import what the private-cloud operator manages",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl privatecloud"},
		Version:       env.Version,
		SilenceErrors: true, // main prints them, with what to do
		SilenceUsage:  true,
	}
	cmd.SetIn(env.In)
	cmd.SetOut(env.Out)
	cmd.SetErr(env.ErrOut)
	env.Config.AddFlags(cmd.PersistentFlags())
	env.AddFlagCompletions(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	cmd.AddCommand(
		approve.NewCommand(env),
		brake.NewCommand(env),
		console.NewCommand(env),
		drain.NewCommand(env),
		drift.NewCommand(env),
		imports.NewCommand(env),
		orphans.NewCommand(env),
		plan.NewCommand(env),
		report.NewCommand(env),
		top.NewCommand(env),
		why.NewCommand(env),
	)
	return cmd
}
