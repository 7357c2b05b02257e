// Package why is the command that follows an object that is not ready to the cause.
//
//	why.go      the command
//	kinds.go    the kinds, and what each depends on (pure)
//	chain.go    from the object to the cause
//	entry.go    one object of the chain (pure)
//	details.go  the Cloud, the claim and the last step
//	print.go    the chain in words
package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

// NewCommand returns the command "why".
func NewCommand(env *plugin.Env) *cobra.Command {
	var flags operator.Flags
	var output plugin.Output
	cmd := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Follow an object that is not ready to the cause",
		Long: `Print why an object is not ready: one line for each object that it waits for, down to the Cloud,
with the reason and message of the condition Ready; then what waits for the cloud, what is recorded of a
create, and the last step that the operator made and its outcome.

KIND is vm, vmgroup, network, vmsnapshot, gpuinfo or cloud, or a plural or a short name of these. For a vmgroup, the first member that is not
ready is followed.

The exit code is 0 whatever the state of the object is. What you may not read is one line that names
the missing right.

Rights: get of the object, and as far as you have them: get of the other kinds in the namespace, list vms
for a vmgroup, get clouds and namespaces; for the queue and the last step
` + operator.Rights,
		Example: `  kubectl privatecloud why vm/web -n dev
  kubectl privatecloud why vmgroup workers
  kubectl privatecloud why cloud/production -o json`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: env.CompleteObjects(resources()...),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parse(args)
			if err != nil {
				return err
			}
			r, err := follow(cmd.Context(), env, flags, kind, name)
			if err != nil {
				return err
			}
			return output.Print(env.Out, r, func(out io.Writer) error { return show(out, r) })
		},
	}
	flags.Bind(cmd.Flags())
	output.AddFlag(cmd)
	return cmd
}

func follow(ctx context.Context, env *plugin.Env, flags operator.Flags, kind *kind, name string) (*report, error) {
	reader, err := env.Client()
	if err != nil {
		return nil, err
	}
	namespace, err := env.Namespace()
	if err != nil {
		return nil, err
	}
	if kind.cluster {
		namespace = ""
	}
	asked := &lazy{connect: func() (*operator.Operator, error) { return operator.Connect(ctx, env, flags) }}
	defer asked.close()
	c := &chain{reader: reader, operator: asked, seen: map[key]bool{}}
	return c.follow(ctx, key{kind.name, namespace, name})
}

// lazy connects to the operator when it is first asked: an object that is Ready needs none.
type lazy struct {
	connect  func() (*operator.Operator, error)
	operator *operator.Operator
	err      error
}

func (l *lazy) get() (*operator.Operator, error) {
	if l.operator == nil && l.err == nil {
		l.operator, l.err = l.connect()
	}
	return l.operator, l.err
}

func (l *lazy) close() {
	if l.operator != nil {
		l.operator.Close()
	}
}

// Cloud returns what the operator knows of a Cloud.
func (l *lazy) Cloud(ctx context.Context, name string) (wire.Cloud, error) {
	o, err := l.get()
	if err != nil {
		return wire.Cloud{}, err
	}
	return o.Cloud(ctx, name)
}

// Steps returns the last steps of an object.
func (l *lazy) Steps(ctx context.Context, cloud, kind, namespace, name string) ([]wire.Step, error) {
	o, err := l.get()
	if err != nil {
		return nil, err
	}
	return o.Steps(ctx, cloud, kind, namespace, name)
}

// parse returns the kind and the name of the arguments KIND/NAME or KIND NAME.
func parse(args []string) (*kind, string, error) {
	text, name := args[0], ""
	if len(args) == 2 {
		name = args[1]
	} else if of, after, ok := strings.Cut(args[0], "/"); ok {
		text, name = of, after
	}
	kind := kindOf(text)
	switch {
	case kind == nil:
		return nil, "", fmt.Errorf("%q is no kind that this command follows: use %s", text, strings.Join(resources(), ", "))
	case name == "":
		return nil, "", errors.New("the name is missing: write KIND/NAME, such as vm/web")
	case strings.Contains(name, "/"):
		return nil, "", fmt.Errorf("%q is no name: write KIND/NAME, and the namespace with -n", name)
	}
	return kind, name, nil
}
