// Package manifests_test holds config/ against a real API server: everything
// that is meant to be applied is applied there, with strict validation.
package manifests_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

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

func TestWhatUsersApplyIsAccepted(t *testing.T) {
	// In this order: samples need the kinds.
	for _, args := range [][]string{
		{"--server-side", "-k", "config/default"},
		{"--server-side", "-k", "config/overlays/development"},
		{"--server-side", "--force-conflicts", "-k", "config/overlays/production"},
		{"-k", "config/overlays/production/cloud"},
		{"--server-side", "-k", "config/overlays/autoscaling"},
		{"-k", "config/network-policy"},
		{"-k", "config/scorecard/rbac"},
		{"-k", "config/samples"},
		{"-f", "config/samples"},
		{"-f", "config/samples/cloud/samplecontroller_v1alpha1_cloud.yaml"},
		{"-f", "config/samples/prohibited"},
		{"-f", "config/samples/policies"},
		{"-f", "config/samples/autoscaling"},
	} {
		output, err := kubectl(append([]string{"apply", "--validate=strict"}, args...)...)
		if err != nil {
			t.Errorf("kubectl apply %s: %v", strings.Join(args, " "), err)
		}
		if bytes.Contains(output, []byte("Warning")) {
			t.Errorf("kubectl apply %s:\n%s", strings.Join(args, " "), output)
		}
	}
}

func TestPodsMeetThePodSecurityStandardOfTheirNamespace(t *testing.T) {
	if _, err := kubectl("apply", "--server-side", "--force-conflicts", "-k", "config/default"); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"default", "overlays/development", "overlays/production", "overlays/autoscaling"} {
		objects := build(t, overlay)
		// The last one is applied beside one of the others, into its namespace.
		if got := find(objects, "Namespace", namespace).GetLabels()["pod-security.kubernetes.io/enforce"]; got != "restricted" && overlay != "overlays/autoscaling" {
			t.Errorf("%s enforces the standard %q", overlay, got)
		}
		for _, deployment := range deployments(t, objects) {
			template := deployment.Spec.Template
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe", Labels: template.Labels}, Spec: template.Spec,
			}
			if err := env.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Errorf("%s: a pod of %s: %v", overlay, deployment.Name, err)
			}
		}
	}
}

