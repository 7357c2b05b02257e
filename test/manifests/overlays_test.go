// Package manifests_test applies everything in config/ that users apply to a real
// API server, with strict validation, and checks what belongs together.
package manifests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/testkit"
)

const (
	root      = "../.."
	namespace = "private-cloud-operator-system"
)

var env *testkit.Env

func TestMain(m *testing.M) {
	var err error
	if env, err = testkit.Start(testkit.Options{WithoutCRDs: true}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// installDefault applies config/default once: other manifests need its kinds and
// its namespace.
var installDefault = sync.OnceValue(func() error {
	_, err := kubectl("apply", "--server-side", "--force-conflicts", "--validate=strict", "-k", "config/default")
	return err
})

func TestManifestsAreAcceptedWithoutWarning(t *testing.T) {
	if err := installDefault(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"--server-side", "-k", "config/default"},
		{"--server-side", "-k", "config/overlays/development"},
		{"--server-side", "--force-conflicts", "-k", "config/overlays/production"},
		{"-k", "config/overlays/production/cloud"},
		{"--server-side", "--force-conflicts", "-k", "config/overlays/split"},
		{"--server-side", "-k", "config/overlays/autoscaling"},
		{"-k", "config/scorecard/rbac"},
		{"-k", "config/drain/plan"},
		{"-k", "config/drain/delete"},
		{"-k", "config/drain/orphan"},
		{"-k", "config/samples"},
		{"-f", "config/samples"},
		{"-f", "config/samples/cloud/samplecontroller_v1alpha1_cloud.yaml"},
		{"-f", "config/samples/cloud/samplecontroller_v1alpha1_cloud_vsphere.yaml"},
		{"-f", "config/samples/cloud/samplecontroller_v1alpha1_cloud_openstack.yaml"},
		{"-f", "config/samples/cloud/samplecontroller_v1alpha1_vmclass.yaml"},
		{"-f", "config/samples/prohibited"},
		{"-f", "config/samples/policies"},
		{"-f", "config/samples/autoscaling"},
	} {
		t.Run(caseName(args[len(args)-2:]...), func(t *testing.T) {
			output, err := kubectl(append([]string{"apply", "--validate=strict"}, args...)...)
			if err != nil {
				t.Errorf("kubectl apply: %v", err)
			}
			if strings.Contains(output, "Warning") {
				t.Errorf("kubectl apply:\n%s", output)
			}
		})
	}
}

func TestCloudsThatAreShippedNameTheirNamespaces(t *testing.T) {
	var examples []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(readBundle(t).CSV.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	shipped := map[string][]*unstructured.Unstructured{"production/cloud": build(t, "overlays/production/cloud"), "the examples of the bundle": examples}
	for _, path := range []string{"cloud/samplecontroller_v1alpha1_cloud", "cloud/samplecontroller_v1alpha1_cloud_openstack", "cloud/samplecontroller_v1alpha1_cloud_vsphere", "policies/cloud_tenants"} {
		text, err := os.ReadFile(filepath.Join(root, "config", "samples", path+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		shipped[path] = parse(t, string(text))
	}
	for name, objects := range shipped {
		clouds := 0
		for _, object := range objects {
			if object.GetKind() != "Cloud" {
				continue
			}
			clouds++
			var c pcapi.Cloud
			decode(t, object, &c)
			if allowed := c.Spec.AllowedNamespaces; allowed == nil || len(allowed.MatchLabels)+len(allowed.MatchExpressions) == 0 {
				t.Errorf("%s: all namespaces may use Cloud %s", name, c.Name)
			}
		}
		if clouds == 0 {
			t.Errorf("%s has no Cloud", name)
		}
	}
}

// caseName is a name of a subtest with paths in it: a slash would make it two levels for -run.
func caseName(words ...string) string {
	return strings.ReplaceAll(strings.Join(words, " "), "/", ".")
}

func TestPodsMeetThePodSecurityStandardOfTheirNamespace(t *testing.T) {
	if err := installDefault(); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"default", "overlays/development", "overlays/production", "overlays/split", "overlays/autoscaling"} {
		t.Run(caseName(overlay), func(t *testing.T) {
			objects := build(t, overlay)
			// The overlay autoscaling is applied beside one of the others, into its namespace.
			if got := find(objects, "Namespace", namespace).GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" && overlay != "overlays/autoscaling" {
				t.Errorf("the enforced standard is %q, want restricted", got)
			}
			for _, deployment := range deployments(t, objects) {
				template := deployment.Spec.Template
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe", Labels: template.Labels}, Spec: template.Spec,
				}
				if err := env.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
					t.Errorf("a pod of %s: %v", deployment.Name, err)
				}
			}
		})
	}
}

