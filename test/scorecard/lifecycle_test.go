package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// namespace is where config/scorecard/rbac is applied.
const namespace = "private-cloud-operator-system"

func TestLifecycle(t *testing.T) {
	env, err := testkit.Start(testkit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	operator, err := env.OperatorConfig(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	scorecard := asScorecard(t, env)
	for name, tc := range map[string]struct {
		withoutCloud, withoutOperator bool
		fault                         *mockcloud.Fault
		namespace                     string
		timeout                       time.Duration
		message                       string
	}{
		"operator and cloud work: passes": {},
		"there is no default Cloud: fails": {
			withoutCloud: true, withoutOperator: true, timeout: time.Second, message: "get the Cloud that VMs use"},
		"the operator does not run: fails": {
			withoutOperator: true, timeout: time.Second, message: "did not become Ready"},
		"Deployments of the namespace may not be listed: fails": {
			namespace: metav1.NamespaceDefault, message: "list deployments"},
		"the cloud refuses every delete: fails": {
			fault: &mockcloud.Fault{Match: mockcloud.Match{Method: "DELETE"}, Status: 500}, timeout: 3 * time.Second, message: "was not deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if !tc.withoutCloud {
				serveDefaultCloud(t, env, tc.fault)
			}
			if !tc.withoutOperator {
				startOperator(t, operator)
			}
			l := &lifecycle{client: scorecard, namespace: cmp.Or(tc.namespace, namespace), timeout: cmp.Or(tc.timeout, 30*time.Second)}
			expect(t, l, tc.message)
		})
	}
}

// serveDefaultCloud serves a mock cloud, with a fault if it is not nil, and creates
// the default Cloud for it. When the test ends, the Cloud and all VMs are removed.
func serveDefaultCloud(t *testing.T, env *testkit.Env, fault *mockcloud.Fault) {
	t.Helper()
	server, err := testkit.ServeCloud(mockcloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if fault != nil {
		if _, err := server.AddFault(*fault); err != nil {
			t.Fatal(err)
		}
	}
	cloud := testkit.Cloud(pcapi.DefaultCloudName, server.URL)
	if err := env.Client.Create(t.Context(), cloud); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		var vms pcapi.VMList
		if err := env.Client.List(ctx, &vms); err != nil {
			t.Error(err)
		}
		for i := range vms.Items {
			remove(ctx, t, env, &vms.Items[i])
		}
		remove(ctx, t, env, cloud)
	})
}

// remove removes an object without regard to its finalizers.
func remove(ctx context.Context, t *testing.T, env *testkit.Env, object client.Object) {
	t.Helper()
	bare := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := errors.Join(
		client.IgnoreNotFound(env.Client.Delete(ctx, object)),
		client.IgnoreNotFound(env.Client.Patch(ctx, object, bare)),
	); err != nil {
		t.Error(err)
	}
}

func startOperator(t *testing.T, user *rest.Config) {
	t.Helper()
	manager, err := testkit.StartManager(user, setup.Options{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manager.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// asScorecard returns a client with the rights of config/scorecard/rbac and no others.
func asScorecard(t *testing.T, env *testkit.Env) client.Client {
	t.Helper()
	if _, err := env.Kubectl(t.Context(), "", "apply", "-n", namespace, "-f", "config/scorecard/rbac/rbac.yaml"); err != nil {
		t.Fatal(err)
	}
	user := rest.CopyConfig(env.Config)
	user.Impersonate.UserName = "system:serviceaccount:" + namespace + ":private-cloud-operator-scorecard"
	c, err := client.New(user, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// expect runs the lifecycle, which has to fail with an error that contains a text,
// or to pass if the text is empty.
func expect(t *testing.T, l *lifecycle, part string) {
	t.Helper()
	switch err := l.run(t.Context()); {
	case err == nil && part != "":
		t.Errorf("passed, but should have failed: %s", part)
	case err != nil && (part == "" || !strings.Contains(err.Error(), part)):
		t.Errorf("failed with %v, want %q", err, part)
	}
}

func TestVerify(t *testing.T) {
	labels := map[string]string{ownerLabel: "me"}
	create := mockcloud.LedgerEntry{Op: mockcloud.OpCreate, By: mockcloud.ByClient, ServerID: "1", Labels: labels}
	gone := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, Final: true, By: mockcloud.ByClient, ServerID: "1", Labels: labels}
	begun := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, By: mockcloud.ByClient, ServerID: "1", Labels: labels}
	foreign := mockcloud.LedgerEntry{Op: mockcloud.OpUpdate, By: mockcloud.ByClient, ServerID: "2", Name: "theirs"}
	second := mockcloud.LedgerEntry{Op: mockcloud.OpCreate, By: mockcloud.ByClient, ServerID: "3", Labels: labels}
	other := mockcloud.LedgerEntry{
		Op: mockcloud.OpCreate, By: mockcloud.ByClient, ServerID: "4", Labels: map[string]string{ownerLabel: "another VM"},
	}
	byAdmin := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, Final: true, By: mockcloud.ByAdmin, ServerID: "5"}
	for name, tc := range map[string]struct {
		entries []mockcloud.LedgerEntry
		wrong   string
	}{
		"one server is created and deleted: correct":                          {[]mockcloud.LedgerEntry{create, gone}, ""},
		"other VMs are created and an administrator deletes servers: correct": {[]mockcloud.LedgerEntry{create, other, byAdmin, gone}, ""},
		"the server is never deleted: wrong":                                  {[]mockcloud.LedgerEntry{create}, "1 servers were created for the VM and 0 are gone"},
		"the deletion has only begun: wrong":                                  {[]mockcloud.LedgerEntry{create, begun}, "0 are gone"},
		"two servers are created for the VM: wrong":                           {[]mockcloud.LedgerEntry{create, second, gone}, "server 3 was created for the VM, whose vmId is 1"},
		"a foreign server is changed: wrong":                                  {[]mockcloud.LedgerEntry{create, foreign, gone}, "update of server 2 (theirs), which belongs to no VM"},
	} {
		t.Run(name, func(t *testing.T) {
			err := verify(tc.entries, "me", "1")
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("verify: %v, want %q", err, tc.wrong)
			}
		})
	}
}
