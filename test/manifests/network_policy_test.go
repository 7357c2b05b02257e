package manifests_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// peer is one end of a connection. A peer without a namespace is outside of all
// pods, such as the API server.
type peer struct {
	namespace  string
	namespaced map[string]string
	labels     map[string]string
}

// peers are the ends of connections of which the tests check whether they are allowed.
func peers() map[string]peer {
	in := func(name string, more map[string]string, podLabels map[string]string) peer {
		all := map[string]string{corev1.LabelMetadataName: name}
		maps.Copy(all, more)
		return peer{namespace: name, namespaced: all, labels: podLabels}
	}
	return map[string]peer{
		"outside":    {},
		"beside":     in(namespace, nil, map[string]string{"app": "any"}),
		"mock":       in(namespace, nil, map[string]string{"app.kubernetes.io/name": "private-cloud-operator-mock-cloud"}),
		"tenant":     in("tenant", nil, map[string]string{"app.kubernetes.io/name": "private-cloud-operator-mock-cloud"}),
		"metrics":    in("scrapers", map[string]string{"metrics": "enabled"}, nil),
		"monitoring": in("monitoring", nil, nil),
	}
}

// policies are the NetworkPolicies of one namespace.
type policies []networkingv1.NetworkPolicy

func policiesIn(t *testing.T, objects []*unstructured.Unstructured) policies {
	t.Helper()
	var found policies
	for _, object := range objects {
		if object.GetKind() == "NetworkPolicy" {
			var policy networkingv1.NetworkPolicy
			decode(t, object, &policy)
			found = append(found, policy)
		}
	}
	return found
}

// of returns the policies that select a pod and apply to a direction.
func (p policies) of(t *testing.T, pod map[string]string, direction networkingv1.PolicyType) policies {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(p), func(policy networkingv1.NetworkPolicy) bool {
		return !selects(t, &policy.Spec.PodSelector, pod) || !slices.Contains(policy.Spec.PolicyTypes, direction)
	})
}

// ingress returns the names of the peers that may connect to a port of a pod.
func (p policies) ingress(t *testing.T, pod map[string]string, port int32) []string {
	t.Helper()
	var allowed []string
	for name, from := range peers() {
		for _, policy := range p.of(t, pod, networkingv1.PolicyTypeIngress) {
			if slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
				return matchesPort(rule.Ports, corev1.ProtocolTCP, port) && matchesPeer(t, rule.From, from)
			}) {
				allowed = append(allowed, name)
				break
			}
		}
	}
	slices.Sort(allowed)
	return allowed
}

// egress reports whether a pod may connect to a peer.
func (p policies) egress(t *testing.T, pod map[string]string, to peer, protocol corev1.Protocol, port int32) bool {
	t.Helper()
	return slices.ContainsFunc(p.of(t, pod, networkingv1.PolicyTypeEgress), func(policy networkingv1.NetworkPolicy) bool {
		return slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return matchesPort(rule.Ports, protocol, port) && matchesPeer(t, rule.To, to)
		})
	})
}

func matchesPort(ports []networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int32) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return *p.Protocol == protocol && (p.Port == nil || p.Port.IntVal == port)
	})
}

func matchesPeer(t *testing.T, rule []networkingv1.NetworkPolicyPeer, other peer) bool {
	t.Helper()
	return len(rule) == 0 || slices.ContainsFunc(rule, func(p networkingv1.NetworkPolicyPeer) bool {
		if p.IPBlock != nil {
			t.Fatalf("this test cannot evaluate the block %s", p.IPBlock.CIDR)
		}
		inNamespace := other.namespace == namespace
		if p.NamespaceSelector != nil {
			inNamespace = other.namespace != "" && selects(t, p.NamespaceSelector, other.namespaced)
		}
		return inNamespace && (p.PodSelector == nil || selects(t, p.PodSelector, other.labels))
	})
}

func selects(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Matches(labels.Set(set))
}

// bundleObjects returns the objects of the bundle, and a Deployment for each that the CSV describes.
func bundleObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	bundle := readBundle(t)
	objects := bundle.Objects
	for _, spec := range bundle.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		deployment := &appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: spec.Name}, Spec: spec.Spec,
		}
		objects = append(objects, encode(t, deployment))
	}
	return objects
}

