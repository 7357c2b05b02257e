// Package console is the command that prints the last lines of what the serial console of a VM printed.
package console

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/console"
	"github.com/privatecloud/operator/internal/plugin"
)

const (
	// interval is the time between two reads while the command waits for the answer.
	interval = 250 * time.Millisecond
	// cleanupTimeout bounds the deletion of the request. The operator deletes it five minutes later otherwise.
	cleanupTimeout = 5 * time.Second
)

// command is whose console to print.
type command struct {
	env     *plugin.Env
	vm      string
	lines   int32
	timeout time.Duration
}

// NewCommand returns the command "console".
func NewCommand(env *plugin.Env) *cobra.Command {
	c := command{env: env}
	cmd := &cobra.Command{
		Use:   "console VM",
		Short: "Print the last lines of the serial console of a VM",
		Long: `Print the last lines of what the serial console of a VM printed: messages of the kernel and of cloud-init
of a guest that does not come up.

It creates a VMConsoleRequest, waits until the operator has answered it, and deletes it. The answer is
encrypted with a key that only this process has. Colours are left out, and other characters that control a
terminal are printed as �. The Cloud needs the capability console.

Rights: create, get and delete vmconsolerequests.samplecontroller.k8s.io in the namespace, which the
ClusterRole edit has.`,
		Example: `  kubectl privatecloud console web -n dev
  kubectl privatecloud console web --lines=1000 | less`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames("vm"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.vm = args[0]
			switch {
			case c.lines < 1 || c.lines > cloud.MaxConsoleLines:
				return fmt.Errorf("--lines is %d: set 1 to %d", c.lines, cloud.MaxConsoleLines)
			case c.timeout <= 0:
				return fmt.Errorf("--timeout is %s: set a positive duration, such as 1m", c.timeout)
			}
			api, err := env.Client()
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), api)
		},
	}
	flags := cmd.Flags()
	flags.Int32Var(&c.lines, "lines", 100, "how many of the last lines are printed, at most 1000; more than 64 KiB are cut at the beginning")
	flags.DurationVar(&c.timeout, "timeout", time.Minute, "how long to wait for the operator and the cloud")
	return cmd
}

func (c *command) run(ctx context.Context, api client.Client) error {
	namespace, err := c.env.Namespace()
	if err != nil {
		return err
	}
	key, err := console.NewKey()
	if err != nil {
		return err
	}
	request := &pcapi.VMConsoleRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "console-"},
		Spec:       pcapi.VMConsoleRequestSpec{VMName: c.vm, Lines: c.lines, PublicKey: key.Public()},
	}
	if err := api.Create(ctx, request); err != nil {
		return fmt.Errorf("request the console of VM %s/%s: %w", namespace, c.vm, err)
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		if err := api.Delete(cleanup, request); client.IgnoreNotFound(err) != nil {
			fmt.Fprintf(c.env.ErrOut, "warning: VMConsoleRequest %s/%s was not deleted; the operator deletes it: %v\n", namespace, request.Name, err)
		}
	}()
	if err := c.await(ctx, api, request); err != nil {
		return err
	}
	text, err := key.Open(request.UID, request.Status.Console)
	if err != nil {
		return err
	}
	if text == "" {
		fmt.Fprintf(c.env.ErrOut, "The serial console of VM %s/%s has printed nothing.\n", namespace, c.vm)
	}
	fmt.Fprint(c.env.Out, plain(text))
	return nil
}

// sequences are those by which a program colours text, moves the cursor or names a terminal (ECMA-48: CSI and OSC).
var sequences = regexp.MustCompile("\x1b\\[[\\x30-\\x3f]*[\\x20-\\x2f]*[\\x40-\\x7e]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)")

// plain returns a text without these sequences, each line of which ends with a line feed: a console also has carriage returns.
func plain(text string) string {
	return returns.ReplaceAllString(sequences.ReplaceAllString(text, ""), "\n")
}

var returns = regexp.MustCompile(`\r+\n?`)

// await waits until the request is answered or refused.
func (c *command) await(ctx context.Context, api client.Client, request *pcapi.VMConsoleRequest) error {
	var ready *metav1.Condition
	var unread error
	err := wait.PollUntilContextTimeout(ctx, interval, c.timeout, true, func(ctx context.Context) (bool, error) {
		if unread = api.Get(ctx, client.ObjectKeyFromObject(request), request); unread != nil {
			return false, lasting(unread)
		}
		ready = meta.FindStatusCondition(request.Status.Conditions, pcapi.ReadyCondition)
		return request.Status.ReadTime != nil || meta.IsStatusConditionTrue(request.Status.Conditions, pcapi.StalledCondition), nil
	})
	switch {
	case err == nil && request.Status.ReadTime != nil:
		return nil
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("read VMConsoleRequest %s/%s: %w", request.Namespace, request.Name, err)
	case unread != nil:
		return fmt.Errorf("read VMConsoleRequest %s/%s: %w", request.Namespace, request.Name, unread)
	case ready == nil:
		return fmt.Errorf("the console of VM %s/%s was not read within %s: check that the operator runs, and that it is not older than this plugin", request.Namespace, c.vm, c.timeout)
	}
	return fmt.Errorf("the console of VM %s/%s was not read: %s: %s", request.Namespace, c.vm, ready.Reason, ready.Message)
}

// lasting returns an error that does not pass by itself, nil for any other.
func lasting(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return err
	}
	return nil
}
