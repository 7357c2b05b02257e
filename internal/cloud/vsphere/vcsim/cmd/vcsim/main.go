// Command vcsim serves govmomi's simulator of a vCenter for the demo, the benchmarks
// and development.
//
//	main.go   flags; serves until a signal
//	seed.go   templates, folder, graphics devices and VMs of the administrator
//	admin.go  the endpoints that show and change the inventory without the SOAP API
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// version is set with -ldflags "-X main.version=...".
var version = "dev"

const usage = `vcsim serves a simulated vCenter with one cluster of three hosts. Any user name and password are accepted.

  vcsim --listen=127.0.0.1:18989 --admin=127.0.0.1:18990
  vcsim --clone-task=45s --session=8s --lose=3

Flags:
`

// config has the values of the flags.
type config struct {
	listen, admin string
	cloneTask     time.Duration
	session       time.Duration
	lose          int
	showVersion   bool
	seed          seed
}

func parse(args []string, out io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("vcsim", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&c.listen, "listen", "127.0.0.1:18989", "serve the SOAP API on `host:port`; with port 0, on a free port, which is logged")
	flags.StringVar(&c.admin, "admin", "127.0.0.1:18990", "serve the admin endpoints, which need no credentials, on `host:port`")
	flags.DurationVar(&c.cloneTask, "clone-task", 0, "how long the task of a clone runs")
	flags.DurationVar(&c.session, "session", 0, "end all sessions each time this has elapsed; 0 for never")
	flags.IntVar(&c.lose, "lose", 0, "lose one of `n` answers at random; 0 for none")
	flags.StringVar(&c.seed.folder, "folder", "vm-operator", "`name` of the VM folder that is made for the operator")
	flags.Func("template", "`name` of a template beside the folder; repeatable (default "+vcsim.Template+")", appendTo(&c.seed.templates))
	flags.Func("vm", "`name[=host]` of a VM of the administrator in the folder, which runs; repeatable", appendTo(&c.seed.vms))
	flags.Func("gpu-host", "`name` of a host with a graphics device; repeatable", appendTo(&c.seed.gpuHosts))
	flags.BoolVar(&c.showVersion, "version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return c, nil
}

func appendTo(into *[]string) func(string) error {
	return func(text string) error {
		*into = append(*into, text)
		return nil
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr, nil)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "vcsim:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It calls listening, if it is not nil, with the URLs of the
// SOAP API and of the admin endpoints.
func run(ctx context.Context, args []string, out io.Writer, listening func(url, admin string)) error {
	c, err := parse(args, out)
	if err != nil {
		return err
	}
	if c.showVersion {
		fmt.Println(version)
		return nil
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	log.Info("starting the simulator of a vCenter", "version", version, "goVersion", runtime.Version())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.admin)
	if err != nil {
		return err
	}
	vcenter, err := vcsim.StartWith(ctx, vcsim.Options{Listen: c.listen})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stop(vcenter)
	if err := c.seed.plant(ctx, vcenter); err != nil {
		return errors.Join(err, listener.Close())
	}
	c.disturb(ctx, vcenter, log)
	admin := &http.Server{Handler: newAdmin(vcenter), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- admin.Serve(listener) }()
	adminURL := "http://" + listener.Addr().String()
	log.Info("listening", "url", vcenter.URL, "admin", adminURL, "folder", c.seed.folder, "templates", strings.Join(c.seed.names(), ","))
	if listening != nil {
		listening(vcenter.URL, adminURL)
	}
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	log.Info("stopping")
	return admin.Close()
}

// stopTime is how long calls under way may delay the end.
const stopTime = 5 * time.Second

// stop ends the simulator.
func stop(vcenter *vcsim.Server) {
	ended := make(chan struct{})
	go func() {
		vcenter.Close()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(stopTime):
	}
}

// disturb makes clones slow, ends sessions and loses answers, as the flags say.
func (c config) disturb(ctx context.Context, vcenter *vcsim.Server, log *slog.Logger) {
	if c.cloneTask > 0 {
		vcenter.SlowClones(c.cloneTask)
	}
	if c.lose > 0 {
		vcenter.Front.LoseRandomly(func(string) bool { return rand.IntN(c.lose) == 0 }) //nolint:gosec // which answers are lost is no secret
	}
	if c.session <= 0 {
		return
	}
	go func() {
		for tick := time.NewTicker(c.session); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := vcenter.EndSessions(ctx); err != nil {
					log.Error("ending the sessions", "error", err)
				}
			}
		}
	}()
}
