package main

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const runningVM = `
kind: VM
metadata: {name: sample, generation: 2}
spec: {vmname: vmsample}
status:
  observedGeneration: 2
  vmId: 0f0e7a3c-8a54-4c0b-9d7a-0a6f3a1f7c11
  cpuUtilization: 0
  state: Running
  conditions:
  - {type: Ready, status: "True", reason: Running, message: as the spec says}
  - {type: NameChecked, status: "True", reason: Available}
  - {type: Created, status: "True", reason: Created}
`

const rejectedVM = `
kind: VM
metadata: {name: taboo, generation: 1}
spec: {vmname: forbidden}
status:
  observedGeneration: 1
  state: Failed
  conditions:
  - {type: Ready, status: "False", reason: Prohibited}
  - {type: NameChecked, status: "False", reason: Prohibited}
  - {type: Created, status: "False", reason: Pending}
  - {type: Stalled, status: "True", reason: Prohibited}
`

const scaledGroup = `
kind: VmGroup
metadata: {name: vmgroup-sample, generation: 2}
spec: {replicas: 5, template: vm-operator-template}
status:
  observedGeneration: 2
  phase: RUNNING
  replicas: 5
  readyReplicas: 5
  updatedReplicas: 5
  cpuUtilization: 50
  conditions:
  - {type: Ready, status: "True", reason: Reconciled}
`

const invalidGroup = `
kind: VmGroup
metadata: {name: vg-2, generation: 1}
spec: {replicas: 3, template: no-such-template}
status:
  observedGeneration: 1
  phase: ERROR
  replicas: 0
  readyReplicas: 0
  conditions:
  - {type: Ready, status: "False", reason: MembersStalled}
  - {type: Stalled, status: "True", reason: MembersStalled}
`

