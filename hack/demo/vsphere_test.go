package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	var missing []string
	for name := range expected {
		if _, found := all[name]; !found {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if diff := cmp.Diff([]string{"Network/backend", "Network/example-network", "VM/bastion", "VM/networked", "VM/router"}, missing); diff != "" {
		t.Errorf("samples that are expected on the mock cloud only (-want +got):\n%s", diff)
	}
}

func TestUnknownCloudIsRefused(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "--cloud=aws", "--once")
	command.Env = append(os.Environ(), runMain+"=1")
	output, err := command.CombinedOutput()
	if want := "demo: there is no cloud \"aws\": use mock or vsphere\n"; err == nil || string(output) != want {
		t.Errorf("got %q, %v, want %q and an error", output, err, want)
	}
}
