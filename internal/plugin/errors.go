package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/clientcmd"
)

// Exit codes besides 0.
const (
	exitError = 1
	// ExitChanges is the exit code of a plan that has changes.
	ExitChanges = 2
)

// ExitError ends the plugin with an exit code and without a message.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Exit returns the exit code of an error, and its message for the user, empty for none.
func Exit(err error) (code int, message string) {
	exit, ok := errors.AsType[*ExitError](err)
	switch {
	case err == nil:
		return 0, ""
	case ok:
		return exit.Code, ""
	}
	return exitError, explain(err)
}

// Main runs a command and returns the exit code. Errors go to its stderr.
func Main(ctx context.Context, cmd *cobra.Command) int {
	code, message := Exit(cmd.ExecuteContext(ctx))
	if message != "" {
		fmt.Fprintln(cmd.ErrOrStderr(), "error:", message)
	}
	return code
}

// explain returns the message of an error, with what the user can do about it.
func explain(err error) string {
	_, unreachable := errors.AsType[net.Error](err)
	switch {
	case clientcmd.IsEmptyConfig(err), clientcmd.IsConfigurationInvalid(err) && strings.Contains(err.Error(), "no configuration"):
		return "there is no cluster: set --kubeconfig, --context or the environment variable KUBECONFIG"
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("a right is missing: %v\nAsk an administrator of the cluster for a Role or ClusterRole with it.", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%v: the API server does not accept these credentials: log in again, or set --context or --kubeconfig", err)
	case meta.IsNoMatchError(err):
		return fmt.Sprintf("%v: the operator is not installed in this cluster, or older than this plugin: install or upgrade it", err)
	case unreachable:
		return fmt.Sprintf("%v: the API server does not answer: check --context and --kubeconfig, and that the cluster runs", err)
	}
	return err.Error()
}
