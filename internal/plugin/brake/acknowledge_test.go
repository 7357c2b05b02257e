package brake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

const later = "2026-01-02T03:05:00.000000001Z"

// operator does, when a Cloud is patched, what the operator does afterwards.
func operator(then func(*pcapi.Cloud)) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
		if err := c.Patch(ctx, o, patch, options...); err != nil {
			return err
		}
		patched := o.(*pcapi.Cloud).DeepCopy()
		if patched.Annotations[pcapi.AcknowledgeAnnotation] != patched.Status.BrakedSnapshot {
			return errors.New("another snapshot was acknowledged")
		}
		then(patched)
		return c.Status().Update(ctx, patched)
	}}
}

// meanwhile changes the status of the Cloud between the first read of the command and its
// second, as the operator does after a listing.
func meanwhile(change func(*pcapi.Cloud)) interceptor.Funcs {
	reads := 0
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		reads++
		if reads == 2 {
			found := &pcapi.Cloud{}
			if err := c.Get(ctx, key, found); err != nil {
				return err
			}
			change(found)
			if err := c.Status().Update(ctx, found); err != nil {
				return err
			}
		}
		return c.Get(ctx, key, o, options...)
	}}
}

func released(c *pcapi.Cloud) { c.Status.BrakedSnapshot = "" }
func setAnew(c *pcapi.Cloud)  { c.Status.BrakedSnapshot = later }
func unchanged(*pcapi.Cloud)  {}

func ready(reason, message string) func(*pcapi.Cloud) {
	return func(c *pcapi.Cloud) {
		c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	}
}

func TestAcknowledge(t *testing.T) {
	for name, tc := range map[string]struct {
		// off is whether the brake is off, and paused whether the Cloud is paused.
		off, paused bool
		funcs       interceptor.Funcs
		args        []string
		answer      string
		// acknowledged is whether the annotation is set at the end.
		acknowledged bool
	}{
		"the brake is off":                                {off: true},
		"asked, and the answer is yes":                    {answer: "y\n", funcs: operator(released), acknowledged: true},
		"asked, and the answer is no":                     {answer: "\n"},
		"nobody to ask":                                   {},
		"yes":                                             {args: []string{"--yes"}, funcs: operator(released), acknowledged: true},
		"the snapshot that was shown":                     {args: []string{"--snapshot=" + snapshot}, funcs: operator(released), acknowledged: true},
		"another snapshot":                                {args: []string{"--snapshot=" + later}},
		"without waiting":                                 {args: []string{"--yes", "--wait=false"}, acknowledged: true},
		"set anew before it is acknowledged":              {args: []string{"--yes"}, funcs: meanwhile(setAnew)},
		"released by somebody else":                       {args: []string{"--yes"}, funcs: meanwhile(released)},
		"set anew after it was acknowledged":              {args: []string{"--yes"}, funcs: operator(setAnew), acknowledged: true},
		"no operator":                                     {args: []string{"--yes"}, funcs: operator(unchanged), acknowledged: true},
		"the cloud does not answer":                       {args: []string{"--yes", "--timeout=5s"}, funcs: operator(ready(pcapi.UnreachableReason, "connection refused")), acknowledged: true},
		"the Cloud is paused":                             {args: []string{"--yes"}, paused: true, funcs: operator(unchanged), acknowledged: true},
		"a timeout that cannot be kept":                   {args: []string{"--yes", "--timeout=-1s"}},
		"an API server that changes the Cloud in between": {args: []string{"--yes"}, funcs: merge(meanwhile(ready("Connecting", "")), operator(released)), acknowledged: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloud("west", snapshot)
				if tc.off {
					c = cloud("west", "")
				}
				if tc.paused {
					c.Annotations = map[string]string{pcapi.PausedAnnotation: "true"}
				}
				cluster := plugintest.Builder(t, c).WithInterceptorFuncs(tc.funcs).Build()
				got := plugintest.Setup{Client: cluster, Answer: tc.answer}.Run(t.Context(), append([]string{"brake", "acknowledge", "west"}, tc.args...)...)
				plugintest.Golden(t, "acknowledge/"+name, []plugintest.Result{got}, snapshot, "<snapshot>", later, "<later>")
				after := &pcapi.Cloud{}
				if err := cluster.Get(t.Context(), client.ObjectKey{Name: "west"}, after); err != nil {
					t.Fatal(err)
				}
				if value := after.Annotations[pcapi.AcknowledgeAnnotation]; (value == snapshot) != tc.acknowledged || (value != "" && !tc.acknowledged) {
					t.Errorf("acknowledged %q, want the shown snapshot: %t", value, tc.acknowledged)
				}
			})
		})
	}
}

func TestAcknowledgeListsTheVMsWhoseServersAreMissingBeforeItAsks(t *testing.T) {
	s := plugintest.Setup{Client: plugintest.NewClient(t, cloud("west", snapshot)), Answer: "\n"}
	plugintest.Golden(t, "acknowledge-missing", []plugintest.Result{
		s.Run(t.Context(), "brake", "acknowledge", "west", "--operator-url", fakeOperator(t, 12)),
		s.Run(t.Context(), "brake", "acknowledge", "west", "--yes", "--wait=false", "--operator-url", fakeOperator(t, 2)),
	}, snapshot, "<snapshot>")
}

func merge(reads, writes interceptor.Funcs) interceptor.Funcs {
	reads.Patch = writes.Patch
	return reads
}

func TestAcknowledgeThatIsInterruptedSaysSo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	cluster := plugintest.Builder(t, cloud("west", snapshot)).WithInterceptorFuncs(operator(func(*pcapi.Cloud) { interrupt() })).Build()
	got := plugintest.Setup{Client: cluster}.Run(ctx, "brake", "acknowledge", "west", "--yes")
	plugintest.Golden(t, "interrupted", []plugintest.Result{got}, snapshot, "<snapshot>")
}
