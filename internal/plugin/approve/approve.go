// Package approve is the command that approves the plan of a VM or a VmGroup.
package approve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/plugin"
)

// kinds are the kinds whose changes can require an approval.
var kinds = map[string]func() approval.Object{
	"vm":      func() approval.Object { return &pcapi.VM{} },
	"vmgroup": func() approval.Object { return &pcapi.VmGroup{} },
}

// command is what to approve.
type command struct {
	env        *plugin.Env
	kind, name string
	plan       string
	yes        bool
}

// NewCommand returns the command "approve".
func NewCommand(env *plugin.Env) *cobra.Command {
	a := command{env: env}
	cmd := &cobra.Command{
		Use:   "approve KIND/NAME",
		Short: "Approve the plan of a VM or a VmGroup that requires an approval",
		Long: `Show the plan of a VM or a VmGroup whose spec.approval is Required, and approve it. KIND is vm or vmgroup.

It approves one plan, that of --plan or the one that it shows before it asks. A plan that was replaced by
another one meanwhile is not approved. The approval has your name, as the API server knows it; status.plan
shows it with the time.

Rights: get and patch of the object and, with the component approval, the verb approve of it; create
selfsubjectreviews.authentication.k8s.io, which everybody has by default.`,
		Example: `  kubectl privatecloud approve vm/web -n dev
  kubectl privatecloud approve vmgroup/workers --plan=6d0c54aef9cd44f66e0b7b8b9a0ef0e2b0f7d1f9b5cc8f3f3b9f1f3d1f0a9c11`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: env.CompleteObjects("vm", "vmgroup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.parse(strings.Join(args, "/")); err != nil {
				return err
			}
			c, err := env.Client()
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.plan, "plan", "", "the hash of the plan to approve, as status.plan shows it; needs no confirmation")
	flags.BoolVar(&a.yes, "yes", false, "approve the plan that is current now, without a question")
	return cmd
}

func (a *command) parse(text string) error {
	kind, name, _ := strings.Cut(text, "/")
	a.kind, a.name = plugin.Resource(kind), name
	if kinds[a.kind] == nil || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("%q names no object with plans: write vm/NAME or vmgroup/NAME, and the namespace with -n", text)
	}
	return nil
}

func (a *command) run(ctx context.Context, c client.Client) error {
	namespace, err := a.env.Namespace()
	if err != nil {
		return err
	}
	found := kinds[a.kind]()
	at := fmt.Sprintf("%s %s/%s", a.kind, namespace, a.name)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: a.name}, found); err != nil {
		return fmt.Errorf("read %s: %w", at, err)
	}
	_, plan := found.Approval()
	switch {
	case plan == nil || plan.Phase != pcapi.PlanPending:
		fmt.Fprintf(a.env.Out, "No plan of %s waits for an approval: nothing was changed.\n", at)
		return nil
	case a.plan != "" && a.plan != plan.Hash:
		return fmt.Errorf("the plan of %[1]s that waits is %[2]s, not %[3]s, so nothing was approved: look at it with kubectl privatecloud approve %[4]s/%[5]s -n %[6]s", at, plan.Hash, a.plan, a.kind, a.name, namespace)
	}
	show(a.env, at, plan)
	if a.plan == "" && !a.yes {
		if err := a.env.Confirm(fmt.Sprintf("Approve plan %d of %s?", plan.Number, at)); err != nil {
			return err
		}
	}
	return a.approve(ctx, c, client.ObjectKeyFromObject(found), at, plan)
}

// show prints what a plan does, a line for each change and each member.
func show(env *plugin.Env, at string, plan *pcapi.PlanStatus) {
	fmt.Fprintf(env.ErrOut, "Plan %d of %s on Cloud %s, %s:\n", plan.Number, at, plan.Cloud, plan.Hash)
	for i := range plan.Changes {
		change := plan.Changes[i]
		text := approval.Text(change)
		if change.ID != "" {
			text += ", id " + approval.Quoted(change.ID)
		}
		switch change.IfStopNeeded {
		case pcapi.StopNeededRestart:
			text += "; stopped and started if the cloud changes it only while it is off"
		case pcapi.StopNeededWait:
			text += "; waits until somebody stops it if the cloud changes it only while it is off"
		}
		fmt.Fprintf(env.ErrOut, "  %s\n", text)
		if len(change.Members) > 1 {
			for _, name := range change.Members {
				fmt.Fprintf(env.ErrOut, "    %s\n", name)
			}
		}
	}
}

// approve sets the annotation, if the plan that was shown still waits. It reads the object anew, since the operator
// may have stored another plan while the user read this one.
func (a *command) approve(ctx context.Context, c client.Client, key client.ObjectKey, at string, shown *pcapi.PlanStatus) error {
	by, err := whoAmI(ctx, c)
	if err != nil {
		fmt.Fprintf(a.env.ErrOut, "The approval will not have your name: %v\n", err)
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		fresh := kinds[a.kind]()
		if err := c.Get(ctx, key, fresh); err != nil {
			return err
		}
		if _, now := fresh.Approval(); now == nil || now.Hash != shown.Hash || now.Phase != pcapi.PlanPending {
			return errors.New("it was replaced by another one, or approved by somebody else: run the command again")
		}
		before := fresh.DeepCopyObject().(client.Object)
		annotations := maps.Clone(fresh.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[pcapi.ApprovedPlanAnnotation] = approval.Annotation(shown, by)
		fresh.SetAnnotations(annotations)
		return c.Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("approve plan %d of %s: %w", shown.Number, at, err)
	}
	fmt.Fprintf(a.env.Out, "Plan %d of %s is approved: the operator makes its changes when it reconciles the object.\n", shown.Number, at)
	return nil
}

// whoAmI returns the name that the API server has for the user.
func whoAmI(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Create(ctx, review); err != nil {
		return "", fmt.Errorf("ask who you are: %w", err)
	}
	if review.Status.UserInfo.Username == "" {
		return "", errors.New("ask who you are: the API server does not say it")
	}
	return review.Status.UserInfo.Username, nil
}
