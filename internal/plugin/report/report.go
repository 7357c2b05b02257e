// Package report is the command "kubectl privatecloud report": a support bundle.
//
//	report.go    the command
//	source.go    the cluster that it is collected from
//	collect.go   the order of what is collected
//	objects.go   objects, a page at a time
//	operator.go  logs, metrics and versions of the operator
//	archive.go   the ZIP file, and the list of what is in it
//	redact.go    what is removed from objects
//	text.go      what is removed from texts
package report

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// options are what is collected.
type options struct {
	// namespace is that of the objects, empty for all.
	namespace string
	// operatorNamespace is that of the operator.
	operatorNamespace string
	// since is the age of the oldest log line, and tail the number of lines of a container.
	since time.Duration
	tail  int64
	// file is the path of the bundle.
	file string
}

// NewCommand returns the command.
func NewCommand(env *plugin.Env) *cobra.Command {
	var o options
	var all bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Collect objects, events and logs of the operator into a ZIP file for support",
		Long: `Collect into a ZIP file what support needs: the objects of the operator and the events
about them, the versions of the CRDs, and of the operator its Deployments, pods, logs and
metrics. The file manifest.json in it lists what it has, and what was left out and why.

Secrets are never read. User data and SSH keys of VMs, the endpoints of Clouds, addresses
in messages and logs, tokens, values of environment variables and of annotations of others
are replaced by REDACTED. Names of objects, labels, and addresses of VMs stay: look through
the file before you give it away.

Rights: whatever is missing is left out, and named in manifest.json. For all of it, list
clouds, gpuinfos, networks, vmclasses, vmconsolerequests, vmgroups, vms and vmsnapshots of
samplecontroller.k8s.io, and events, in the namespace or with -A in the cluster; get
customresourcedefinitions.apiextensions.k8s.io; and in the namespace of the operator, list
deployments.apps, replicasets.apps, pods and clusterserviceversions.operators.coreos.com,
get pods/log and create pods/portforward.`,
		Example: `  kubectl privatecloud report -A
  kubectl privatecloud report -n team-a -f report.zip
  kubectl privatecloud report -A --operator-namespace=operators --since=1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(env, all); err != nil {
				return err
			}
			from, err := newSource(env)
			if err != nil {
				return err
			}
			if err := write(cmd.Context(), from, o, env); err != nil {
				return err
			}
			fmt.Fprintln(env.Out, o.file)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "the file to write; it must not exist (default privatecloud-report-TIME.zip)")
	flags.BoolVarP(&all, "all-namespaces", "A", false, "collect the objects of all namespaces")
	flags.StringVar(&o.operatorNamespace, "operator-namespace", operator.DefaultNamespace, "the namespace of the operator")
	flags.DurationVar(&o.since, "since", 24*time.Hour, "how old log lines may be")
	flags.Int64Var(&o.tail, "tail", 50000, "how many log lines of each container to collect at most, the newest")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("operator-namespace", env.CompleteNamespaces))
	return cmd
}

// complete sets what has no flag, and checks the rest.
func (o *options) complete(env *plugin.Env, all bool) error {
	var problems []error
	if o.since < time.Second {
		problems = append(problems, fmt.Errorf("--since is %s: set a duration of at least a second, such as 1h", o.since))
	}
	if o.tail <= 0 {
		problems = append(problems, fmt.Errorf("--tail is %d: set a positive number of lines", o.tail))
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if !all {
		var err error
		if o.namespace, err = env.Namespace(); err != nil {
			return err
		}
	}
	if o.file == "" {
		o.file = "privatecloud-report-" + time.Now().UTC().Format("20060102T150405Z") + ".zip"
	}
	if _, err := os.Lstat(o.file); err == nil {
		return exists(o.file)
	}
	return nil
}

func exists(file string) error {
	return fmt.Errorf("the file %s exists, and is not overwritten: name another with --file", file)
}

// flags are how the diagnostics of the operator are reached.
func (o *options) flags() operator.Flags { return operator.Flags{Namespace: o.operatorNamespace} }
