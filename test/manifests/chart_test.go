package manifests_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	// plainRelease is the name of a release whose objects have the names of config/.
	plainRelease = "private-cloud-operator"
	managerName  = "private-cloud-operator-controller-manager"
	monitored    = "monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,monitoring.dashboards.enabled=true"
	// everything enables all that is optional.
	everything = "webhook.enabled=true,mockCloud.enabled=true,metricsAPI.enabled=true,approval.enabled=true,approval.fourEyes=true,claimAtCreation.enabled=true,deletionProtection.enabled=true," + monitored
)

func TestChartRendersWhatKustomizeBuilds(t *testing.T) {
	const production = "overlays/production"
	for name, tc := range map[string]struct {
		values string
		want   []*unstructured.Unstructured
	}{
		"default values: overlay production":          {"", build(t, production)},
		"webhook: component name-check":               {"webhook.enabled=true", buildWith(t, production, "name-check")},
		"mock cloud: component mock-cloud":            {"mockCloud.enabled=true", buildWith(t, production, "mock-cloud")},
		"metrics API: component metrics-api":          {"metricsAPI.enabled=true", buildWith(t, production, "metrics-api")},
		"approval: its component":                     {"approval.enabled=true", buildWith(t, production, "approval")},
		"four eyes: its component, too":               {"approval.enabled=true,approval.fourEyes=true", buildWith(t, production, "approval", "approval-four-eyes")},
		"claims at creation: its component":           {"claimAtCreation.enabled=true", buildWith(t, production, "claim-at-creation")},
		"allowedNamespaces optional: no policy":       {"requireAllowedNamespaces.enabled=false", withoutPolicies(build(t, production))},
		"deletion protection: its component":          {"deletionProtection.enabled=true", buildWith(t, production, "deletion-protection")},
		"monitoring: overlay monitoring, in addition": {monitored, append(build(t, production), build(t, "overlays/monitoring")...)},
	} {
		t.Run(name, func(t *testing.T) {
			got, want := byName(render(t, plainRelease, namespace, "--set", tc.values)), byName(tc.want)
			delete(want, "Namespace "+namespace)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("objects (-config +chart); run make chart, and adapt templates and values of the chart:\n%s", diff)
			}
		})
	}
}

// withoutPolicies returns the objects that are no admission policy of Kubernetes and no binding of one.
func withoutPolicies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		return strings.HasPrefix(o.GetKind(), "ValidatingAdmissionPolicy")
	})
}

// byName returns the content of objects by kind and name, without what the chart adds to that of config/: its labels and the
// annotation of CRDs that are kept.
func byName(objects []*unstructured.Unstructured) map[string]any {
	found := map[string]any{}
	for _, object := range objects {
		withoutAdditions(object.Object)
		for _, field := range []string{"labels", "annotations"} {
			if values, _, _ := unstructured.NestedMap(object.Object, "metadata", field); len(values) == 0 {
				unstructured.RemoveNestedField(object.Object, "metadata", field)
			}
		}
		found[object.GetKind()+" "+object.GetName()] = object.Object
	}
	return found
}

// withoutAdditions removes the labels of the chart and its annotation from a value and all that it contains.
func withoutAdditions(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range []string{"helm.sh/chart", "helm.sh/resource-policy", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance"} {
			delete(value, key)
		}
		for _, inner := range value {
			withoutAdditions(inner)
		}
	case []any:
		for _, inner := range value {
			withoutAdditions(inner)
		}
	}
}