func TestTheDefaultCloudIsTheMockBesideTheOperatorInAnyNamespace(t *testing.T) {
	objects := build(t, "overlays/development")
	name, port := "private-cloud-operator-mock-cloud", int32(8080)
	endpoint := fmt.Sprintf("http://%s:%d", name, port)
	all := deployments(t, objects)
	var args []string
	for _, deployment := range all {
		args = append(args, deployment.Spec.Template.Spec.Containers[0].Args...)
	}
	// The operator finds the mock cloud by it, and a new mock cloud the old one.
	for _, flag := range []string{"--default-cloud-endpoint=", "--take-over="} {
		if !slices.Contains(args, flag+endpoint) {
			t.Errorf("no %s%s, which no namespace is part of, in %q", flag, endpoint, args)
		}
	}
	var service corev1.Service
	decode(t, find(objects, "Service", name), &service)
	if service.Spec.Ports[0].Port != port {
		t.Errorf("the Service's port is %d", service.Spec.Ports[0].Port)
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

func TestTheNameCheckCanBeAddedToEachOverlay(t *testing.T) {
	if _, err := kubectl("apply", "--server-side", "--force-conflicts", "-k", "config/default"); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"default", "overlays/development", "overlays/production"} {
		for _, object := range build(t, overlay) {
			if object.GetKind() == "ValidatingWebhookConfiguration" {
				t.Errorf("%s needs certificates that nobody makes", overlay)
			}
		}
		var rest bytes.Buffer
		var added []string
		objects := buildWithNameCheck(t, overlay)
		for _, object := range objects {
			if strings.HasPrefix(object.GetAPIVersion(), "cert-manager.io/") {
				// Its CRDs are not here.
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
			t.Errorf("%s: what cert-manager is to do (-want +got):\n%s", overlay, diff)
		}
		all := filepath.Join(t.TempDir(), "all.json")
		if err := os.WriteFile(all, rest.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		output, err := kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", all)
		if err != nil || bytes.Contains(output, []byte("Warning")) {
			t.Errorf("%s with the name check: %v\n%s", overlay, err, output)
		}
		checkNameCheck(t, overlay, objects)
	}
}

// checkNameCheck looks that what belongs together has one name everywhere.
func checkNameCheck(t *testing.T, overlay string, objects []*unstructured.Unstructured) {
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
		"the webhook leads to the Service":                 service.Namespace == to.Namespace && service.Spec.Ports[0].Port == 443,
		"the certificate is for the Service":               slices.Contains(names, service.Name+"."+service.Namespace+".svc"),
		"its issuer, which it is itself, has a name":       len(subject) > 0,
		"its issuer is beside it":                          issuer.GetNamespace() == certificate.GetNamespace() && issuer.GetNamespace() == namespace,
		"its CA is given to the API server":                configuration.Annotations["cert-manager.io/inject-ca-from"] == certificate.GetNamespace()+"/"+certificate.GetName(),
		"nobody waits for the operator who cannot have it": *hook.FailurePolicy == admissionregistrationv1.Ignore && *hook.TimeoutSeconds == 3,
	} {
		if !holds {
			t.Errorf("%s: not so: %s", overlay, what)
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
			t.Errorf("%s: the operator reads its certificate elsewhere than in %v", overlay, manager.VolumeMounts)
		}
		if got := deployment.Spec.Template.Spec.Volumes[0].Secret.SecretName; got != text("spec", "secretName") {
			t.Errorf("%s: the operator's certificate is of the Secret %s", overlay, got)
		}
		if !slices.ContainsFunc(manager.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == service.Spec.Ports[0].TargetPort.IntVal }) {
			t.Errorf("%s: the Service leads to no port of %v", overlay, manager.Ports)
		}
	}
	if diff := cmp.Diff([]string{"private-cloud-operator-controller-manager"}, selected); diff != "" {
		t.Errorf("%s: pods that the Service selects (-want +got):\n%s", overlay, diff)
	}
}

// buildWithNameCheck builds an overlay with the component, as an overlay of a
// user's own has it.
func buildWithNameCheck(t *testing.T, overlay string) []*unstructured.Unstructured {
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
	text := fmt.Sprintf("resources: [%[1]s/%[2]s]\ncomponents: [%[1]s/components/name-check]\n", config, overlay)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomize(t, folder)
}

func TestImagesHaveTheVersionOfTheMakefile(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^VERSION \?= (\S+)$`).FindSubmatch(makefile)[1]
	for _, overlay := range []string{"overlays/development", "overlays/production", "overlays/autoscaling"} {
		for _, deployment := range deployments(t, build(t, overlay)) {
			image := deployment.Spec.Template.Spec.Containers[0].Image
			if !strings.HasPrefix(image, "ghcr.io/privatecloud/") || !strings.HasSuffix(image, ":v"+string(version)) {
				t.Errorf("%s: image %s, whose tag is not v%s", overlay, image, version)
			}
		}
	}
}

// readConfig reads what kubectl will read, since go test takes an earlier
// result unless a file changed that the test itself has read.
var readConfig = sync.OnceValue(func() error {
	return filepath.WalkDir(filepath.Join(root, "config"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
})

func kubectl(args ...string) ([]byte, error) {
	if err := readConfig(); err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(env.Assets, "kubectl"), append([]string{"--kubeconfig=" + env.Kubeconfig()}, args...)...)
	cmd.Dir = root
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, output)
	}
	return output, err
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
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)); ; {
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

func decode(t *testing.T, from *unstructured.Unstructured, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
		t.Fatal(err)
	}
}
