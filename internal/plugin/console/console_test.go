package console_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/console"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

// answered is the status of a request that was answered with a text.
func answered(t *testing.T, text string) func(*pcapi.VMConsoleRequest) {
	return func(r *pcapi.VMConsoleRequest) {
		sealed, err := console.Seal(r.Spec.PublicKey, r.UID, text)
		if err != nil {
			t.Error(err)
		}
		r.Status.Console, r.Status.ReadTime = sealed, new(metav1.Now())
	}
}

// refused is the status of a request that is not answered: Ready is false and Stalled as given.
func refused(stalled metav1.ConditionStatus, reason, message string) func(*pcapi.VMConsoleRequest) {
	return func(r *pcapi.VMConsoleRequest) {
		r.Status.Conditions = []metav1.Condition{
			{Type: pcapi.ReadyCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message},
			{Type: pcapi.StalledCondition, Status: stalled, Reason: reason},
		}
	}
}

// operator answers each request when it is read for the third time.
func operator(answer func(*pcapi.VMConsoleRequest)) interceptor.Funcs {
	reads := 0
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetUID(types.UID("uid-of-" + o.GetGenerateName()))
			return c.Create(ctx, o, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			if reads == 1 {
				return apierrors.NewServiceUnavailable("the API server is restarted")
			}
			if err := c.Get(ctx, key, o, options...); err != nil {
				return err
			}
			if r := o.(*pcapi.VMConsoleRequest); reads > 2 && answer != nil {
				answer(r)
			}
			return nil
		},
	}
}

func TestConsole(t *testing.T) {
	tests := map[string]struct {
		answer       func(*pcapi.VMConsoleRequest)
		args         []string
		out, problem string
		code         int
	}{
		"prints what it was answered": {answer: answered(t, "[    0.0] Linux\nweb login: "), out: "[    0.0] Linux\nweb login: "},
		"prints no terminal sequences": {
			answer: answered(t, "\x1b[2J\x1b]0;owned\a[\x1b[0;32m  OK  \x1b[0m] Reached target\r\n10%\r20%\r\r\n\x1bcbell\a"),
			out:    "[  OK  ] Reached target\n10%\n20%\n�cbell�",
		},
		"says that nothing was printed": {answer: answered(t, ""), problem: "The serial console of VM dev/web has printed nothing.\n"},
		"names the reason of a refusal": {
			answer:  refused(metav1.ConditionTrue, "Unsupported", `Cloud "default" does not show the consoles of its servers`),
			problem: `error: the console of VM dev/web was not read: Unsupported: Cloud "default" does not show the consoles of its servers`, code: 1,
		},
		"names what it waited for": {
			answer:  refused(metav1.ConditionFalse, "CloudUnavailable", "waiting for Cloud"),
			problem: "error: the console of VM dev/web was not read: CloudUnavailable: waiting for Cloud", code: 1,
		},
		"no operator runs": {
			args:    []string{"--timeout=3s"},
			problem: "error: the console of VM dev/web was not read within 3s: check that the operator runs", code: 1,
		},
		"an answer for another key": {
			answer:  func(r *pcapi.VMConsoleRequest) { r.Status.Console, r.Status.ReadTime = "AAAA", new(metav1.Now()) },
			problem: "error: decrypt the console: ", code: 1,
		},
		"no lines":      {args: []string{"--lines=0"}, problem: "error: --lines is 0: set 1 to 1000", code: 1},
		"too many":      {args: []string{"--lines=1001"}, problem: "error: --lines is 1001: set 1 to 1000", code: 1},
		"no time to do": {args: []string{"--timeout=0s"}, problem: "error: --timeout is 0s: set a positive duration", code: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := plugintest.Builder(t).WithStatusSubresource(&pcapi.VMConsoleRequest{}).WithInterceptorFuncs(operator(tc.answer)).Build()
				got := plugintest.Setup{Client: c}.Run(t.Context(), append([]string{"console", "web", "-n", "dev"}, tc.args...)...)
				if got.Code != tc.code || got.Out != tc.out || !strings.HasPrefix(got.Err, tc.problem) || tc.problem == "" && got.Err != "" {
					t.Errorf("got %q, %q and %d; want %q, %q… and %d", got.Out, got.Err, got.Code, tc.out, tc.problem, tc.code)
				}
				var left pcapi.VMConsoleRequestList
				if err := c.List(t.Context(), &left); err != nil || len(left.Items) > 0 {
					t.Errorf("%d requests are left, %v", len(left.Items), err)
				}
			})
		})
	}
}

func TestConsoleOfUsersWithoutTheRight(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: pcapi.GroupVersion.Group, Resource: "vmconsolerequests"}, "", nil)
	c := plugintest.Builder(t).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return forbidden },
	}).Build()
	got := plugintest.Setup{Client: c}.Run(t.Context(), "console", "web", "-n", "dev")
	if got.Code != 1 || !strings.Contains(got.Err, "request the console of VM dev/web") || !strings.Contains(got.Err, "vmconsolerequests") {
		t.Errorf("got %d and %q", got.Code, got.Err)
	}
}
