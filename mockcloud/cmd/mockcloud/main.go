// Command mockcloud serves a private cloud for development and tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

// version is set with -ldflags "-X main.version=...".
var version = "dev"

// grace is the time that calls in progress have to complete after SIGTERM.
const grace = 10 * time.Second

// handoverTimeout is the time that another mock cloud has to hand over.
const handoverTimeout = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr, nil)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mockcloud:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It calls listening, if it is not nil, with the ports
// when they accept connections.
func run(ctx context.Context, args []string, out *os.File, listening func(ports)) error {
	config, err := parse(args, out)
	if err != nil {
		return err
	}
	if config.showVersion {
		fmt.Println(version)
		return nil
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	log.Info("starting the mock cloud", "version", version, "goVersion", runtime.Version())
	config.options.Log, config.options.Version = log, version
	if config.takeOver != "" {
		taken, err := mockcloud.TakeOver(ctx, config.takeOver, config.options.DataFile, handoverTimeout)
		if err != nil {
			return err
		}
		log.Info("checked for a mock cloud to take over", "url", config.takeOver, "taken", taken)
	}
	cloud, err := mockcloud.New(config.options)
	if err != nil {
		return err
	}
	open, err := listen(ctx, config, cloud)
	if err != nil {
		return errors.Join(err, cloud.Close())
	}
	served := open.serve()
	log.Info("listening", "address", open.api.Addr().String(), "url", open.api.url(),
		"admin", open.admin.url(), "handover", open.handover.url(),
		"profile", cloud.Profile(), "quirks", cloud.Quirks())
	if listening != nil {
		listening(open)
	}
	select {
	case err := <-served:
		open.close()
		return errors.Join(fmt.Errorf("serving: %w", err), cloud.Close())
	case <-ctx.Done():
	}
	log.Info("stopping")
	return shutDown(open, cloud)
}

// shutDown stops the servers after the calls in progress, and closes the cloud
// afterwards, because these calls write to its store.
func shutDown(open ports, cloud *mockcloud.Cloud) error {
	cloud.ClearFaults()
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	return errors.Join(open.shutDown(ctx), cloud.Close())
}
