package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/privatecloud/operator/internal/drain"
)

// drainCommand is the first argument that makes this binary drain instead of reconcile.
const drainCommand = "drain"

// runDrain drains with the flags in arguments. It returns the exit code: 0 if nothing is
// left or nothing was to be changed, 2 if a flag is wrong, otherwise 1.
func runDrain(ctx context.Context, arguments []string, out, problems io.Writer) int {
	var options drain.Options
	flags := flag.NewFlagSet(drainCommand, flag.ContinueOnError)
	flags.SetOutput(problems)
	options.Bind(flags)
	config.RegisterFlags(flags)
	err := flags.Parse(arguments)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(problems, "unexpected argument %q: all options begin with --\n", flags.Arg(0))
		return 2
	}
	if err := options.Validate(); err != nil {
		fmt.Fprintln(problems, err)
		return 2
	}
	if err := drainCluster(ctx, options, out); err != nil {
		fmt.Fprintln(problems, err)
		return 1
	}
	return 0
}

func drainCluster(ctx context.Context, options drain.Options, out io.Writer) error {
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	cluster.UserAgent = "private-cloud-operator-drain/" + version
	c, err := drain.NewClient(cluster)
	if err != nil {
		return err
	}
	return drain.Run(ctx, c, options, out)
}
