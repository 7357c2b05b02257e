package manifests_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/api/pkg/manifests"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/operator-framework/api/pkg/validation"
	validator "github.com/operator-framework/api/pkg/validation/interfaces"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func readBundle(t *testing.T) *manifests.Bundle {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir(filepath.Join(root, "bundle"))
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestBundleIsValid(t *testing.T) {
	// All but MultipleArchitecturesValidator, which pulls the images.
	validators := append(slices.Clone(validation.DefaultBundleValidators), validator.Validators{
		validation.OperatorHubV2Validator, validation.StandardCapabilitiesValidator, validation.StandardCategoriesValidator,
		validation.AlphaDeprecatedAPIsValidator, validation.GoodPracticesValidator,
	}...)
	bundle := readBundle(t)
	found := validators.Validate(bundle.ObjectsToValidate()...)
	var objects []any
	for _, object := range bundle.Objects {
		objects = append(objects, object)
	}
	found = append(found, validation.ObjectValidator.Validate(objects...)...)
	for _, result := range found {
		for _, finding := range append(result.Errors, result.Warnings...) {
			t.Errorf("%s: %v", result.Name, finding)
		}
	}
}

func TestBundleHasOnlyKindsThatEveryClusterKnows(t *testing.T) {
	var got []string
	for _, object := range readBundle(t).Objects {
		if kind := object.GetKind(); !slices.Contains(got, kind) {
			got = append(got, kind)
		}
	}
	slices.Sort(got)
	want := []string{"ClusterRole", "ClusterServiceVersion", "CustomResourceDefinition", "NetworkPolicy", "Role", "RoleBinding", "Service"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds in the bundle (-want +got):\n%s", diff)
	}
}

func TestBundleHasNoRightsOnSecretsInAllNamespaces(t *testing.T) {
	strategy := readBundle(t).CSV.Spec.InstallStrategy.StrategySpec
	if len(strategy.Permissions) != 0 {
		t.Errorf("the CSV has permissions, which OLM grants in all namespaces: %v", strategy.Permissions)
	}
	for _, account := range strategy.ClusterPermissions {
		for _, rule := range account.Rules {
			if slices.Contains(rule.Resources, "secrets") || slices.Contains(rule.Resources, "leases") {
				t.Errorf("%s may %v %v in all namespaces", account.ServiceAccountName, rule.Verbs, rule.Resources)
			}
		}
	}
}

func TestSecretsCanOnlyBeReadInTheNamespaceOfTheInstallation(t *testing.T) {
	// Any namespace will do, as with OLM.
	const installed = "somewhere"
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installed}}
	if err := env.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	for _, object := range readBundle(t).Objects {
		if kind := object.GetKind(); kind == "Role" || kind == "RoleBinding" {
			object.SetNamespace(installed)
			if err := env.Client.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	mayRead := func(ctx context.Context, namespace string) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + installed + ":private-cloud-operator-controller-manager",
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: "get", Resource: "secrets", Name: "cloud-credentials",
			},
		}}
		err := env.Client.Create(ctx, review)
		return review.Status.Allowed, err
	}
	// The API server's authorizer learns of the roles through a watch.
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		return mayRead(ctx, installed)
	})
	if err != nil {
		t.Errorf("waiting until Secrets may be read in the namespace of the installation: %v", err)
	}
	for name, tc := range map[string]struct {
		namespace string
		allowed   bool
	}{
		"namespace of the installation: allowed": {installed, true},
		"another namespace: denied":              {metav1.NamespaceDefault, false},
	} {
		t.Run(name, func(t *testing.T) {
			allowed, err := mayRead(t.Context(), tc.namespace)
			if err != nil {
				t.Fatal(err)
			}
			if allowed != tc.allowed {
				t.Errorf("Secrets may be read: %t, want %t", allowed, tc.allowed)
			}
		})
	}
}

func TestEveryKindHasAnExampleWhoseKeysAreDescribed(t *testing.T) {
	csv := readBundle(t).CSV
	type example struct {
		Kind         string
		Spec, Status map[string]any
	}
	var examples []example
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	for _, owned := range csv.Spec.CustomResourceDefinitions.Owned {
		t.Run(owned.Kind, func(t *testing.T) {
			if len(owned.Resources) == 0 || owned.Description == "" {
				t.Error("no resources or no description")
			}
			found := slices.DeleteFunc(slices.Clone(examples), func(e example) bool { return e.Kind != owned.Kind })
			if len(found) == 0 {
				t.Error("no example")
			}
			for _, example := range found {
				if hasStatus := owned.Kind != "VMClass"; (len(example.Status) > 0) != hasStatus {
					t.Errorf("an example has a status: %t, want %t", !hasStatus, hasStatus)
				}
				for key := range example.Spec {
					if !slices.ContainsFunc(owned.SpecDescriptors, func(d operatorsv1alpha1.SpecDescriptor) bool { return d.Path == key }) {
						t.Errorf("spec.%s has no descriptor", key)
					}
				}
				for key := range example.Status {
					if !slices.ContainsFunc(owned.StatusDescriptors, func(d operatorsv1alpha1.StatusDescriptor) bool { return d.Path == key }) {
						t.Errorf("status.%s has no descriptor", key)
					}
				}
			}
		})
	}
}

