package manifests_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestNameCheckCanBeAddedToEachOverlay(t *testing.T) {
	if err := installDefault(); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"default", "overlays/development", "overlays/production"} {
		t.Run(caseName(overlay), func(t *testing.T) {
			for _, object := range build(t, overlay) {
				if object.GetKind() == "ValidatingWebhookConfiguration" {
					t.Error("the overlay alone has a webhook, which needs certificates that are not issued")
				}
			}
			objects := buildWith(t, overlay, "name-check")
			checkApplyWithoutCertManager(t, objects)
			checkNameCheck(t, objects)
		})
	}
}

// checkApplyWithoutCertManager applies all objects but those of cert-manager, whose
// CRDs are not installed here, and checks which those are.
func checkApplyWithoutCertManager(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	var rest bytes.Buffer
	var added []string
	for _, object := range objects {
		if strings.HasPrefix(object.GetAPIVersion(), "cert-manager.io/") {
			added = append(added, object.GetKind())
			continue
		}
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		rest.Write(text)
	}
	if diff := cmp.Diff([]string{"Certificate", "Issuer"}, added); diff != "" {
		t.Errorf("objects of cert-manager (-want +got):\n%s", diff)
	}
	all := filepath.Join(t.TempDir(), "all.json")
	if err := os.WriteFile(all, rest.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	output, err := kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", all)
	if err != nil || strings.Contains(output, "Warning") {
		t.Errorf("applying the overlay with the name check: %v\n%s", err, output)
	}
}

// checkNameCheck checks that webhook, Service, certificate and Deployment refer to each other.
func checkNameCheck(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	var configuration admissionregistrationv1.ValidatingWebhookConfiguration
	var service corev1.Service
	decode(t, find(objects, "ValidatingWebhookConfiguration", "private-cloud-operator-validating-webhook-configuration"), &configuration)
	hook := configuration.Webhooks[0]
	to := hook.ClientConfig.Service
	decode(t, find(objects, "Service", to.Name), &service)
	certificate := find(objects, "Certificate", "private-cloud-operator-webhook")
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(certificate.Object, fields...)
		return value
	}
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	subject, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "subject", "organizations")
	issuer := find(objects, "Issuer", text("spec", "issuerRef", "name"))
	for what, holds := range map[string]bool{
		"the webhook leads to the Service":               service.Namespace == to.Namespace && service.Spec.Ports[0].Port == 443,
		"the certificate is for the Service":             slices.Contains(names, service.Name+"."+service.Namespace+".svc"),
		"the self-signed certificate has a subject":      len(subject) > 0,
		"the issuer is in the certificate's namespace":   issuer.GetNamespace() == certificate.GetNamespace() && issuer.GetNamespace() == namespace,
		"the CA is injected into the webhook":            configuration.Annotations["cert-manager.io/inject-ca-from"] == certificate.GetNamespace()+"/"+certificate.GetName(),
		"an operator that is away does not block writes": *hook.FailurePolicy == admissionregistrationv1.Ignore && *hook.TimeoutSeconds == 3,
	} {
		if !holds {
			t.Errorf("does not hold: %s", what)
		}
	}
	var selected []string
	for _, deployment := range deployments(t, objects) {
		if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
			continue
		}
		selected = append(selected, deployment.Name)
		manager := deployment.Spec.Template.Spec.Containers[0]
		if len(manager.VolumeMounts) != 1 || !slices.Contains(manager.Args, "--webhook-cert-path="+manager.VolumeMounts[0].MountPath) {
			t.Errorf("the operator does not read its certificate from %v", manager.VolumeMounts)
		}
		if got := deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName; got != text("spec", "secretName") {
			t.Errorf("the operator's certificate is in the Secret %s", got)
		}
		if !slices.ContainsFunc(manager.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == service.Spec.Ports[0].TargetPort.IntVal }) {
			t.Errorf("the Service leads to no port of %v", manager.Ports)
		}
	}
	if diff := cmp.Diff([]string{"private-cloud-operator-controller-manager"}, selected); diff != "" {
		t.Errorf("Deployments that the Service selects (-want +got):\n%s", diff)
	}
}

// buildWith builds an overlay with components, as an overlay of a user does.
func buildWith(t *testing.T, overlay string, components ...string) []*unstructured.Unstructured {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs(filepath.Join(root, "config"))
	if err != nil {
		t.Fatal(err)
	}
	if config, err = filepath.Rel(folder, config); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%s/%s]\ncomponents:\n", config, overlay)
	for _, component := range components {
		text += fmt.Sprintf("- %s/components/%s\n", config, component)
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := kubectl("kustomize", folder)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, built)
}

func TestComponentAddsTheAdmissionPolicyAndNothingElse(t *testing.T) {
	const name = "private-cloud-operator-claim-at-creation"
	objects := buildWith(t, "overlays/production", "claim-at-creation")
	for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		if find(objects, kind, name).GetName() == "" {
			t.Errorf("there is no %s", kind)
		}
	}
	if got, want := len(objects), len(build(t, "overlays/production"))+2; got != want {
		t.Errorf("%d objects, want %d", got, want)
	}
	text := fmt.Sprint(find(objects, "MutatingAdmissionPolicy", name).Object)
	pointer := strings.NewReplacer("/", "~1")
	for _, part := range []string{
		pcapi.VMFinalizer, pointer.Replace(pcapi.ClaimedNameAnnotation), pointer.Replace(pcapi.ClaimedCloudAnnotation),
		pcapi.DefaultCloudLabel, "'" + pcapi.DefaultCloudName + "'", "'" + string(cloud.Idempotency) + "'", "'" + string(cloud.Labels) + "'",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the policy does not contain %s", part)
		}
	}
}

func TestPolicyThatRequiresAllowedNamespacesIsInTheProductionOverlayAlone(t *testing.T) {
	for overlay, want := range map[string]bool{"default": false, "overlays/development": false, "overlays/production": true, "overlays/split": true} {
		objects := build(t, overlay)
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			if got := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GetKind() == kind && o.GetName() == "private-cloud-operator-allowed-namespaces"
			}); got != want {
				t.Errorf("%s has the %s: %t, want %t", overlay, kind, got, want)
			}
		}
	}
}
