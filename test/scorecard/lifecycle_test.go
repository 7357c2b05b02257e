package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// namespace is where config/scorecard/rbac is applied.
const namespace = "private-cloud-operator-system"

func TestSuiteFailsWithoutTheOperatorAndPassesWithIt(t *testing.T) {
	env, err := testkit.Start(testkit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	mock, err := mockcloud.New(mockcloud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(mock.Handler())
	t.Cleanup(func() {
		_ = mock.Close()
		server.Close()
	})
	user, err := env.OperatorConfig(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	l := &lifecycle{client: asScorecard(t, env), namespace: namespace, timeout: time.Second}
	expect(t, l, "get the Cloud that VMs use")

	cloud := testkit.Cloud(v1alpha1.DefaultCloudName, server.URL)
	if err := env.Client.Create(t.Context(), cloud); err != nil {
		t.Fatal(err)
	}
	expect(t, l, "did not become Ready")

	manager, err := testkit.StartManager(user, setup.Options{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manager.Stop(); err != nil {
			t.Error(err)
		}
	})
	l.timeout = 30 * time.Second
	expect(t, l, "")

	l.namespace = metav1.NamespaceDefault
	expect(t, l, "list deployments")
	l.namespace = namespace
	if _, err := mock.AddFault(mockcloud.Fault{Match: mockcloud.Match{Method: "DELETE"}, Status: 500}); err != nil {
		t.Fatal(err)
	}
	l.timeout = 3 * time.Second
	expect(t, l, "was not deleted")
}

// asScorecard returns a client with the permissions of config/scorecard/rbac.
func asScorecard(t *testing.T, env *testkit.Env) client.Client {
	t.Helper()
	rights, err := os.Open("../../config/scorecard/rbac/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer rights.Close()
	apply := exec.Command(filepath.Join(env.Assets, "kubectl"), "--kubeconfig="+env.Kubeconfig(), "apply", "-n", namespace, "-f", "-")
	apply.Stdin = rights
	if output, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	user := rest.CopyConfig(env.Config)
	user.Impersonate.UserName = "system:serviceaccount:" + namespace + ":private-cloud-operator-scorecard"
	c, err := client.New(user, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// expect runs the lifecycle, which must return an error that contains part, or no
// error if part is empty.
func expect(t *testing.T, l *lifecycle, part string) {
	t.Helper()
	switch err := l.run(t.Context()); {
	case err == nil && part != "":
		t.Errorf("got no error, want %q", part)
	case err != nil && (part == "" || !strings.Contains(err.Error(), part)):
		t.Errorf("got %v, want %q", err, part)
	}
}

func TestCheckEntries(t *testing.T) {
	labels := map[string]string{ownerLabel: "uid"}
	create := mockcloud.LedgerEntry{Op: mockcloud.OpCreate, By: mockcloud.ByClient, ServerID: "1", Labels: labels}
	gone := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, Final: true, By: mockcloud.ByClient, ServerID: "1", Labels: labels}
	deleting := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, By: mockcloud.ByClient, ServerID: "1", Labels: labels}
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
		"one server created and deleted: no error":                {[]mockcloud.LedgerEntry{create, gone}, ""},
		"servers of other VMs and changes of the admin: no error": {[]mockcloud.LedgerEntry{create, other, byAdmin, gone}, ""},
		"server that is not deleted: error":                       {[]mockcloud.LedgerEntry{create}, "1 servers were created for the VM and 0 were deleted"},
		"deletion that is not complete: error":                    {[]mockcloud.LedgerEntry{create, deleting}, "0 were deleted"},
		"two servers for one VM: error":                           {[]mockcloud.LedgerEntry{create, second, gone}, "server 3 was created for the VM, whose vmId is 1"},
		"change of a server without an owner: error":              {[]mockcloud.LedgerEntry{create, foreign, gone}, "update of server 2 (theirs), which belongs to no VM"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkEntries(tc.entries, "uid", "1")
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("got %v, want %q", err, tc.wrong)
			}
		})
	}
}
