package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
	vspherecloud "github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/controller/vm/field"
)

func TestWrongInVCenter(t *testing.T) {
	mine := vcenterVM{Name: "sample", Folder: "vm-operator", ID: "a", Owned: true}
	node := vcenterVM{Name: "worker-1", Folder: "vm-operator", ID: "n"}
	member := vcenterVM{Name: "one", Folder: "default-workers", ID: "m", Owned: true}
	own := []string{"vm-operator", "vm"}
	for name, c := range map[string]struct {
		clones        int
		vms           []vcenterVM
		folders       []string
		created, left int
		want          []string
	}{
		"one clone, one VM and that of a Node: as expected":      {clones: 1, vms: []vcenterVM{mine, node}, folders: own, created: 1, left: 1},
		"all VMs deleted and their folders removed: as expected": {clones: 2, vms: []vcenterVM{node}, folders: own, created: 2},
		"a folder with a member: as expected": {
			clones: 1, vms: []vcenterVM{member}, folders: append(own, "default-workers"), created: 1, left: 1,
		},
		"a second clone: one too many": {
			clones: 2, vms: []vcenterVM{mine}, created: 1, left: 1, want: []string{"2 clones were requested, expected 1"},
		},
		"a VM that was not deleted: it exists": {
			clones: 1, vms: []vcenterVM{mine}, created: 1, want: []string{"1 VMs exist, expected 0: [vm-operator/sample]"},
		},
		"two VMs with one instance UUID: reported once": {
			clones: 2, vms: []vcenterVM{mine, mine}, created: 2, left: 2, want: []string{"VMs have the instance UUID a"},
		},
		"folders of a group and of a sample without VMs: reported": {
			clones: 1, folders: append(own, "default-workers", "databases"), created: 1,
			want: []string{"the folder databases is empty, and was not removed", "the folder default-workers is empty, and was not removed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, wrongInVCenter(c.clones, c.vms, c.folders, c.created, c.left)); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpectedOnVSphereNamesAppliedSamplesOnly(t *testing.T) {
	on := vsphere{}
	taken, err := os.ReadFile(filepath.Join("..", "..", on.refused(), "vm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := on.expected()
	object := parse(t, string(taken))
	if name := object.GetKind() + "/" + object.GetName(); all[name].status["vmId"] != absent {
		t.Errorf("%s is expected to get a VM, although its name is taken", name)
	}
}

// Expectations must be changed together with the patches that remove samples.
func TestVSphereRunsTheSamplesThatItsCapabilitiesAllow(t *testing.T) {
	caps := capabilitiesOfVCenter(t)
	var impossible []string
	for _, object := range appliedSamples(t) {
		switch object.GetKind() {
		case "Network":
			if !caps.Has(cloud.Networks) {
				impossible = append(impossible, "Network/"+object.GetName())
			}
		case "VM":
			vm := &pcapi.VM{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, vm); err != nil {
				t.Fatal(err)
			}
			if field.Unsupported(vm, caps) != nil || (vm.Spec.NetworkRef != nil && !caps.Has(cloud.Networks)) {
				impossible = append(impossible, "VM/"+object.GetName())
			}
		}
	}
	slices.Sort(impossible)
	if diff := cmp.Diff(impossible, removedSamples(t)); diff != "" {
		t.Errorf("samples that %s removes (-impossible +removed):\n%s", vsphere{}.samples(), diff)
	}
	all := vsphere{}.expected()
	for name := range expected {
		if _, found := all[name]; found == slices.Contains(impossible, name) {
			t.Errorf("%s is expected: %v, and it is possible: %v", name, found, !slices.Contains(impossible, name))
		}
	}
}

// capabilitiesOfVCenter returns the capabilities of the Cloud that the demo creates.
func capabilitiesOfVCenter(t *testing.T) cloud.Capabilities {
	t.Helper()
	server, err := vcsim.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	pool := "/DC0/host/DC0_C0/Resources"
	client, err := vspherecloud.New(vspherecloud.Config{
		Name: "demo", Endpoint: server.URL, Credentials: vspherecloud.Credentials{Username: "user", Password: "pass"},
		Limits: transport.Limits{RequestsPerSecond: 1000, Burst: 1000, MaxInFlight: 8},
		Place: vspherecloud.Place{
			Datacenter: "DC0", Folder: vcsim.Folder, ResourcePool: pool, Datastore: "LocalDS_0",
			Zones:          []vspherecloud.Zone{{Name: "zone-a", ResourcePool: pool}},
			TemplateFolder: "/DC0/vm", DefaultTemplate: vcsim.Template,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.WithoutCancel(t.Context())) })
	caps, err := client.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return caps
}

// removedSamples returns the kinds and names that the patches of the kustomization delete, sorted.
func removedSamples(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", vsphere{}.samples(), "Kustomization"))
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		Patches []struct {
			Target struct{ Kind, Name string }
			Patch  string
		}
	}
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		t.Fatal(err)
	}
	var removed []string
	for _, patch := range kustomization.Patches {
		name := regexp.MustCompile("^(" + patch.Target.Name + ")$")
		every := patch.Target.Name == ""
		if !strings.Contains(patch.Patch, "$patch: delete") {
			continue
		}
		for _, object := range appliedSamples(t) {
			if object.GetKind() == patch.Target.Kind && (every || name.MatchString(object.GetName())) {
				removed = append(removed, object.GetKind()+"/"+object.GetName())
			}
		}
	}
	slices.Sort(removed)
	return removed
}

func TestUnknownCloudIsRefused(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "--cloud=aws", "--once")
	command.Env = append(os.Environ(), runMain+"=1")
	output, err := command.CombinedOutput()
	if want := "demo: there is no cloud \"aws\": use mock or vsphere\n"; err == nil || string(output) != want {
		t.Errorf("got %q, %v, want %q and an error", output, err, want)
	}
}
