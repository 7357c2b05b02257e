package manifests_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// webhookDefinition returns a webhook of the CSV.
func webhookDefinition(t *testing.T, csv *operatorsv1alpha1.ClusterServiceVersion, name string) operatorsv1alpha1.WebhookDescription {
	t.Helper()
	for _, definition := range csv.Spec.WebhookDefinitions {
		if definition.GenerateName == name {
			return definition
		}
	}
	t.Fatalf("the bundle has no webhook %s: run make bundle", name)
	return operatorsv1alpha1.WebhookDescription{}
}

func TestBundleAndKustomizeHaveTheSameWebhook(t *testing.T) {
	csv := readBundle(t).CSV
	definition := webhookDefinition(t, csv, "vmname.samplecontroller.k8s.io")
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	decode(t, find(build(t, "webhook"), "ValidatingWebhookConfiguration", "private-cloud-operator-validating-webhook-configuration"), &configuration)
	if len(configuration.Webhooks) != 1 {
		t.Fatalf("config/webhook has %d webhooks, want the name check alone: others would be in the component name-check", len(configuration.Webhooks))
	}
	want := configuration.Webhooks[0]
	checkDefinition(t, want, definition)
	if len(want.MatchConditions) == 0 {
		t.Error("config/webhook has no matchConditions: the API server calls the webhook for each write of the operator")
	}
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		container := deployment.Spec.Template.Spec.Containers[0]
		// OLM mounts the certificate that it makes there.
		flagged := slices.Contains(container.Args, "--webhook-cert-path=/tmp/k8s-webhook-server/serving-certs")
		serves := slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == definition.TargetPort.IntVal })
		if named := deployment.Name == definition.DeploymentName; flagged != named || serves != named {
			t.Errorf("%s: is the webhook's %t, has the flag %t, has the port %t", deployment.Name, named, flagged, serves)
		}
	}
}

// checkDefinition compares a webhook of config/ with that of the CSV. A CSV cannot have match
// conditions: the webhook itself answers what they leave out without a call to the cloud.
func checkDefinition(t *testing.T, want admissionregistrationv1.ValidatingWebhook, definition operatorsv1alpha1.WebhookDescription) {
	t.Helper()
	got := definition.GetValidatingWebhook("any", nil, nil)
	ignored := cmpopts.IgnoreFields(admissionregistrationv1.ValidatingWebhook{}, "ClientConfig", "MatchConditions")
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("the webhook (-config +bundle):\n%s", diff)
	}
	if diff := cmp.Diff(want.ClientConfig.Service.Path, got.ClientConfig.Service.Path); diff != "" {
		t.Errorf("its path (-config +bundle):\n%s", diff)
	}
	if definition.Type != operatorsv1alpha1.ValidatingAdmissionWebhook || definition.ContainerPort != 443 || definition.TargetPort == nil || definition.TargetPort.IntVal != 9443 {
		t.Errorf("OLM registers it as %s with the ports %d and %v", definition.Type, definition.ContainerPort, definition.TargetPort)
	}
}

// TestBundleAloneHasTheWebhookForClouds compares the webhook with the policy that other installations
// have, and checks that they do not have the webhook: they have no certificate for it.
func TestBundleAloneHasTheWebhookForClouds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "config", "manifests", "cloud_webhook.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	decode(t, parse(t, string(text))[0], &configuration)
	csv := readBundle(t).CSV
	if len(csv.Spec.WebhookDefinitions) != 2 {
		t.Errorf("the bundle has %d webhooks, want 2: run make bundle", len(csv.Spec.WebhookDefinitions))
	}
	definition := webhookDefinition(t, csv, "allowednamespaces.samplecontroller.k8s.io")
	checkDefinition(t, configuration.Webhooks[0], definition)
	if named := webhookDefinition(t, csv, "vmname.samplecontroller.k8s.io").DeploymentName; definition.DeploymentName != named {
		t.Errorf("%s serves it, want %s", definition.DeploymentName, named)
	}
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		served := slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--cloud-webhook")
		if named := deployment.Name == definition.DeploymentName; served != named {
			t.Errorf("%s: is the webhook's %t, has the flag %t", deployment.Name, named, served)
		}
	}

	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	decode(t, find(build(t, "overlays/production"), "ValidatingAdmissionPolicy", "private-cloud-operator-allowed-namespaces"), &policy)
	matched := policy.Spec.MatchConstraints.ResourceRules[0].RuleWithOperations
	matched.APIVersions = []string{pcapi.GroupVersion.Version} // Equivalent matches the others
	ignored := cmpopts.IgnoreFields(admissionregistrationv1.Rule{}, "Scope")
	if diff := cmp.Diff([]admissionregistrationv1.RuleWithOperations{matched}, definition.Rules, ignored); diff != "" {
		t.Errorf("what is reviewed (-policy +bundle):\n%s", diff)
	}
	if definition.FailurePolicy == nil || *definition.FailurePolicy != *policy.Spec.FailurePolicy {
		t.Errorf("its failurePolicy is %v, that of the policy %s", definition.FailurePolicy, *policy.Spec.FailurePolicy)
	}

	elsewhere := map[string][]*unstructured.Unstructured{"the chart": render(t, plainRelease, namespace, "--set", everything)}
	for _, overlay := range []string{"default", "overlays/development", "overlays/production", "overlays/split"} {
		elsewhere[overlay] = build(t, overlay)
	}
	elsewhere["the component name-check"] = buildWith(t, "overlays/production", "name-check")
	for where, objects := range elsewhere {
		for _, object := range objects {
			text, err := object.MarshalJSON()
			if err != nil || strings.Contains(string(text), *definition.WebhookPath) || strings.Contains(string(text), "--cloud-webhook") {
				t.Errorf("%s: %s %s refers to the webhook for Clouds, or serves it, or is no JSON: %v", where, object.GetKind(), object.GetName(), err)
			}
		}
	}
}
