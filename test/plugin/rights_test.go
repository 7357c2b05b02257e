package plugin_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/testkit"
)

// grant gives a user of this name rights in a namespace, or in the cluster, and returns it.
func grant(t *testing.T, user, namespace string, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	meta := metav1.ObjectMeta{Name: user, Namespace: namespace}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}},
	}
	if namespace != "" {
		objects = []client.Object{
			&rbacv1.Role{ObjectMeta: meta, Rules: rules},
			&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}},
		}
	}
	for _, o := range objects {
		if err := env.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return user
}

// names reports whether a message names the right to one of the resources of a rule.
func names(message string, r rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(r.Resources, func(resource string) bool { return strings.Contains(message, r.Verbs[0]+" "+resource) })
}

// TestRights runs each command as a user who has the rights that its help names and no
// others, and as users who lack one of them.
func TestRights(t *testing.T) {
	t.Parallel()
	own := pcapi.GroupVersion.Group
	namespace := testkit.Namespace("rights-", nil)
	if err := env.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	drained := []string{"clouds", "gpuinfos", "networks", "vmgroups", "vms", "vmsnapshots"}
	for name, tc := range map[string]struct {
		args []string
		// in is the namespace of the rights, empty for the cluster.
		in    string
		rules []rbacv1.PolicyRule
	}{
		"brake":           {[]string{"brake"}, "", []rbacv1.PolicyRule{rule(own, []string{"clouds"}, "list")}},
		"top-vms":         {[]string{"top", "-n", namespace.Name}, namespace.Name, []rbacv1.PolicyRule{rule(own, []string{"vms"}, "list")}},
		"top-vms-all":     {[]string{"top", "-A"}, "", []rbacv1.PolicyRule{rule(own, []string{"vms"}, "list")}},
		"top-groups":      {[]string{"top", "groups", "-n", namespace.Name}, namespace.Name, []rbacv1.PolicyRule{rule(own, []string{"vmgroups"}, "list"), rule(own, []string{"vms"}, "list")}},
		"top-clouds":      {[]string{"top", "clouds"}, "", []rbacv1.PolicyRule{rule(own, []string{"clouds"}, "list")}},
		"drain":           {[]string{"drain", "--policy=delete"}, "", []rbacv1.PolicyRule{rule(own, drained, "list")}},
		"drain-namespace": {[]string{"drain", "--policy=delete", "--yes", "-n", namespace.Name}, "", []rbacv1.PolicyRule{rule(own, drained[1:], "list"), rule("", []string{"namespaces"}, "get")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := plugintest.Setup{Kubeconfig: env.Kubeconfig()}
			user := grant(t, "all-"+name, tc.in, tc.rules...)
			if got := s.Run(t.Context(), append(tc.args, "--as="+user)...); got.Code != 0 {
				t.Errorf("with all rights: %s", got)
			}
			for i := range tc.rules {
				rules := append(append([]rbacv1.PolicyRule{}, tc.rules[:i]...), tc.rules[i+1:]...)
				lacking := grant(t, "lacks-"+tc.rules[i].Resources[0]+"-"+name, tc.in, rules...)
				got := s.Run(t.Context(), append(tc.args, "--as="+lacking)...)
				if got.Code != 1 || !strings.Contains(got.Err, "a right is missing") || !names(got.Err, tc.rules[i]) {
					t.Errorf("without %v: %s", tc.rules[i], got)
				}
			}
		})
	}
	t.Run("report", func(t *testing.T) {
		user := grant(t, "reports", namespace.Name, rule(own, []string{"vms"}, "list"))
		file := filepath.Join(t.TempDir(), "report.zip")
		got := plugintest.Setup{Kubeconfig: env.Kubeconfig()}.Run(t.Context(), "report", "-n", namespace.Name, "-f", file, "--as="+user)
		if got.Code != 0 || !strings.Contains(got.Err, "objects/vms.json: 0\n") || !strings.Contains(got.Err, "objects/clouds.json: left out: ") {
			t.Errorf("%s", got)
		}
		again := plugintest.Setup{Kubeconfig: env.Kubeconfig()}.Run(t.Context(), "report", "-f", file)
		if again.Code != 1 || !strings.Contains(again.Err, "is not overwritten: name another with --file") {
			t.Errorf("%s", again)
		}
	})
}
