package operator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/operator"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
)

// pod returns a pod of the operator.
func pod(namespace string, phase corev1.PodPhase, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "manager",
			Labels: map[string]string{"app.kubernetes.io/name": "private-cloud-operator", "control-plane": "controller-manager"},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Args: args}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestConnectSaysWhyNobodyAnswers(t *testing.T) {
	t.Parallel()
	stranger := pod("system", corev1.PodRunning)
	stranger.Labels = map[string]string{"app.kubernetes.io/name": "another"}
	for _, tc := range []struct {
		name  string
		pods  []client.Object
		flags operator.Flags
		// allowed are the namespaces whose pods the user may list; nil for all.
		allowed []string
		want    string
	}{
		{name: "there is no operator", pods: []client.Object{stranger}, want: "there is no pod of the operator in namespace private-cloud-operator-system: set --operator-namespace, or --operator-url"},
		{name: "a pod of a tenant looks like it: it is not asked", pods: []client.Object{pod("a-tenant", corev1.PodRunning, "--diagnostics-bind-address=127.0.0.1:8082")}, want: "there is no pod of the operator in namespace private-cloud-operator-system"},
		{name: "it is in another namespace", pods: []client.Object{pod("system", corev1.PodRunning)}, flags: operator.Flags{Namespace: "other"}, want: "there is no pod of the operator in namespace other"},
		{name: "its pods do not run", flags: operator.Flags{Namespace: "system"}, pods: []client.Object{pod("system", corev1.PodPending)}, want: "no pod of the operator runs: see kubectl get pods -n system"},
		{name: "it is older", flags: operator.Flags{Namespace: "system"}, pods: []client.Object{pod("system", corev1.PodRunning, "--leader-elect")}, want: "in namespace system serves diagnostics: upgrade the operator to the version of this plugin, or start it with --diagnostics-bind-address="},
		{name: "its endpoint is off", flags: operator.Flags{Namespace: "system"}, pods: []client.Object{pod("system", corev1.PodRunning, "--diagnostics-bind-address=0")}, want: "upgrade the operator"},
		{name: "the user may list no pods", allowed: []string{}, want: "the right to list pods in namespace private-cloud-operator-system is missing"},
		{name: "the user may list no pods in the namespace", flags: operator.Flags{Namespace: "system"}, allowed: []string{}, want: "the right to list pods in namespace system is missing"},
		{
			name: "the user may list those of the default namespace", pods: []client.Object{pod("private-cloud-operator-system", corev1.PodRunning)},
			allowed: []string{"private-cloud-operator-system"}, want: "no pod of the operator in namespace private-cloud-operator-system serves diagnostics",
		},
		{name: "the URL is none", flags: operator.Flags{URL: "127.0.0.1:8082"}, want: "is no URL: set one such as http://127.0.0.1:8082"},
		{name: "the URL has a password", flags: operator.Flags{URL: "http://user:secret@127.0.0.1:8082"}, want: "must have no user and password"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := plugintest.Builder(t, tc.pods...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					of := (&client.ListOptions{}).ApplyOptions(opts).Namespace
					if tc.allowed != nil && !slices.Contains(tc.allowed, of) {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
					}
					return c.List(ctx, list, opts...)
				},
			}).Build()
			_, err := operator.Connect(t.Context(), envOf(c), tc.flags)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret@") {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestErrorsOfTheEndpoint(t *testing.T) {
	t.Parallel()
	refusal := func(status int, reason, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(wire.Error{Reason: reason, Message: message})
		}
	}
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"nobody listens", nil, "does not serve diagnostics: upgrade the operator to the version of this plugin, or start it with --diagnostics-bind-address=127.0.0.1:8082"},
		{"another server listens", http.NotFound, "answers 404 Not Found, which is not its diagnostics endpoint: upgrade the operator"},
		{"it redirects", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, "answers 302 Found, which is not"},
		{"nobody leads", refusal(http.StatusServiceUnavailable, wire.NotLeading, "this replica does not lead: ask the others"), "no pod of the operator leads now: try again in a minute"},
		{"the Cloud does not exist", refusal(http.StatusNotFound, wire.NotFound, `Cloud "home" does not exist: see kubectl get clouds`), `Cloud "home" does not exist`},
		{"the answer is no JSON", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.handler)
			if tc.handler == nil {
				server.Close()
			}
			t.Cleanup(server.Close)
			_, err := connect(t, server.URL).Cloud(t.Context(), "home")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

func TestServersAreReadOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const head = `{"cloud":"home","listedAt":"2026-01-01T00:00:00Z","later":{"a":[1]},"counts":{"managed":1,"unmanaged":2},"servers":[{"id":"1","name":"a"},{"id":"2","name":"b"}`
	stop := errors.New("enough")
	for _, tc := range []struct {
		name, body string
		each       error
		want       []string
		fails      string
	}{
		{name: "all", body: head + "]}", want: []string{"1", "2"}},
		{name: "an answer that was cut", body: head, want: []string{"1", "2"}, fails: "cannot be read"},
		{name: "an answer that was cut after the list", body: head + "]", want: []string{"1", "2"}, fails: "cannot be read"},
		{name: "no list", body: `{"cloud":"home"}`, fails: "cannot be read"},
		{name: "the reader has enough", body: head + "]}", each: stop, want: []string{"1"}, fails: "enough"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/servers") {
					fmt.Fprint(w, tc.body)
					return
				}
				fmt.Fprint(w, `{"cloud":"home"}`)
			}))
			t.Cleanup(server.Close)
			var got []string
			found, err := connect(t, server.URL).Servers(t.Context(), "home", wire.StateUnmanaged, func(s wire.Server) error {
				got = append(got, s.ID)
				return tc.each
			})
			if (tc.fails == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Fatalf("%v, want %q", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("servers (-want +got):\n%s", diff)
			}
			if err == nil && found.Counts.Unmanaged != 2 {
				t.Errorf("counts %+v", found.Counts)
			}
		})
	}
}

func envOf(c client.Client) *plugin.Env {
	env := plugin.NewEnv(genericiooptions.NewTestIOStreamsDiscard(), plugintest.Version)
	env.Connect = func(*plugin.Env) (client.Client, error) { return c, nil }
	*env.Config.APIServer = "http://127.0.0.1:1"
	return env
}

func connect(t *testing.T, url string) *operator.Operator {
	t.Helper()
	o, err := operator.Connect(t.Context(), envOf(nil), operator.Flags{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}