func TestManagerIsNotKilledBeforeItHasRecordedItsEffects(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{
		"default": build(t, "default"), "production": build(t, "overlays/production"), "split": build(t, "overlays/split"), "bundle": bundleObjects(t),
	} {
		t.Run(name, func(t *testing.T) {
			for _, deployment := range deployments(t, objects) {
				if !strings.HasPrefix(deployment.Name, "private-cloud-operator-controller-manager") {
					continue
				}
				grace := time.Duration(*deployment.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
				if grace <= reconciler.StopTimeout {
					t.Errorf("terminationGracePeriodSeconds is %s, want more than the %s that the manager takes to stop", grace, reconciler.StopTimeout)
				}
			}
		})
	}
}

func TestDefaultCloudIsTheMockCloudOfTheSameNamespace(t *testing.T) {
	objects := build(t, "overlays/development")
	name := "private-cloud-operator-mock-cloud"
	all := deployments(t, objects)
	var args []string
	for _, deployment := range all {
		args = append(args, deployment.Spec.Template.Spec.Containers[0].Args...)
	}
	// The operator finds the mock cloud by this endpoint, and a new mock cloud the old one.
	ports := map[string]int32{"--default-cloud-endpoint=": 8080, "--take-over=": 8082}
	for flag, port := range ports {
		if endpoint := fmt.Sprintf("http://%s:%d", name, port); !slices.Contains(args, flag+endpoint) {
			t.Errorf("no %s%s, without a namespace, in %q", flag, endpoint, args)
		}
	}
	var service corev1.Service
	decode(t, find(objects, "Service", name), &service)
	var served []int32
	for _, port := range service.Spec.Ports {
		served = append(served, port.Port)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Values(ports)), served); diff != "" {
		t.Errorf("the Service's ports (-want +got):\n%s", diff)
	}
	if admin := "--admin-bind-address=127.0.0.1:8081"; !slices.Contains(args, admin) {
		t.Errorf("no %s in %q: the admin API needs no credentials", admin, args)
	}
	var selected []string
	for _, deployment := range all {
		if labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
			selected = append(selected, deployment.Name)
		}
	}
	if len(selected) != 1 || selected[0] != name {
		t.Errorf("the Service selects the pods of %v", selected)
	}
}

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
	return kustomize(t, folder)
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

func TestImagesHaveTheVersionOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^VERSION \?= (\S+)$`).FindSubmatch(makefile)[1]
	for _, overlay := range []string{"overlays/development", "overlays/production", "overlays/autoscaling"} {
		t.Run(caseName(overlay), func(t *testing.T) {
			for _, deployment := range deployments(t, build(t, overlay)) {
				image := deployment.Spec.Template.Spec.Containers[0].Image
				if !strings.HasPrefix(image, "ghcr.io/privatecloud/") || !strings.HasSuffix(image, ":v"+string(version)) {
					t.Errorf("the image is %s, want tag v%s", image, version)
				}
			}
		})
	}
}

// readConfig reads what kubectl reads: go test reuses an earlier result unless a
// file that the test itself has read changed.
var readConfig = sync.OnceValue(func() error { return readFolder("config") })

// readFolder reads all files below a folder of the project.
func readFolder(folder string) error {
	return filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
}

func kubectl(args ...string) (string, error) {
	if err := readConfig(); err != nil {
		return "", err
	}
	return env.Kubectl(context.Background(), "", args...)
}

func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	return kustomize(t, "config/"+folder)
}

func kustomize(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	text, err := kubectl("kustomize", folder)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

// parse returns the objects of YAML documents.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text)); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

func find(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	return &unstructured.Unstructured{}
}

func deployments(t *testing.T, objects []*unstructured.Unstructured) []appsv1.Deployment {
	t.Helper()
	var found []appsv1.Deployment
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			var deployment appsv1.Deployment
			decode(t, object, &deployment)
			found = append(found, deployment)
		}
	}
	if len(found) == 0 {
		t.Fatal("no Deployment")
	}
	return found
}

func encode(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

func decode(t *testing.T, from *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		t.Fatal(err)
	}
}
