package manifests_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/privatecloud/operator/internal/tenancy"
)

const (
	// selectorFlag begins the argument of a manager that has a part of the Clouds.
	selectorFlag = "--cloud-selector="
	// defaultLease is the lease of a manager that has all Clouds.
	defaultLease = "private-cloud-operator.samplecontroller.k8s.io"
)

// scopesOf returns the Clouds of each Deployment that has a part of them.
func scopesOf(t *testing.T, objects []*unstructured.Unstructured) map[string]tenancy.Scope {
	t.Helper()
	scopes := map[string]tenancy.Scope{}
	for _, deployment := range deployments(t, objects) {
		for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
			text, found := strings.CutPrefix(arg, selectorFlag)
			if !found {
				continue
			}
			scope, err := tenancy.ParseScope(text)
			if err != nil {
				t.Fatalf("%s: %v", deployment.Name, err)
			}
			scopes[deployment.Name] = scope
		}
	}
	if len(scopes) == 0 {
		t.Fatal("no manager has a selector")
	}
	return scopes
}

func TestEveryCloudHasOneManagerOfTheSplit(t *testing.T) {
	scopes := scopesOf(t, build(t, "overlays/split"))
	for _, set := range []labels.Set{nil, {"shard": "east"}, {"shard": "west"}, {"shard": ""}, {"tier": "gold"}} {
		var managers []string
		for name, scope := range scopes {
			if scope.Selects(set) {
				managers = append(managers, name)
			}
		}
		if len(managers) != 1 {
			t.Errorf("Clouds with the labels %v: managers %v, want one", set, managers)
		}
	}
}

func TestManagersOfTheSplitMayHoldTheirLeases(t *testing.T) {
	objects := build(t, "overlays/split")
	var role rbacv1.Role
	decode(t, find(objects, "Role", "private-cloud-operator-leader-election-role"), &role)
	for name, scope := range scopesOf(t, objects) {
		lease := scope.LeaseName(defaultLease)
		if !slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.ResourceNames, lease) }) {
			t.Errorf("%s has no right on its lease %s", name, lease)
		}
	}
}

func TestNoLeaderWatchesTheLeasesOfTheSplit(t *testing.T) {
	expr := alertsOf(t, build(t, "overlays/split/monitoring"))["NoLeader"]
	match := regexp.MustCompile(`name=~"([^"]+)".* < (\d+)$`).FindStringSubmatch(expr)
	if match == nil {
		t.Fatalf("the alert has no pattern of leases: %q", expr)
	}
	leases, scopes := regexp.MustCompile("^(?:"+match[1]+")$"), scopesOf(t, build(t, "overlays/split"))
	for name, scope := range scopes {
		if lease := scope.LeaseName(defaultLease); !leases.MatchString(lease) {
			t.Errorf("the alert does not watch the lease %s of %s", lease, name)
		}
	}
	if want := strconv.Itoa(len(scopes)); match[2] != want {
		t.Errorf("the alert expects %s leaders, want %s", match[2], want)
	}
}
