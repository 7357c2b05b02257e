// Package manifests_test applies everything in config/ that users apply to a real
// API server, with strict validation, and checks what belongs together.
package manifests_test

import (
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
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
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

// builds has the texts of folders below config that were built.
var builds sync.Map

// build returns the objects of a folder below config, which is built once.
func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	once, _ := builds.LoadOrStore(folder, sync.OnceValues(func() (string, error) { return kubectl("kustomize", "config/"+folder) }))
	text, err := once.(func() (string, error))()
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
