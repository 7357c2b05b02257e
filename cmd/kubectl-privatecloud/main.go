// Command kubectl-privatecloud is a kubectl plugin for users of the private-cloud operator.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/root"
)

var version = "dev" // set by the Makefile

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	env := plugin.NewEnv(streams, version)
	return plugin.Main(ctx, env, root.New(env))
}
