package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/privatecloud/operator/internal/plugin"
)

// progressEvery is how many objects are collected between two lines of progress.
const progressEvery = 10000

// collection is one run.
type collection struct {
	options

	from     *source
	archive  *archive
	redact   *redactor
	progress io.Writer
	// withoutClouds is why the endpoints of the Clouds are not known, so that they could not
	// be found in logs; nil if they are.
	withoutClouds error
}

// write writes the whole bundle or nothing.
func write(ctx context.Context, from *source, o options, env *plugin.Env) error {
	server, err := from.version()
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	a, err := create(o.file)
	if err != nil {
		return err
	}
	defer a.discard()
	a.manifest.Created, a.manifest.Plugin = time.Now().UTC().Truncate(time.Second), env.Version
	a.manifest.Namespace, a.manifest.OperatorNamespace = o.namespace, o.operatorNamespace
	c := &collection{options: o, from: from, archive: a, redact: &redactor{}, progress: env.ErrOut}
	if err := c.collect(ctx, server, env.Version); err != nil {
		return err
	}
	return a.finish()
}

// collect writes all parts. It fails only if the file cannot be written or ctx ends.
func (c *collection) collect(ctx context.Context, server, version string) error {
	c.withoutClouds = c.learnEndpoints(ctx)
	parts := []func(context.Context) error{
		func(ctx context.Context) error { return c.versions(ctx, server, version) },
		c.crds, c.objects, c.events, c.operatorObjects, c.logs, c.metrics,
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("collect: %w", err)
		}
	}
	return nil
}

// file writes one file of the bundle. What cannot be read is left out, and noted.
func (c *collection) file(ctx context.Context, name string, fill func(io.Writer) (int, error)) error {
	objects := 0
	err := c.archive.add(name, func(out io.Writer) (n int, err error) {
		objects, err = fill(out)
		return objects, err
	})
	switch {
	case err == nil:
		fmt.Fprintf(c.progress, "%s: %d\n", name, objects)
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("collect: %w", ctx.Err())
	case isWriteError(err):
		return err
	}
	c.leaveOut(name, err)
	return nil
}

// leaveOut notes what the bundle lacks.
func (c *collection) leaveOut(what string, why error) {
	text := c.redact.text(why.Error())
	c.archive.manifest.LeftOut = append(c.archive.manifest.LeftOut, leftOut{What: what, Why: text})
	fmt.Fprintf(c.progress, "%s: left out: %s\n", what, text)
}

func isWriteError(err error) bool {
	_, ok := errors.AsType[*writeError](err)
	return ok
}
