package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	tofuTitle = "OpenTofu with the provider restapi"
	// tofuParallelism is -parallelism, the number of concurrent calls. The default is 10.
	tofuParallelism = 100
	// tofuTries is the number of times that a command that fails is run at most.
	tofuTries = 3
	// tofuStop is the time that a command has to end after an interrupt.
	tofuStop = 20 * time.Second
)

// tofuPeer is OpenTofu or Terraform with Mastercard/restapi. It reads and writes a state
// file instead of objects of Kubernetes.
type tofuPeer struct {
	program, plugins string
	folder, config   string
	running          atomic.Int64
}

// newTofuPeer returns an error if one of the programs is absent.
func newTofuPeer(program, provider string) (*tofuPeer, error) {
	for _, file := range []string{program, provider} {
		if _, err := exec.LookPath(file); err != nil {
			return nil, fmt.Errorf("no program %s", file)
		}
	}
	return &tofuPeer{program: program, plugins: filepath.Dir(provider)}, nil
}

func (*tofuPeer) title() string { return tofuTitle }

func (*tofuPeer) writer() agent { return "" }

// pid returns the process of the command that runs, 0 if none does.
func (p *tofuPeer) pid() int { return int(p.running.Load()) }

// tofuConfig declares n servers. The provider takes the id from the answer to a create, and
// reads nothing after it.
func tofuConfig(url string, n int) string {
	return fmt.Sprintf(`terraform {
  required_providers {
    restapi = { source = "Mastercard/restapi" }
  }
}

provider "restapi" {
  uri                  = %q
  id_attribute         = "id"
  write_returns_object = true
}

resource "restapi_object" "server" {
  count = %d
  path  = "/servers"
  data  = jsonencode({ name = format("tofu-%%05d", count.index) })
}
`, url, n)
}

// tofuPlugins makes the program take the provider from a folder, so that it asks no
// registry and needs no init.
func tofuPlugins(folder string) string {
	return fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"Mastercard/restapi\" = %q\n  }\n  direct {}\n}\n", folder)
}

func (p *tofuPeer) start(_ context.Context, s *stage, at *mock, n int) error {
	p.folder = s.file(fmt.Sprintf("tofu-%d", s.starts))
	p.config = filepath.Join(p.folder, "cli.tfrc")
	if err := os.Mkdir(p.folder, 0o700); err != nil {
		return fmt.Errorf("creating a folder for OpenTofu: %w", err)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(p.folder, "main.tf"), []byte(tofuConfig(at.url, n)), 0o600),
		os.WriteFile(p.config, []byte(tofuPlugins(p.plugins)), 0o600))
}

// run runs a command and returns its output.
func (p *tofuPeer) run(ctx context.Context, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, p.program, args...)
	command.Dir, command.WaitDelay = p.folder, tofuStop
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+p.config, "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.program, err)
	}
	p.running.Store(int64(command.Process.Pid))
	defer p.running.Store(0)
	if err := command.Wait(); err != nil {
		return output.Bytes(), fmt.Errorf("%s %s: %w; last lines of its output:\n%s", p.program, args[0], err, clip(output.Bytes()))
	}
	return output.Bytes(), nil
}

// repeat runs a command until it succeeds, tofuTries times at most.
func (p *tofuPeer) repeat(ctx context.Context, args ...string) error {
	args = append(args, "-auto-approve", "-input=false", "-no-color", "-parallelism="+strconv.Itoa(tofuParallelism))
	var err error
	for range tofuTries {
		if _, err = p.run(ctx, args...); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// create runs apply. Servers of its state are ready.
func (p *tofuPeer) create(ctx context.Context, n int, _ time.Duration) (int, error) {
	err := p.repeat(ctx, "apply")
	if err == nil {
		return n, nil
	}
	if ctx.Err() != nil {
		return 0, err
	}
	say("  %v", err)
	state, err := p.run(ctx, "state", "list")
	return bytes.Count(state, []byte("restapi_object.server[")), err
}

func (p *tofuPeer) look(ctx context.Context) (int, error) {
	_, err := p.run(ctx, "plan", "-input=false", "-no-color", "-parallelism="+strconv.Itoa(tofuParallelism))
	return 1, err
}

func (p *tofuPeer) remove(ctx context.Context, _ int, _ time.Duration) error {
	return p.repeat(ctx, "destroy")
}

func (*tofuPeer) stop(context.Context) error { return nil }
