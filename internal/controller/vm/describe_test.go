package vm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE1Xc0Zfo0n5TgjPYTTDYfqwkyUQdBD2ivKgyiMOQBLq"

func TestPlanShowsAllThatACreateAsksFor(t *testing.T) {
	vm := vmWith(func(vm *pcapi.VM) {
		vm.Spec.Network = &pcapi.VMNetwork{Interfaces: []pcapi.VMInterface{
			{Name: "a", NetworkRef: pcapi.NetworkReference{Name: "front"}, Addresses: []pcapi.VMAddress{"192.0.2.10"}}, {Name: "b", NetworkRef: pcapi.NetworkReference{Name: "back"}},
		}}
		vm.Spec.AntiAffinity = &pcapi.VMAntiAffinity{Group: "g, Delete db", Policy: pcapi.AntiAffinityPreferred}
		vm.Spec.Tags = map[string]pcapi.TagValue{"owner": "a team"}
		vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{
			UserDataSecretRef: &pcapi.SecretKeyReference{Name: "init", Key: "user-data"}, SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{publicKey, publicKey + " alice), PowerOff db ("},
		}}
	})
	disks, _ := cloud.NewDisks([]cloud.Disk{{Name: "data", SizeMiB: 1024}})
	got := describeCreate(vm, cloud.CreateServer{Template: "debian), Delete db (", Folder: "f", Zone: "z", CPU: 2, MemoryMiB: 1536, PowerState: cloud.PowerOff, Disks: disks})
	want := []string{
		"cpu 2", "memory 1536Mi", `template "debian), Delete db ("`, "folder f", "zone z", "network front address 192.0.2.10", "network back",
		`anti-affinity Preferred group "g, Delete db"`, "disk data 1Gi", `tag "owner=a team"`, "user data of Secret init key user-data",
		"SSH key FINGERPRINT", `SSH key FINGERPRINT "alice), PowerOff db ("`, "powered off",
	}
	for i := range want {
		want[i] = strings.Replace(want[i], "FINGERPRINT", fingerprint(publicKey), 1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The fingerprint is the one that ssh-keygen -l prints.
func TestFingerprint(t *testing.T) {
	const want = "SHA256:yFom9HhxusDh9d99N133Knf0qz4d2JGAwtEqNikx6HM"
	if got := fingerprint(publicKey); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if a, b := fingerprint("ssh-rsa A"), fingerprint("ssh-rsa B"); a == b {
		t.Errorf("two keys that cannot be decoded are the same: %s", a)
	}
}
