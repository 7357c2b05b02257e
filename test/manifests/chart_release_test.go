package manifests_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestObjectsOfAReleaseHaveItsNameAndItsNamespace(t *testing.T) {
	objects := render(t, "east", "tenants", "--set", everything)
	for _, object := range objects {
		named := strings.HasPrefix(object.GetName(), "east-private-cloud-operator-")
		if kind := object.GetKind(); !named && kind != "CustomResourceDefinition" && kind != "APIService" {
			t.Errorf("%s %s does not have the name of the release", kind, object.GetName())
		}
		if in := object.GetNamespace(); in != "" && in != "tenants" {
			t.Errorf("%s %s is in the namespace %s", object.GetKind(), object.GetName(), in)
		}
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), namespace) {
			t.Errorf("%s %s refers to the namespace of config/", object.GetKind(), object.GetName())
		}
		if got := object.GetLabels()["app.kubernetes.io/instance"]; got != "east" {
			t.Errorf("%s %s has the instance %q", object.GetKind(), object.GetName(), got)
		}
	}
	var binding rbacv1.ClusterRoleBinding
	decode(t, find(objects, "ClusterRoleBinding", "east-private-cloud-operator-manager-rolebinding"), &binding)
	if find(objects, "ClusterRole", binding.RoleRef.Name).GetName() == "" || find(objects, "ServiceAccount", binding.Subjects[0].Name).GetName() == "" {
		t.Errorf("the binding %v refers to objects that do not exist", binding)
	}
}

func TestNamesOfAReleaseWithTheLongestNameAreValid(t *testing.T) {
	longest := strings.Repeat("a", 51) + ".b" // Helm allows 53 characters, and dots
	for _, object := range render(t, longest, "tenants", "--set", everything) {
		check := validation.IsDNS1123Subdomain
		if kind := object.GetKind(); kind == "Service" || kind == "Deployment" {
			check = validation.IsDNS1035Label
		}
		if problems := check(object.GetName()); len(problems) > 0 {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), problems)
		}
	}
}

// selectorsOf returns all selectors of pods in objects, by kind and name.
func selectorsOf(t *testing.T, objects []*unstructured.Unstructured) map[string]labels.Selector {
	t.Helper()
	found := map[string]labels.Selector{}
	for _, object := range objects {
		var selector *metav1.LabelSelector
		switch object.GetKind() {
		case "Service":
			var service corev1.Service
			decode(t, object, &service)
			selector = metav1.SetAsLabelSelector(service.Spec.Selector)
		case "NetworkPolicy":
			var policy networkingv1.NetworkPolicy
			decode(t, object, &policy)
			selector = &policy.Spec.PodSelector
		case "PodDisruptionBudget":
			var budget policyv1.PodDisruptionBudget
			decode(t, object, &budget)
			selector = budget.Spec.Selector
		case "Deployment":
			var deployment appsv1.Deployment
			decode(t, object, &deployment)
			selector = deployment.Spec.Selector
		default:
			continue
		}
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		found[object.GetKind()+" "+object.GetName()] = parsed
	}
	return found
}

func TestTwoReleasesDoNotSelectEachOthersPods(t *testing.T) {
	east, west := render(t, "east", namespace, "--set", everything), render(t, "west", namespace, "--set", everything)
	selectors := selectorsOf(t, west)
	if len(selectors) < 10 {
		t.Fatalf("found %d selectors only", len(selectors))
	}
	for _, deployment := range deployments(t, east) {
		for name, selector := range selectors {
			if selector.Matches(labels.Set(deployment.Spec.Template.Labels)) {
				t.Errorf("%s of the release west selects the pods of %s", name, deployment.Name)
			}
		}
	}
	for _, deployment := range deployments(t, west) {
		if !selectors["Deployment "+deployment.Name].Matches(labels.Set(deployment.Spec.Template.Labels)) {
			t.Errorf("%s does not select its own pods", deployment.Name)
		}
	}
}

func TestReleaseUsesTheLeaseOfItsCloudSelector(t *testing.T) {
	for name, selector := range map[string]string{
		"one label":           `{"matchLabels":{"shard":"east"}}`,
		"several labels":      `{"matchLabels":{"tier":"gold","shard":"east"}}`,
		"In, several values":  `{"matchExpressions":[{"key":"shard","operator":"In","values":["north","east","north"]}]}`,
		"NotIn":               `{"matchExpressions":[{"key":"shard","operator":"NotIn","values":["east","west"]}]}`,
		"Exists, and a label": `{"matchLabels":{"shard":"east"},"matchExpressions":[{"key":"example.com/tier","operator":"Exists"}]}`,
		"DoesNotExist":        `{"matchExpressions":[{"key":"shard","operator":"DoesNotExist"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			objects := render(t, plainRelease, namespace, "--set-json", "cloudSelector="+selector, "--set", monitored)
			scope := scopesOf(t, objects)[managerName]
			lease := scope.LeaseName(defaultLease)
			var role rbacv1.Role
			decode(t, find(objects, "Role", "private-cloud-operator-leader-election-role"), &role)
			var leases []string
			for _, rule := range role.Rules {
				leases = append(leases, rule.ResourceNames...)
			}
			if diff := cmp.Diff([]string{lease}, leases); diff != "" {
				t.Errorf("leases of %v (-want +got):\n%s", scope, diff)
			}
			if expr := alertsOf(t, objects)["NoLeader"]; !strings.Contains(expr, strconv.Quote(lease)) || strings.Contains(expr, strconv.Quote(defaultLease)) {
				t.Errorf("NoLeader watches another lease than %s:\n%s", lease, expr)
			}
		})
	}
}

func TestReleaseWithAnEmptyCloudSelectorIsTheDefault(t *testing.T) {
	want := byName(render(t, plainRelease, namespace, "--set", monitored))
	for _, selector := range []string{`{"matchLabels":{}}`, `{"matchExpressions":[]}`, `null`} {
		t.Run(selector, func(t *testing.T) {
			got := byName(render(t, plainRelease, namespace, "--set-json", "cloudSelector="+selector, "--set", monitored))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-default +selector):\n%s", diff)
			}
		})
	}
}
