package brake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
)

const (
	// interval is the time between two reads while the command waits.
	interval = 500 * time.Millisecond
	// operatorTimeout is how long the operator may take to answer which servers are missing.
	operatorTimeout = 15 * time.Second
)

// acknowledge is what to release.
type acknowledge struct {
	env             *plugin.Env
	operator        operator.Flags
	cloud, snapshot string
	yes, wait       bool
	timeout         time.Duration
}

func newAcknowledge(env *plugin.Env) *cobra.Command {
	a := acknowledge{env: env}
	cmd := &cobra.Command{
		Use:   "acknowledge CLOUD",
		Short: "Release the brake of a Cloud",
		Long: `Release the brake of a Cloud: the operator then believes the listing, and VMs whose
servers do not exist become Lost.

It acknowledges one snapshot, that of --snapshot or the one that it shows before it asks.
It then also lists the first ten of the VMs whose servers are missing, in all namespaces.
A brake that was set again meanwhile, by another snapshot, stays on.

Rights: get and patch clouds.samplecontroller.k8s.io in the cluster. For the VMs that it
lists before it asks, also
` + operator.Rights + ` A note says that they are not known without.`,
		Example: `  kubectl privatecloud brake acknowledge default
  kubectl privatecloud brake acknowledge default --snapshot=2026-01-02T03:04:05.000000006Z`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.CompleteNames("cloud"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a.cloud = args[0]
			c, err := env.Client()
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	a.operator.Bind(flags)
	flags.StringVar(&a.snapshot, "snapshot", "", "the snapshot to acknowledge, as brake shows it; needs no confirmation")
	flags.BoolVar(&a.yes, "yes", false, "acknowledge the snapshot that is current now, without a question")
	flags.BoolVar(&a.wait, "wait", true, "wait until the operator has released the brake")
	flags.DurationVar(&a.timeout, "timeout", time.Minute, "how long to wait")
	return cmd
}

func (a *acknowledge) run(ctx context.Context, c client.Client) error {
	if a.wait && a.timeout <= 0 {
		return fmt.Errorf("--timeout is %s: set a positive duration, such as 1m", a.timeout)
	}
	found := &pcapi.Cloud{}
	if err := a.get(ctx, c, found); err != nil {
		return err
	}
	current := stateOf(found)
	if !current.Braked {
		fmt.Fprintf(a.env.Out, "The brake of Cloud %s is off: nothing was changed.\n", a.cloud)
		return nil
	}
	if err := a.confirm(ctx, current); err != nil {
		return err
	}
	if err := a.annotate(ctx, c); err != nil {
		return err
	}
	if !a.wait {
		fmt.Fprintf(a.env.Out, "Snapshot %s of Cloud %s is acknowledged. The operator releases the brake when it reconciles the Cloud.\n", a.snapshot, a.cloud)
		return nil
	}
	return a.await(ctx, c)
}

// confirm sets the snapshot to acknowledge: that of the flag, or the current one if the user agrees
// who was shown the VMs whose servers are missing.
func (a *acknowledge) confirm(ctx context.Context, current state) error {
	switch {
	case a.snapshot != "":
		return a.check(current.Snapshot)
	case !a.yes:
		shown := []state{current}
		asked, cancel := context.WithTimeout(ctx, operatorTimeout)
		defer cancel()
		addMissing(asked, a.env, a.operator, shown)
		fmt.Fprint(a.env.ErrOut, advice(shown[0]))
		if err := a.env.Confirm(fmt.Sprintf("Release the brake of Cloud %s?", a.cloud)); err != nil {
			return err
		}
	}
	a.snapshot = current.Snapshot
	return nil
}

// check fails if the brake that is on is not that of the snapshot.
func (a *acknowledge) check(snapshot string) error {
	if snapshot != a.snapshot {
		return fmt.Errorf("the brake of Cloud %[1]s is that of snapshot %[2]s, not of %[3]s, so it was not released: look at it with kubectl privatecloud brake %[1]s", a.cloud, snapshot, a.snapshot)
	}
	return nil
}

// annotate acknowledges the snapshot if the brake is still that of it.
func (a *acknowledge) annotate(ctx context.Context, c client.Client) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found := &pcapi.Cloud{}
		if err := a.get(ctx, c, found); err != nil {
			return err
		}
		if found.Status.BrakedSnapshot == "" {
			return nil // somebody else has acknowledged it
		}
		if err := a.check(found.Status.BrakedSnapshot); err != nil {
			return err
		}
		before := found.DeepCopy()
		metav1.SetMetaDataAnnotation(&found.ObjectMeta, pcapi.AcknowledgeAnnotation, a.snapshot)
		if err := c.Patch(ctx, found, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("annotate Cloud %q: %w", a.cloud, err)
		}
		return nil
	})
}

// await waits until the operator has released the brake.
func (a *acknowledge) await(ctx context.Context, c client.Client) error {
	found := &pcapi.Cloud{}
	err := wait.PollUntilContextTimeout(ctx, interval, a.timeout, true, func(ctx context.Context) (bool, error) {
		err := a.get(ctx, c, found)
		if err != nil && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
			return false, err
		}
		return err == nil && found.Status.BrakedSnapshot != a.snapshot, nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted: snapshot %s of Cloud %s is acknowledged, and the operator releases the brake when it reconciles the Cloud", a.snapshot, a.cloud)
	case errors.Is(err, context.DeadlineExceeded):
		return a.late(found)
	case err != nil:
		return err
	case found.Status.BrakedSnapshot != "":
		return fmt.Errorf("snapshot %s was acknowledged, but a later listing has set the brake of Cloud %[2]s again: look at it with kubectl privatecloud brake %[2]s", a.snapshot, a.cloud)
	}
	fmt.Fprintf(a.env.Out, "The brake of Cloud %s is released.\n", a.cloud)
	return nil
}

// late returns why the operator may not have released the brake.
func (a *acknowledge) late(found *pcapi.Cloud) error {
	why := "check that the operator runs"
	ready := meta.FindStatusCondition(found.Status.Conditions, pcapi.ReadyCondition)
	switch {
	case pcapi.Paused(found):
		why = "the Cloud is paused: remove the annotation " + pcapi.PausedAnnotation
	case ready != nil && ready.Reason != pcapi.ServersVanishedReason:
		why = fmt.Sprintf("the Cloud reports %s: %s; the brake is released once this is over", ready.Reason, ready.Message)
	}
	return fmt.Errorf("snapshot %s of Cloud %s is acknowledged, and the operator has not released the brake after %s: %s", a.snapshot, a.cloud, a.timeout, why)
}

func (a *acknowledge) get(ctx context.Context, c client.Client, into *pcapi.Cloud) error {
	if err := c.Get(ctx, client.ObjectKey{Name: a.cloud}, into); err != nil {
		return fmt.Errorf("read Cloud %q: %w", a.cloud, err)
	}
	return nil
}
