package approve_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

var hash = strings.Repeat("ab", 32)

func plan(phase pcapi.PlanPhase, changes ...pcapi.PlannedChange) *pcapi.PlanStatus {
	return &pcapi.PlanStatus{Number: 3, Hash: hash, Phase: phase, Generation: 2, Cloud: "home", Changes: changes}
}

// as returns an API server that has this name for the user, empty for one that does not say it. As that of a cluster, it
// decodes what is read into the object as it is, without emptying that before.
func as(user string) interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		read := o.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, key, read, options...); err != nil {
			return err
		}
		text, err := json.Marshal(read)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, o)
	}, Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		review, ok := o.(*authenticationv1.SelfSubjectReview)
		if !ok {
			return c.Create(ctx, o, options...)
		}
		if user == "" {
			return apierrors.NewForbidden(schema.GroupResource{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}, "", nil)
		}
		review.Status.UserInfo.Username = user
		return nil
	}}
}

func TestApprove(t *testing.T) {
	resize := plan(pcapi.PlanPending, pcapi.PlannedChange{Action: pcapi.PlannedUpdate, Name: "web", ID: "vm-1", Details: []string{"cpu 2 to 4"}, IfStopNeeded: pcapi.StopNeededWait})
	rolls := plan(pcapi.PlanPending,
		pcapi.PlannedChange{Action: pcapi.PlannedCreate, Count: 4, Details: []string{"cpu 2"}},
		pcapi.PlannedChange{Action: pcapi.PlannedDelete, Count: 5, Members: []string{"a", "b", "c", "d"}})
	for name, tc := range map[string]struct {
		plan   *pcapi.PlanStatus
		group  bool
		args   []string
		answer string
		user   string
		// want is the annotation afterwards.
		want string
	}{
		"no plan":                              {args: []string{"vm/web", "--yes"}, user: "alice"},
		"a plan that is applied":               {plan: plan(pcapi.PlanApplied), args: []string{"vm/web", "--yes"}, user: "alice"},
		"asked, and the answer is yes":         {plan: resize, args: []string{"vm/web"}, answer: "y\n", user: "alice", want: hash + " alice"},
		"asked, and the answer is no":          {plan: resize, args: []string{"vm/web"}, answer: "\n", user: "alice"},
		"nobody to ask":                        {plan: resize, args: []string{"vm/web"}, user: "alice"},
		"the plan that was read":               {plan: resize, args: []string{"vms/web", "--plan=" + hash}, user: "system:serviceaccount:ci:bot", want: hash + " system:serviceaccount:ci:bot"},
		"kind and name":                        {plan: resize, args: []string{"vm", "web", "--yes"}, user: "alice", want: hash + " alice"},
		"another plan":                         {plan: resize, args: []string{"vm/web", "--plan=" + strings.Repeat("cd", 32)}, user: "alice"},
		"a group":                              {plan: rolls, group: true, args: []string{"vmgroup/web", "--yes"}, user: "alice", want: hash + " alice"},
		"the API server does not say the name": {plan: resize, args: []string{"vm/web", "--yes"}, want: hash},
		"no such object":                       {plan: resize, args: []string{"vm/db", "--yes"}, user: "alice"},
		"no kind with plans":                   {plan: resize, args: []string{"network/web", "--yes"}, user: "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "dev", Name: "web"}
			var o client.Object = &pcapi.VM{ObjectMeta: meta, Status: pcapi.VMStatus{Plan: tc.plan}}
			if tc.group {
				o = &pcapi.VmGroup{ObjectMeta: meta, Status: pcapi.VmGroupStatus{Plan: tc.plan}}
			}
			cluster := plugintest.Builder(t, o).WithInterceptorFuncs(as(tc.user)).Build()
			got := plugintest.Setup{Client: cluster, Answer: tc.answer}.Run(t.Context(), append([]string{"approve", "-n", "dev"}, tc.args...)...)
			plugintest.Golden(t, name, []plugintest.Result{got}, hash, "<hash>")
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			if value := o.GetAnnotations()[pcapi.ApprovedPlanAnnotation]; value != tc.want {
				t.Errorf("the annotation is %q, want %q", value, tc.want)
			}
		})
	}
}

// The plan is replaced between the read and the approval.
func TestPlanThatWasReplacedIsNotApproved(t *testing.T) {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "web"}, Status: pcapi.VMStatus{Plan: plan(pcapi.PlanPending)}}
	funcs := as("alice")
	review := funcs.Create
	funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		changed := &pcapi.VM{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(vm), changed); err != nil {
			return err
		}
		changed.Status.Plan.Hash = strings.Repeat("cd", 32)
		if err := c.Status().Update(ctx, changed); err != nil {
			return err
		}
		return review(ctx, c, o, options...)
	}
	cluster := plugintest.Builder(t, vm).WithInterceptorFuncs(funcs).Build()
	got := plugintest.Setup{Client: cluster}.Run(t.Context(), "approve", "vm/web", "-n", "dev", "--yes")
	if got.Code != 1 || !strings.Contains(got.Err, "approve plan 3 of vm dev/web: it was replaced by another one") {
		t.Errorf("%s", got)
	}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil || vm.Annotations[pcapi.ApprovedPlanAnnotation] != "" {
		t.Errorf("%v, annotations %v", err, vm.Annotations)
	}
}

// The operator writes the status while somebody reads the plan.
func TestPlanIsApprovedAlthoughTheStatusChanges(t *testing.T) {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "dev", Name: "web"}, Status: pcapi.VMStatus{Plan: plan(pcapi.PlanPending)}}
	funcs, writes := as("alice"), 0
	funcs.Patch = func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
		writes++
		if writes == 1 {
			changed := &pcapi.VM{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(vm), changed); err != nil {
				return err
			}
			changed.Status.CPUUtilization = new(int32(50))
			if err := c.Status().Update(ctx, changed); err != nil {
				return err
			}
		}
		return c.Patch(ctx, o, patch, options...)
	}
	cluster := plugintest.Builder(t, vm).WithInterceptorFuncs(funcs).Build()
	got := plugintest.Setup{Client: cluster}.Run(t.Context(), "approve", "vm/web", "-n", "dev", "--yes")
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(vm), vm); err != nil || got.Code != 0 || vm.Annotations[pcapi.ApprovedPlanAnnotation] != hash+" alice" || writes != 2 {
		t.Errorf("%v, %d writes, annotations %v: %s", err, writes, vm.Annotations, got)
	}
}