func TestDifferencesOf(t *testing.T) {
	for name, c := range map[string]struct {
		manifest     string
		replace, new string
		want         []string
	}{
		"running VM with ID, 0 % utilization and all conditions: as expected": {manifest: runningVM},
		"VM with a prohibited name and no ID: as expected":                    {manifest: rejectedVM},
		"group with the specified number of members: as expected":             {manifest: scaledGroup},
		"group with a prohibited template and no members: as expected":        {manifest: invalidGroup},
		"group with fewer members than specified: readyReplicas differs": {
			manifest: scaledGroup, replace: "  readyReplicas: 5", new: "  readyReplicas: 3",
			want: []string{"status.readyReplicas is 3, expected 5"},
		},
		"group with a corrected template: members are missing": {
			manifest: invalidGroup, replace: "no-such-template", new: "vm-operator-template",
			want: []string{
				"condition Ready is False/MembersStalled, expected True/Reconciled", "status.cpuUtilization is absent, expected a number of 0-100",
				"status.phase is ERROR, expected RUNNING", "status.readyReplicas is 0, expected 3", "status.replicas is 0, expected 3",
				"status.updatedReplicas is absent, expected 3",
			},
		},
		"status of an earlier generation: observedGeneration differs": {
			manifest: runningVM, replace: "generation: 2}", new: "generation: 3}",
			want: []string{"status.observedGeneration is 2, expected 3"},
		},
		"ID that is not a UUID: vmId differs": {
			manifest: runningVM, replace: "0f0e7a3c-8a54-4c0b-9d7a-0a6f3a1f7c11", new: "server-1",
			want: []string{"status.vmId is server-1, expected a uuid"},
		},
		"utilization not known yet: cpuUtilization is absent": {
			manifest: runningVM, replace: "  cpuUtilization: 0\n",
			want: []string{"status.cpuUtilization is absent, expected a number of 0-100"},
		},
		"utilization above 100 %: cpuUtilization differs": {
			manifest: runningVM, replace: "cpuUtilization: 0", new: "cpuUtilization: 101",
			want: []string{"status.cpuUtilization is 101, expected a number of 0-100"},
		},
		"condition with another status: reported with reason and message": {
			manifest: runningVM, replace: `"True", reason: Running`, new: `"False", reason: Creating`,
			want: []string{"condition Ready is False/Creating (as the spec says), expected True/Running"},
		},
		"condition with the expected status and another reason: reason differs": {
			manifest: runningVM, replace: `reason: Created}`, new: `reason: Adopted}`,
			want: []string{"condition Created is True/Adopted, expected True/Created"},
		},
		"missing condition: reported as absent": {
			manifest: rejectedVM, replace: "  - {type: Stalled, status: \"True\", reason: Prohibited}\n",
			want: []string{"condition Stalled is absent, expected True/Prohibited"},
		},
		"VM with a prohibited name and an ID: vmId must be absent": {
			manifest: rejectedVM, replace: "state: Failed", new: "state: Failed\n  vmId: 0f0e7a3c-8a54-4c0b-9d7a-0a6f3a1f7c11",
			want: []string{"status.vmId is 0f0e7a3c-8a54-4c0b-9d7a-0a6f3a1f7c11, expected absent"},
		},
		"object without a status: one difference, not one per field": {
			manifest: "kind: VM\nmetadata: {name: sample, generation: 1}",
			want:     []string{"it has no status yet"},
		},
		"sample that is not listed: must be Ready": {
			manifest: rejectedVM, replace: "name: taboo", new: "name: another",
			want: []string{"condition Ready is False/Prohibited, expected True"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(t, strings.Replace(c.manifest, c.replace, c.new, 1))
			got := differencesOf(object, expected.of(object))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	objects, err := decode([]byte(manifest))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%d objects, %v in %s", len(objects), err, manifest)
	}
	return objects[0]
}

func TestSamplesAreShortAndHaveOneComment(t *testing.T) {
	for _, file := range sampleFiles(t) {
		if filepath.Dir(file) == filepath.Join("..", "..", samples, "autoscaling") {
			// These have two objects, and a comment that explains the divided sum.
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		comment, manifest, _ := bytes.Cut(data, []byte("\n"))
		if !bytes.HasPrefix(comment, []byte("# ")) || bytes.Contains(manifest, []byte("#")) {
			t.Errorf("%s: want a comment of one line at the start that says what the sample shows, and no other comment", file)
		}
		if lines := bytes.Count(data, []byte("\n")); lines > 20 {
			t.Errorf("%s has %d lines, expected at most 20", file, lines)
		}
		parse(t, string(data))
	}
}

func TestSamplesHaveNoUnknownFieldsAndShowEveryKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(pcapi.AddToScheme(scheme), autoscalingv2.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	kinds := map[string]bool{}
	for _, file := range sampleFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for manifest := range bytes.SplitSeq(data, []byte("\n---\n")) {
			_, kind, err := decoder.Decode(manifest, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			kinds[kind.Kind] = true
		}
	}
	want := []string{"Cloud", "GPUInfo", "HorizontalPodAutoscaler", "Network", "VM", "VMClass", "VMSnapshot", "VmGroup"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(kinds))); diff != "" {
		t.Errorf("kinds of the samples (-want +got):\n%s", diff)
	}
}

func TestExpectedNamesAppliedSamplesOnly(t *testing.T) {
	// The operator creates this one.
	applied := []string{"Cloud/default"}
	for _, object := range append(appliedSamples(t), sample(t, "prohibited/samplecontroller_v1alpha1_vm_prohibited.yaml")) {
		applied = append(applied, object.GetKind()+"/"+object.GetName())
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if !slices.Contains(applied, name) {
			t.Errorf("%s is expected, but %s applies only %v", name, samples, applied)
		}
	}
}

// appliedSamples returns the samples that the kustomization of all samples applies.
func appliedSamples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", samples, "Kustomization"))
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct{ Resources []string }
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range kustomization.Resources {
		objects = append(objects, sample(t, file))
	}
	return objects
}

func sample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", samples, file))
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func sampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", samples, "samplecontroller_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	nested, err := filepath.Glob(filepath.Join("..", "..", samples, "*", "samplecontroller_*.yaml"))
	if err != nil || len(nested) == 0 {
		t.Fatalf("no samples in subfolders: %v", err)
	}
	return append(files, nested...)
}