// alertsOf returns the expressions of the alerts in the PrometheusRule of objects, by name.
func alertsOf(t *testing.T, objects []*unstructured.Unstructured) map[string]string {
	t.Helper()
	var rule struct {
		Spec struct {
			Groups []struct {
				Rules []struct {
					Alert string `json:"alert"`
					Expr  string `json:"expr"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	decode(t, find(objects, "PrometheusRule", "private-cloud-operator-alerts"), &rule)
	alerts := map[string]string{}
	for _, group := range rule.Spec.Groups {
		for _, rule := range group.Rules {
			alerts[rule.Alert] = rule.Expr
		}
	}
	return alerts
}

func TestEveryAlertCanBeDisabled(t *testing.T) {
	want := alertsOf(t, render(t, plainRelease, namespace, "--set", monitored))
	if len(want) < 2 {
		t.Fatalf("%d alerts without values, want all", len(want))
	}
	all := strings.Join(slices.Sorted(maps.Keys(want)), ",")
	if got := alertsOf(t, render(t, plainRelease, namespace, "--set", monitored+",monitoring.prometheusRule.disabled={"+all+"}")); len(got) != 0 {
		t.Errorf("alerts that are disabled: %v", got)
	}
	delete(want, "VMsNotReady")
	got := alertsOf(t, render(t, plainRelease, namespace, "--set", monitored+",monitoring.prometheusRule.disabled={VMsNotReady}"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alerts without VMsNotReady (-want +got):\n%s", diff)
	}
}

func TestManagerProbesTheNetworksOfTheValues(t *testing.T) {
	args := func(set ...string) []string {
		return deployments(t, render(t, plainRelease, namespace, set...))[0].Spec.Template.Spec.Containers[0].Args
	}
	if got := args("--set", "probeNetworks={10.20.0.0/16,fd00:20::/32}"); !slices.Contains(got, "--probe-networks=10.20.0.0/16,fd00:20::/32") {
		t.Errorf("arguments %v, want the networks", got)
	}
	if got := args(); slices.ContainsFunc(got, func(arg string) bool { return strings.HasPrefix(arg, "--probe-networks") }) {
		t.Errorf("arguments %v by default, want no networks", got)
	}
}

func TestPodsHaveTheSettingsOfTheirComponent(t *testing.T) {
	const settings = `{"image":{"repository":"registry.example.com/own","tag":"v9","digest":"sha256:%064d","pullPolicy":"Always"},
		"extraArgs":["--extra"],"extraEnv":[{"name":"EXTRA","value":"yes"}],"resources":{"requests":{"cpu":"7"}},
		"podAnnotations":{"extra":"annotation"},"podLabels":{"extra":"label","app.kubernetes.io/instance":"other"},
		"priorityClassName":"extra","nodeSelector":{"extra":"node"},"tolerations":[{"key":"extra"}],
		"affinity":{"nodeAffinity":{}},"topologySpreadConstraints":[{"maxSkew":9}]}`
	values := fmt.Sprintf(`{"imagePullSecrets":[{"name":"extra"}],"metricsAPI":%[1]s,"mockCloud":%[1]s,%[2]s`,
		fmt.Sprintf(settings, 0), fmt.Sprintf(settings, 0)[1:])
	file := filepath.Join(t.TempDir(), "values.json")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	all := deployments(t, render(t, plainRelease, namespace, "--values", file, "--set", "metricsAPI.enabled=true,mockCloud.enabled=true"))
	if len(all) != 3 {
		t.Fatalf("%d Deployments, want 3", len(all))
	}
	for _, deployment := range all {
		pod := deployment.Spec.Template
		container := pod.Spec.Containers[0]
		for what, holds := range map[string]bool{
			"image":        container.Image == "registry.example.com/own:v9@sha256:"+strings.Repeat("0", 64),
			"pull policy":  container.ImagePullPolicy == corev1.PullAlways,
			"pull secrets": slices.Contains(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: "extra"}),
			"arguments":    len(container.Args) > 1 && container.Args[len(container.Args)-1] == "--extra",
			"environment":  slices.Contains(container.Env, corev1.EnvVar{Name: "EXTRA", Value: "yes"}),
			"resources":    container.Resources.Requests.Cpu().Value() == 7,
			"annotation":   pod.Annotations["extra"] == "annotation",
			"label":        pod.Labels["extra"] == "label",
			"own labels":   pod.Labels["app.kubernetes.io/instance"] == plainRelease,
			"scheduling": pod.Spec.PriorityClassName == "extra" && pod.Spec.NodeSelector["extra"] == "node" &&
				pod.Spec.Tolerations[0].Key == "extra" && pod.Spec.Affinity.NodeAffinity != nil && pod.Spec.TopologySpreadConstraints[0].MaxSkew == 9,
		} {
			if !holds {
				t.Errorf("%s does not have the value: %s", deployment.Name, what)
			}
		}
	}
}

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ values, want string }{
		"unknown key":                       {"replica=3", "additional properties 'replica' not allowed"},
		"unknown key of a component":        {"mockCloud.replicas=2", "at '/mockCloud': additional properties 'replicas' not allowed"},
		"word for a number":                 {"replicas=two", "at '/replicas': got string, want integer"},
		"word for a switch":                 {"webhook.enabled=yes", "at '/webhook/enabled': got string, want boolean"},
		"digest without its algorithm":      {"image.digest=abc", "at '/image/digest': 'abc' does not match pattern"},
		"level that does not exist":         {"logLevel=trace", "at '/logLevel': value must be one of 'debug', 'info', 'error'"},
		"network of VMs without length":     {"probeNetworks={10.0.0.5}", "at '/probeNetworks/0': '10.0.0.5' does not match pattern"},
		"networks of VMs as one text":       {`probeNetworks=10.0.0.0/8\,fd00::/8`, "at '/probeNetworks': got string, want array"},
		"endpoint without scheme":           {"defaultCloudEndpoint=cloud.example.com", "at '/defaultCloudEndpoint': 'cloud.example.com' does not match pattern"},
		"selector in the syntax of kubectl": {"cloudSelector=shard", "at '/cloudSelector': got string, want object"},
		"selector, In without values":       {"cloudSelector.matchExpressions[0].key=shard,cloudSelector.matchExpressions[0].operator=In", "at '/cloudSelector/matchExpressions/0': missing property 'values'"},
		"selector, NotIn without values":    {"cloudSelector.matchExpressions[0].key=shard,cloudSelector.matchExpressions[0].operator=NotIn", "at '/cloudSelector/matchExpressions/0': missing property 'values'"},
		"selector, Exists with a value":     {"cloudSelector.matchExpressions[0].key=shard,cloudSelector.matchExpressions[0].operator=Exists,cloudSelector.matchExpressions[0].values={east}", "at '/cloudSelector/matchExpressions/0/values': maxItems: got 1, want 0"},
		"selector, two values as one":       {`cloudSelector.matchLabels.shard=east\,west`, "at '/cloudSelector/matchLabels/shard': 'east,west' does not match pattern"},
		"selector, key with a space":        {"cloudSelector.matchLabels.the shard=east", "does not match pattern"},
		"alert that does not exist":         {"monitoring.prometheusRule.disabled={NoLeaders}", "at '/monitoring/prometheusRule/disabled/0': value must be one of"},
		"CA that is not PEM":                {"webhook.caBundle=abc", "at '/webhook/caBundle': 'abc' does not match pattern"},
		"two endpoints of one Cloud":        {"mockCloud.enabled=true,defaultCloudEndpoint=http://a", "set either mockCloud.enabled or defaultCloudEndpoint"},
		"own certificate without Secret":    {"webhook.enabled=true,webhook.certManager.enabled=false", "set webhook.secretName"},
		"own certificate without CA":        {"webhook.enabled=true,webhook.certManager.enabled=false,webhook.secretName=a", "set webhook.caBundle"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := helm(t, "template", plainRelease, chart, "--set", tc.values)
			if err == nil || !strings.Contains(output, tc.want) {
				t.Errorf("helm template: %v, want %q", err, tc.want)
			}
		})
	}
	output, err := helm(t, "template", plainRelease, chart, "--kube-version", "1.35.2", "--set", "claimAtCreation.enabled=true")
	if want := "needs Kubernetes 1.36 or later, and this cluster has v1.35.2"; err == nil || !strings.Contains(output, want) {
		t.Errorf("helm template for Kubernetes 1.35: %v, want %q", err, want)
	}
}

func TestChartListsTheCRDsForArtifactHub(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct{ Annotations map[string]string }
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		t.Fatal(err)
	}
	type entry struct{ Kind, Version, Name, DisplayName, Description string }
	var listed []entry
	if err := yaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/crds"]), &listed); err != nil {
		t.Fatal(err)
	}
	described := map[string]entry{}
	for _, e := range listed {
		if e.DisplayName == "" || e.Description == "" {
			t.Errorf("%s has no displayName or no description", e.Name)
		}
		described[e.Name] = entry{Kind: e.Kind, Version: e.Version, Name: e.Name}
	}
	want := map[string]entry{}
	for _, o := range build(t, "crd") {
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		newest, _ := versions[len(versions)-1].(map[string]any)["name"].(string)
		want[o.GetName()] = entry{Kind: kind, Version: newest, Name: o.GetName()}
	}
	if diff := cmp.Diff(want, described); diff != "" {
		t.Errorf("artifacthub.io/crds in Chart.yaml (-config/crd +chart):\n%s", diff)
	}
}

func TestCRDsOfTheChartFollowTheirValues(t *testing.T) {
	for name, tc := range map[string]struct {
		values string
		count  int
		policy string
	}{
		"default: they are kept":                  {"", 8, "keep"},
		"keep is false: they go with the release": {"crds.keep=false", 8, ""},
		"enabled is false: none":                  {"crds.enabled=false", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			count := 0
			for _, object := range render(t, plainRelease, namespace, "--set", tc.values) {
				if object.GetKind() != "CustomResourceDefinition" {
					continue
				}
				count++
				if got := object.GetAnnotations()["helm.sh/resource-policy"]; got != tc.policy {
					t.Errorf("%s has the resource policy %q, want %q", object.GetName(), got, tc.policy)
				}
			}
			if count != tc.count {
				t.Errorf("%d CRDs, want %d", count, tc.count)
			}
		})
	}
}

func TestWebhookOfTheChartUsesTheIssuerOrTheCertificateOfItsValues(t *testing.T) {
	const (
		webhookName   = "private-cloud-operator-webhook"
		configuration = "private-cloud-operator-validating-webhook-configuration"
	)
	issued := render(t, plainRelease, namespace, "--set", "webhook.enabled=true,webhook.certManager.issuerRef.name=internal,webhook.certManager.issuerRef.kind=ClusterIssuer")
	reference, _, _ := unstructured.NestedStringMap(find(issued, "Certificate", webhookName).Object, "spec", "issuerRef")
	if diff := cmp.Diff(map[string]string{"name": "internal", "kind": "ClusterIssuer"}, reference); diff != "" {
		t.Errorf("issuer of the certificate (-want +got):\n%s", diff)
	}
	own := render(t, plainRelease, namespace, "--set", ownCertificate)
	if find(issued, "Issuer", webhookName).GetName() != "" {
		t.Error("there is an Issuer beside that of the values")
	}
	for _, kind := range []string{"Issuer", "Certificate"} {
		if find(own, kind, webhookName).GetName() != "" {
			t.Errorf("there is a %s beside the certificate of the values", kind)
		}
	}
	if annotations := find(own, "ValidatingWebhookConfiguration", configuration).GetAnnotations(); len(annotations) != 0 {
		t.Errorf("cert-manager replaces the CA: %v", annotations)
	}
	for _, deployment := range deployments(t, own) {
		if got := deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName; got != "own" {
			t.Errorf("the operator reads the Secret %s", got)
		}
	}
}

func TestChartIsValidAndHasTheVersionOfTheMakefile(t *testing.T) {
	for _, values := range []string{"", everything} {
		if output, err := helm(t, "lint", "--strict", "--set", values, chart); err != nil || strings.Contains(output, "[") {
			t.Errorf("helm lint: %v\n%s", err, output)
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	version := string(regexp.MustCompile(`(?m)^VERSION \?= (\S+)$`).FindSubmatch(makefile)[1])
	shown, err := helm(t, "show", "chart", chart)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"version: " + version, "appVersion: " + version} {
		if !slices.Contains(strings.Split(shown, "\n"), line) {
			t.Errorf("Chart.yaml does not have %s", line)
		}
	}
}
