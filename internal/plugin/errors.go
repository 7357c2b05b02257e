package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// Exit codes besides 0.
const (
	exitError = 1
	// ExitChanges is the exit code of a plan that has changes.
	ExitChanges = 2
	// exitInterrupted is that of a process that a SIGINT ends: 128 + 2.
	exitInterrupted = 130
)

// ExitError ends the plugin with an exit code and without a message.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// errNoCluster is returned if nothing names an API server.
var errNoCluster = errors.New("there is no cluster: set --kubeconfig, --server or the environment variable KUBECONFIG")

// Main runs a command and returns the exit code. Errors go to its stderr.
func Main(ctx context.Context, env *Env, cmd *cobra.Command) int {
	env.interrupted = ctx.Done()
	code, message := env.Exit(ctx, cmd.ExecuteContext(ctx))
	if message != "" {
		fmt.Fprintln(env.ErrOut, "error:", message)
	}
	return code
}

// Exit returns the exit code of an error, and its message for the user, empty for none.
func (e *Env) Exit(ctx context.Context, err error) (code int, message string) {
	exit, ok := errors.AsType[*ExitError](err)
	switch {
	case err == nil:
		return 0, ""
	case ok:
		return exit.Code, ""
	case ctx.Err() != nil && interrupted(err):
		return exitInterrupted, "interrupted"
	case ctx.Err() != nil:
		return exitInterrupted, err.Error()
	}
	return exitError, e.explain(err)
}

// interrupted reports whether an error says no more than that the context ended, which
// closes connections. The limiter of client-go and waits of apimachinery do not wrap its
// error.
func interrupted(err error) bool {
	_, closed := connectionError(err)
	return closed || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), context.Canceled.Error())
}

// explain returns the message of an error, with what the user can do about it.
func (e *Env) explain(err error) string {
	if kind, unknown := unknownKind(err); unknown {
		return e.unknownKind(kind)
	}
	switch {
	case errors.Is(err, errNoCluster):
		return err.Error()
	case isKubeconfig(err):
		return fmt.Sprintf("%v: correct it, or set --kubeconfig or --context; kubectl config get-contexts lists the contexts", err)
	case apierrors.IsForbidden(err):
		return forbidden(err)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("%v: the API server does not accept these credentials: log in again, or set --context or --kubeconfig", err)
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("%v: check the name, and --namespace and --context", err)
	case apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err):
		return fmt.Sprintf("%v: the API server is overloaded or starts: try again later", err)
	}
	return e.transport(err)
}

// transport explains errors of the connection.
func (e *Env) transport(err error) string {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	failed, unreachable := connectionError(err)
	switch {
	case untrusted:
		return fmt.Sprintf("%v: check --certificate-authority, and that --context and --kubeconfig name the right cluster", err)
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return fmt.Sprintf("%v: the API server is overloaded or starts: try again later, or raise --request-timeout", err)
	case unreachable && failed.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return e.noAnswer(err)
	case unreachable:
		return fmt.Sprintf("%v: the API server does not answer: check --context and --kubeconfig, and that the cluster runs", err)
	}
	return err.Error()
}

// noAnswer explains that the time for an answer is over. It replaces the cause, since several
// timers of net/http and context end then, and each is reported in other words.
func (e *Env) noAnswer(err error) string {
	cause := context.DeadlineExceeded
	if request, ok := errors.AsType[*url.Error](err); ok {
		cause = request.Err
	} else if failed, ok := errors.AsType[net.Error](err); ok {
		cause = failed
	}
	late, next := "no answer in time", "check"
	if limit := *e.Config.Timeout; limit != "0" && errors.Is(err, context.DeadlineExceeded) {
		late, next = "no answer within --request-timeout="+limit, "raise it, or check"
	}
	return fmt.Sprintf("%s: %s --context and --kubeconfig, and that the cluster runs", strings.ReplaceAll(err.Error(), cause.Error(), late), next)
}

// connectionError returns the error of a connection. The errors of files look like those of
// connections, and are none.
func connectionError(err error) (net.Error, bool) {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed, true
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return failed, true
	}
	return nil, false
}

// unknownKind returns which kind of the operator a cluster lacks, empty if the error does
// not say.
func unknownKind(err error) (kind string, unknown bool) {
	if failed, ok := errors.AsType[*meta.NoKindMatchError](err); ok {
		return failed.GroupKind.Kind, failed.GroupKind.Group == pcapi.GroupVersion.Group
	}
	if failed, ok := errors.AsType[*meta.NoResourceMatchError](err); ok {
		return failed.PartialResource.Resource, failed.PartialResource.Group == pcapi.GroupVersion.Group
	}
	return "", false
}

// kubeconfigError is an error of the kubeconfig.
type kubeconfigError struct{ err error }

func (e *kubeconfigError) Error() string { return "read the kubeconfig: " + e.err.Error() }
func (e *kubeconfigError) Unwrap() error { return e.err }

func isKubeconfig(err error) bool {
	_, ok := errors.AsType[*kubeconfigError](err)
	return ok
}

// denied are the parts of what the API server answers if a right is missing.
var denied = regexp.MustCompile(`User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)" (at the cluster scope|in the namespace "([^"]*)")`)

// forbidden says which right is missing, and which Role has it. What an admission policy
// forbids is said as it is.
func forbidden(err error) string {
	parts := denied.FindStringSubmatch(err.Error())
	if parts == nil {
		return err.Error()
	}
	user, verb, resource, group, namespace := parts[1], parts[2], parts[3], parts[4], parts[6]
	kind, where := "ClusterRole", "in the cluster"
	if namespace != "" {
		kind, where = "Role", fmt.Sprintf("in namespace %q", namespace)
	}
	qualified := resource
	if group != "" {
		qualified, _, _ = strings.Cut(resource, "/")
		qualified += "." + group + strings.TrimPrefix(resource, strings.Split(resource, "/")[0])
	}
	message := fmt.Sprintf("a right is missing: user %q may not %s %s %s.\nAsk an administrator of the cluster for a %s with it:\n  kubectl create %s NAME --verb=%s --resource=%s",
		user, verb, qualified, where, kind, strings.ToLower(kind), verb, qualified)
	if namespace != "" {
		message += " -n " + namespace
	}
	if group == pcapi.GroupVersion.Group {
		message += fmt.Sprintf("\nThe operator's ClusterRole …-%s-%s-role has it.", kindOf(resource), roleFor(verb))
	}
	return message
}

// roleFor returns which of the roles of a kind has a verb.
func roleFor(verb string) string {
	switch verb {
	case "get", "list", "watch":
		return "viewer"
	}
	return "editor"
}

// kindOf returns the name of a kind in the names of its roles.
func kindOf(resource string) string {
	resource, _, _ = strings.Cut(resource, "/")
	for kind := range resources {
		if strings.HasPrefix(resource, kind) && len(resource) <= len(kind)+len("es") {
			return kind
		}
	}
	return resource
}
