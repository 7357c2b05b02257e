// Package plugintest runs commands of the kubectl plugin in the process of a test, and
// compares what they print with golden files.
package plugintest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/root"
	"github.com/privatecloud/operator/internal/testkit/golden"
)

// Version is the version of the plugin in tests.
const Version = "v1.2.3"

// Setup is how a command is run. The zero value has no cluster and no input.
type Setup struct {
	// Client replaces the API server.
	Client client.Client
	// Kubeconfig is the path of a file; without it, the environment of the user has no effect.
	Kubeconfig string
	// Answer is what a person types on the terminal. Without it, there is no terminal.
	Answer string
}

// Result is what a command printed, and its exit code.
type Result struct {
	args     []string
	Out, Err string
	Code     int
}

// Run runs the plugin with arguments.
func (s Setup) Run(ctx context.Context, args ...string) Result {
	var out, problems bytes.Buffer
	env := plugin.NewEnv(genericiooptions.IOStreams{In: strings.NewReader(s.Answer), Out: &out, ErrOut: &problems}, Version)
	env.Terminal = func(io.Reader) bool { return s.Answer != "" }
	if s.Client != nil {
		env.Connect = func(*plugin.Env) (client.Client, error) { return s.Client, nil }
	}
	if s.Kubeconfig == "" {
		s.Kubeconfig = os.DevNull
	}
	*env.Config.KubeConfig = s.Kubeconfig
	cmd := root.New(env)
	cmd.SetArgs(args)
	code := plugin.Main(ctx, env, cmd)
	return Result{args: args, Out: out.String(), Err: problems.String(), Code: code}
}

// NewClient returns a client of objects in memory.
func NewClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return Builder(t, objects...).Build()
}

// Builder returns what NewClient builds, to be changed.
func Builder(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme, err := plugin.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(objects...)
}

// String is the content of a golden file.
func (r Result) String() string {
	return fmt.Sprintf("$ kubectl privatecloud %s\n%s--- stderr\n%s--- exit code %d\n", strings.Join(r.args, " "), r.Out, r.Err, r.Code)
}

// normalized are what differs from run to run.
var normalized = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`), "<address>"},
	{regexp.MustCompile(`(?m)^\d+s: left:`), "<elapsed>: left:"},
}

// Golden compares results with testdata/NAME.golden; go test -update writes it. Times,
// UIDs and local addresses are normalized, and so are the pairs of replacements.
func Golden(t *testing.T, name string, results []Result, replacements ...string) {
	t.Helper()
	var text strings.Builder
	for i, r := range results {
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(r.String())
	}
	got := strings.NewReplacer(replacements...).Replace(text.String())
	for _, n := range normalized {
		got = n.pattern.ReplaceAllString(got, n.name)
	}
	golden.Compare(t, name, got)
}

// FileName returns the name of the golden file of a command: its arguments, joined.
func FileName(args ...string) string {
	return strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(strings.Join(args, "_"), "-"), "-")
}
