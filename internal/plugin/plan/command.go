// Package plan is the command "kubectl privatecloud plan".
//
//	command.go   the command and its flags
//	apply.go     what applying a manifest makes of its object, by a dry run
//	overlay.go   objects that are not stored, for those that refer to them
//	planner.go   what the operator does about objects
//	print.go     output for people
package plan

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/privatecloud/operator/internal/plugin"
)

type options struct {
	resource.FilenameOptions
	apply  applyOptions
	delete bool
	output plugin.Output
}

// NewCommand returns the command.
func NewCommand(env *plugin.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIR",
		Short: "Show what applying manifests would do in the cloud",
		Long: `Show what the operator would do in the cloud if manifests were applied: which servers, networks and
snapshots it creates, changes in place, replaces and deletes, and what waits or is refused, and why.

The API server validates the manifests in a dry run, and the planner of the operator decides what follows, with
what the status of the objects shows. Nothing is written, neither to the cluster nor to the cloud, and the operator
need not run. The servers may have been changed in the cloud since they were reported. What no status shows, such
as tags, is taken to be as the object says, and of a server that is imported only the name is known. Whether a
new name is allowed in the cloud is known with the name check webhook only.

The exit code is 0 if nothing would be done in the cloud, 2 if something would, and 1 after an error.

Rights: get, and create or patch for the dry run, of the objects in the manifests. Get of the Cloud, Networks,
VMClass and VMSnapshots that they name, and of the namespace; without, the plan says what it assumes. For a
VmGroup: list of vms.`,
		Example: `  # What would change?
  kubectl privatecloud plan -f vms/

  # What would be deleted?
  kubectl privatecloud plan --delete -f vms/web.yaml

  # In a pipeline: fail if something would be deleted
  kubectl privatecloud plan -f vms/ -o json | jq -e '[.objects[].changes[]? | select(.action == "Delete")] == []'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, env) },
	}
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.Filenames, "filename", "f", nil, "files, folders or URLs with manifests; - for the standard input")
	flags.BoolVarP(&o.Recursive, "recursive", "R", false, "also read the folders below a folder")
	flags.BoolVar(&o.apply.serverSide, "server-side", false, "as kubectl apply --server-side does it")
	flags.StringVar(&o.apply.fieldManager, "field-manager", "kubectl", "the field manager of --server-side")
	flags.BoolVar(&o.apply.force, "force-conflicts", false, "with --server-side, take over the fields of other managers")
	flags.BoolVar(&o.delete, "delete", false, "show what deleting the objects would do")
	o.output.AddFlag(cmd)
	return cmd
}

func (o *options) run(cmd *cobra.Command, env *plugin.Env) error {
	if len(o.Filenames) == 0 {
		return errors.New("no manifests are given: name files or folders with -f")
	}
	manifests, err := o.read(env)
	if err != nil {
		return err
	}
	c, err := env.Client()
	if err != nil {
		return err
	}
	p := newPlanner(cmd.Context(), c)
	result := p.plan(cmd.Context(), manifests, o.apply, o.delete)
	err = o.output.Print(env.Out, result, result.print)
	switch {
	case err != nil:
		return err
	case result.failure != nil:
		return result.failure
	case result.Changes():
		return &plugin.ExitError{Code: plugin.ExitChanges}
	}
	return nil
}

// read reads the manifests.
func (o *options) read(env *plugin.Env) ([]*resource.Info, error) {
	namespace, enforce, err := env.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	infos, err := resource.NewBuilder(env.Config).Unstructured().
		NamespaceParam(namespace).DefaultNamespace().FilenameParam(enforce, &o.FilenameOptions).
		ContinueOnError().Flatten().Do().Infos()
	if all, several := err.(utilerrors.Aggregate); several { //nolint:errorlint // it hides its errors from errors.As
		err = errors.Join(utilerrors.Flatten(all).Errors()...)
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	return infos, nil
}