func TestEachTypeOfCloudHasAnExampleAndAPageInTheDescription(t *testing.T) {
	csv := readBundle(t).CSV
	var examples []*unstructured.Unstructured
	if err := json.Unmarshal([]byte(csv.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	for cloudType, page := range map[pcapi.CloudType]string{
		pcapi.CloudTypeREST: "cloud-api.md", pcapi.CloudTypeVSphere: "vsphere.md", pcapi.CloudTypeOpenStack: "openstack.md",
	} {
		t.Run(string(cloudType), func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(root, "docs", page)); err != nil {
				t.Error(err)
			}
			if !strings.Contains(csv.Spec.Description, "https://github.com/privatecloud/operator/blob/main/docs/"+page) {
				t.Errorf("the description does not refer to docs/%s", page)
			}
			found := false
			for _, example := range examples {
				kind, _, _ := unstructured.NestedString(example.Object, "spec", "type")
				found = found || example.GetKind() == "Cloud" && kind == string(cloudType)
			}
			if !found {
				t.Errorf("no example Cloud of type %s", cloudType)
			}
		})
	}
}

func TestExamplesHaveNoUnknownFields(t *testing.T) {
	var examples []json.RawMessage
	if err := json.Unmarshal([]byte(readBundle(t).CSV.Annotations["alm-examples"]), &examples); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, example := range examples {
		if _, _, err := decoder.Decode(example, nil, nil); err != nil {
			t.Errorf("%v in %s", err, example)
		}
	}
}

func TestEveryImageOfTheBundleIsARelatedImage(t *testing.T) {
	csv := readBundle(t).CSV
	used := []string{scorecardImage(t)}
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			used = append(used, container.Image)
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
				t.Errorf("%s requests no CPU or no memory", container.Name)
			}
		}
	}
	listed := map[string]string{}
	for _, image := range csv.Spec.RelatedImages {
		listed[image.Name] = image.Image
	}
	if diff := cmp.Diff([]string{"manager", "metrics-api", "mock-cloud", "scorecard"}, slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("names of related images (-want +got):\n%s", diff)
	}
	for _, image := range used {
		if !slices.Contains(slices.Collect(maps.Values(listed)), image) {
			t.Errorf("%s is used and not listed in %v", image, listed)
		}
	}
	if want := listed["manager"]; csv.Annotations["containerImage"] != want {
		t.Errorf("containerImage is %s, want %s", csv.Annotations["containerImage"], want)
	}
}

// scorecardImage returns the image of the project's own scorecard suite.
func scorecardImage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "bundle", "tests", "scorecard", "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`image: (ghcr\.io/privatecloud/\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the scorecard has no suite of this project")
	}
	return string(found[1])
}

func TestIconIsThatOfConfigManifests(t *testing.T) {
	drawn, err := os.ReadFile(filepath.Join(root, "config", "manifests", "icon.svg"))
	if err != nil {
		t.Fatal(err)
	}
	icons := readBundle(t).CSV.Spec.Icon
	if len(icons) != 1 || icons[0].MediaType != "image/svg+xml" || icons[0].Data != base64.StdEncoding.EncodeToString(drawn) {
		t.Error("put base64 -w0 config/manifests/icon.svg into the base of the CSV, and run make bundle")
	}
}

func TestObjectsOfTheBundleCanBeApplied(t *testing.T) {
	for _, object := range readBundle(t).Objects {
		if object.GetKind() == "ClusterServiceVersion" {
			continue
		}
		t.Run(object.GetKind()+" "+object.GetName(), func(t *testing.T) {
			if object.GetNamespace() != "" {
				t.Errorf("the object names the namespace %s", object.GetNamespace())
			}
			object.SetNamespace(metav1.NamespaceDefault)
			object.SetManagedFields(nil)
			err := env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.FieldOwner("olm"))
			if err != nil {
				t.Error(err)
			}
		})
	}
}