// reachable are the peers that may connect to the ports of the pods of each
// Deployment. A port that is missing here is one for the kubelet alone.
func reachable(prometheus ...string) map[string][]string {
	const prefix = "private-cloud-operator-"
	return map[string][]string{
		prefix + "controller-manager:8443": append([]string{"metrics"}, prometheus...),
		prefix + "controller-manager:9443": {"beside", "metrics", "mock", "monitoring", "outside", "tenant"},
		prefix + "mock-cloud:8080":         {"beside", "mock"},
		prefix + "mock-cloud:8082":         {"mock"},
		prefix + "metrics-api:6443":        {"beside", "metrics", "mock", "monitoring", "outside", "tenant"},
	}
}

func TestNetworkPoliciesAllowOnlyTheCallersOfEachPort(t *testing.T) {
	for name, tc := range map[string]struct {
		objects func(t *testing.T) []*unstructured.Unstructured
		want    map[string][]string
	}{
		"default":     {func(t *testing.T) []*unstructured.Unstructured { return build(t, "default") }, reachable()},
		"development": {func(t *testing.T) []*unstructured.Unstructured { return build(t, "overlays/development") }, reachable()},
		"production":  {func(t *testing.T) []*unstructured.Unstructured { return build(t, "overlays/production") }, reachable()},
		"autoscaling": {func(t *testing.T) []*unstructured.Unstructured { return build(t, "overlays/autoscaling") }, reachable()},
		"production and name check": {func(t *testing.T) []*unstructured.Unstructured {
			return buildWith(t, "overlays/production", "name-check")
		}, reachable()},
		"default and monitoring": {func(t *testing.T) []*unstructured.Unstructured {
			return append(build(t, "default"), build(t, "overlays/monitoring")...)
		}, reachable("monitoring")},
		"bundle": {bundleObjects, reachable()},
	} {
		t.Run(name, func(t *testing.T) {
			objects := tc.objects(t)
			all := policiesIn(t, objects)
			for _, deployment := range deployments(t, objects) {
				pod := deployment.Spec.Template
				if len(all.of(t, pod.Labels, networkingv1.PolicyTypeIngress)) == 0 || len(all.of(t, pod.Labels, networkingv1.PolicyTypeEgress)) == 0 {
					t.Errorf("the pods of %s accept or open all connections", deployment.Name)
				}
				for _, port := range pod.Spec.Containers[0].Ports {
					where := fmt.Sprintf("%s:%d", deployment.Name, port.ContainerPort)
					if diff := cmp.Diff(tc.want[where], all.ingress(t, pod.Labels, port.ContainerPort)); diff != "" {
						t.Errorf("callers of %s (-want +got):\n%s", where, diff)
					}
				}
				if got := all.ingress(t, pod.Labels, 1234); got != nil {
					t.Errorf("%v may connect to any port of %s", got, deployment.Name)
				}
			}
		})
	}
}

func TestNetworkPoliciesAllowTheCallsOfEachPod(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"development": build(t, "overlays/development"), "autoscaling": build(t, "overlays/autoscaling"), "bundle": bundleObjects(t),
	} {
		t.Run(name, func(t *testing.T) {
			all := policiesIn(t, objects)
			for _, deployment := range deployments(t, objects) {
				pod := deployment.Spec.Template.Labels
				mock := deployment.Name == "private-cloud-operator-mock-cloud"
				for what, tc := range map[string]struct {
					to       peer
					protocol corev1.Protocol
					port     int32
					allowed  bool
				}{
					"DNS":          {peers()["tenant"], corev1.ProtocolUDP, 53, true},
					"DNS over TCP": {peers()["outside"], corev1.ProtocolTCP, 53, true},
					// Policies apply to the port of the pod, not to that of the Service.
					"DNS of OpenShift":                {peers()["tenant"], corev1.ProtocolUDP, 5353, true},
					"DNS of OpenShift over TCP":       {peers()["tenant"], corev1.ProtocolTCP, 5353, true},
					"the API server, a cloud outside": {peers()["outside"], corev1.ProtocolTCP, 6443, !mock},
					"a cloud in the cluster":          {peers()["tenant"], corev1.ProtocolTCP, 8443, !mock},
					"the REST API of the mock cloud":  {peers()["mock"], corev1.ProtocolTCP, 8080, !mock},
					"the handover of the mock cloud":  {peers()["mock"], corev1.ProtocolTCP, 8082, true},
					"anything else over UDP":          {peers()["outside"], corev1.ProtocolUDP, 6443, false},
				} {
					if got := all.egress(t, pod, tc.to, tc.protocol, tc.port); got != tc.allowed {
						t.Errorf("%s may call %s: %t, want %t", deployment.Name, what, got, tc.allowed)
					}
				}
			}
		})
	}
}
