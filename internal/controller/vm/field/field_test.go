package field

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
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
	disks, _ := cloud.NewDisks([]cloud.Disk{{Name: "data", SizeMiB: 1024}, {Name: "logs", SizeMiB: 1024, Type: "a type", Keep: true}})
	root := cloud.RootDisk{SizeMiB: 20 << 10, Type: "fast"}
	got := DescribeCreate(vm, cloud.CreateServer{Template: "debian), Delete db (", Folder: "f", Zone: "z", CPU: 2, MemoryMiB: 1536, PowerState: cloud.PowerOff, Disks: disks, RootDisk: root})
	want := []string{
		"cpu 2", "memory 1536Mi", `template "debian), Delete db ("`, "folder f", "zone z", "network front address 192.0.2.10", "network back",
		`anti-affinity Preferred group "g, Delete db"`, "root disk 20Gi of type fast", "disk data 1Gi", `disk logs 1Gi of type "a type", kept when the VM is deleted`, `tag "owner=a team"`, "user data of Secret init key user-data",
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

// What the status shows of a server is removed when the server is gone, and is enough to forecast changes of the server.
func TestStatusOfAServer(t *testing.T) {
	server := cloud.Server{
		State: cloud.StateActive, CPU: 2, MemoryMiB: 2 << 10, Flavor: "small", Zone: "z1", Host: "h1", Image: cloud.Image{ID: "i-1", Name: "debian"},
		Interfaces: "fa:16:3e:00:00:01,10.0.0.5", Disks: "data=1024=fast=keep logs=1024", RootDisk: cloud.RootDisk{SizeMiB: 1536, Type: "fast"},
	}
	vm := &pcapi.VM{}
	Report(vm, server, cloud.NewCapabilities(cloud.WithDisks))
	memory := resource.MustParse("2Gi")
	equal(t, "status", pcapi.VMStatus{
		Hardware: &pcapi.VMHardwareStatus{CPU: 2, Memory: &memory, Flavor: "small"}, Zone: "z1", Host: "h1", Image: &pcapi.VMImageStatus{ID: "i-1", Name: "debian"},
		Network: &pcapi.VMNetworkStatus{PrimaryIP4: "10.0.0.5", Interfaces: []pcapi.VMInterfaceStatus{{MACAddress: "fa:16:3e:00:00:01", Addresses: []string{"10.0.0.5"}}}},
		Disks:   []pcapi.VMDiskStatus{{Name: "data", Size: "1Gi", Type: "fast", DeletionPolicy: pcapi.VMDiskKeep}, {Name: "logs", Size: "1Gi"}}, RootDisk: &pcapi.VMRootDiskStatus{Size: "1536Mi", Type: "fast"},
	}, vm.Status)
	var shown cloud.Server
	Shown(vm, &shown)
	equal(t, "the server that the status shows", cloud.Server{CPU: 2, MemoryMiB: 2 << 10, Flavor: "small", Zone: "z1", Disks: server.Disks, RootDisk: server.RootDisk}, shown)
	Hide(vm)
	equal(t, "status without a server", pcapi.VMStatus{Disks: []pcapi.VMDiskStatus{{Name: "data", DeletionPolicy: pcapi.VMDiskKeep}, {Name: "logs"}}}, vm.Status)
}

func TestPlanShowsWhetherDisksAreKept(t *testing.T) {
	vm := vmWith(func(vm *pcapi.VM) {
		vm.Spec.Disks = []pcapi.VMDisk{{Name: "a", Size: "1Gi", DeletionPolicy: pcapi.VMDiskKeep}, {Name: "b", Size: "1Gi"}, {Name: "c", Size: "1Gi", DeletionPolicy: pcapi.VMDiskDelete}, {Name: "d", Size: "1Gi", DeletionPolicy: pcapi.VMDiskKeep}}
	})
	server := cloud.Server{State: cloud.StateActive, CPU: 2, Disks: "a=1024 b=1024=fast=keep c=1024"}
	want := []string{"new disk d 1Gi, kept when the VM is deleted", "disk a: keep it when the VM is deleted", "disk b: delete it when the VM is deleted"}
	equal(t, "plan", want, DescribeUpdate(server, Difference(vm, server)))
}

// vmWith returns a VM with changes.
func vmWith(change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		Spec: pcapi.VMSpec{VMName: "web", CPU: pcapi.Cores(2), PowerState: pcapi.PowerOn},
	}
	for _, f := range change {
		f(vm)
	}
	return vm
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// example sets a field of the spec.
type example struct {
	set func(*pcapi.VM)
	// lacked is what a cloud without capabilities cannot set.
	lacked string
	// created reports whether a create sends the field, and a plan shows it.
	created bool
	// changes are those of a server without the field, which a plan shows, too; empty if a server keeps what it has.
	changes string
}

// examples has each field of the spec that is not of the life cycle.
var examples = map[string]example{
	"cpu":    {set: func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(3) }, lacked: "cpu", created: true, changes: `cpu=3`},
	"memory": {set: func(vm *pcapi.VM) { vm.Spec.Memory = pcapi.GiB(3) }, lacked: "memory", created: true, changes: `memory=3072Mi`},
	"className": {set: func(vm *pcapi.VM) {
		vm.Spec.ClassName = "c1"
		vm.Status.Class = &pcapi.VMClassStatus{Name: "c1", Hardware: pcapi.VMClassHardware{CPU: *pcapi.Cores(4), Memory: *pcapi.GiB(4)}}
	}, lacked: "className", created: true, changes: `cpu=4 memory=4096Mi`},
	"flavor":   {set: func(vm *pcapi.VM) { vm.Spec.Flavor = "large" }, lacked: "flavor", created: true, changes: `flavor="large"`},
	"template": {set: func(vm *pcapi.VM) { vm.Spec.Template = "debian" }, lacked: "template", created: true},
	"folder":   {set: func(vm *pcapi.VM) { vm.Spec.Folder = "team" }, lacked: "folder", created: true},
	"zone":     {set: func(vm *pcapi.VM) { vm.Spec.Zone = "z1" }, lacked: "zone", created: true},
	"antiAffinity": {set: func(vm *pcapi.VM) {
		vm.Spec.AntiAffinity = &pcapi.VMAntiAffinity{Group: "db", Policy: pcapi.AntiAffinityRequired}
	}, lacked: "antiAffinity", created: true},
	"networkRef": {set: func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} }, lacked: "networkRef", created: true},
	"network": {set: func(vm *pcapi.VM) {
		vm.Spec.Network = &pcapi.VMNetwork{Interfaces: []pcapi.VMInterface{{Name: "a", NetworkRef: pcapi.NetworkReference{Name: "net"}}}}
	}, lacked: "network", created: true},
	"bootstrap": {set: func(vm *pcapi.VM) {
		vm.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{SSHAuthorizedKeys: []pcapi.SSHAuthorizedKey{publicKey}}}
	}, lacked: "bootstrap", created: true},
	"securityGroups":   {set: func(vm *pcapi.VM) { vm.Spec.SecurityGroups = []pcapi.SecurityGroupName{"web", "ssh"} }, lacked: "securityGroups", created: true, changes: `security groups ["ssh" "web"]`},
	"allowedAddresses": {set: func(vm *pcapi.VM) { vm.Spec.AllowedAddresses = []pcapi.AllowedAddress{"10.0.0.9"} }, lacked: "allowedAddresses", changes: `allowed addresses ["10.0.0.9"]`},
	"publicAddress":    {set: func(vm *pcapi.VM) { vm.Spec.PublicAddress = &pcapi.VMPublicAddress{Network: "ext-net"} }, lacked: "publicAddress", changes: `public address of "ext-net"`},
	"rootDisk":         {set: func(vm *pcapi.VM) { vm.Spec.RootDisk = &pcapi.VMRootDisk{Size: "20Gi", Type: "fast"} }, lacked: "rootDisk", created: true, changes: `root disk 20480Mi`},
	"disks":            {set: func(vm *pcapi.VM) { vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "1Gi"}} }, lacked: "disks", created: true, changes: `disk data=1024Mi`},
	"tags":             {set: func(vm *pcapi.VM) { vm.Spec.Tags = pcapi.VMTags{"env": "prod"} }, lacked: "tags", created: true, changes: `label "env"="prod" label "samplecontroller.k8s.io/tags"="env"`},
	"powerState":       {set: func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff }, lacked: "powerState", created: true, changes: `power=Off soft=false`},
	"powerOffMode":     {set: func(vm *pcapi.VM) { vm.Spec.PowerOffMode = pcapi.PowerOffModeSoft }, lacked: "powerOffMode"},
	"readinessProbe": {set: func(vm *pcapi.VM) {
		vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{GuestHeartbeat: &pcapi.VMGuestHeartbeatProbe{}}
	}, lacked: "readinessProbe.guestHeartbeat"},
}

// ofTheLifeCycle are the fields of the spec that the package does not handle.
var ofTheLifeCycle = []string{
	"vmname", "cloudRef", "powerOffTimeout", "nextRestartTime", "currentSnapshotName", "deletionPolicy", "managementPolicy", "updatePolicy", "approval", "import",
}

// A field that is added to the spec is one of a server, which has an example here, or one of the life cycle.
func TestEachFieldOfTheSpec(t *testing.T) {
	known := len(examples) + len(ofTheLifeCycle)
	of := reflect.TypeFor[pcapi.VMSpec]()
	if of.NumField() != known {
		t.Errorf("the spec of a VM has %d fields, the examples and the life cycle %d", of.NumField(), known)
	}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		ex, ok := examples[name]
		if !ok {
			if !slices.Contains(ofTheLifeCycle, name) {
				t.Errorf("spec.%s is not among the examples, and not of the life cycle", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			with, without := &pcapi.VM{}, &pcapi.VM{}
			ex.set(with)
			create := func(vm *pcapi.VM) (req cloud.CreateServer, shown []string) {
				in := Context{Capabilities: cloud.NewCapabilities(cloud.Labels, cloud.PowerAtCreate, cloud.Flavors)}
				for _, i := range controller.InterfacesOf(vm) {
					in.Interfaces = append(in.Interfaces, cloud.Attachment{NetworkID: i.NetworkRef.Name})
				}
				Create(vm, in, &req)
				return req, DescribeCreate(vm, req)
			}
			req, shown := create(with)
			before, shownBefore := create(without)
			if created := !cmp.Equal(req, before); created != ex.created {
				t.Errorf("a create sends the field: %t, want %t", created, ex.created)
			}
			if described := !cmp.Equal(shown, shownBefore); described != ex.created {
				t.Errorf("a plan of a create shows the field: %t, want %t", described, ex.created)
			}
			server := cloud.Server{State: cloud.StateActive, CPU: 1, MemoryMiB: 1 << 10, Flavor: "small", RootDisk: cloud.RootDisk{SizeMiB: 1 << 10}}
			update, none := Difference(with, server), cloud.NewCapabilities()
			equal(t, "changes of a server", "["+ex.changes+"]", fmt.Sprint(update))
			if shown := len(DescribeUpdate(server, update.Without(cloud.PowerPart))) > 0; shown != (len(update.Without(cloud.PowerPart)) > 0) {
				t.Errorf("a plan of an update shows the field: %t, want %t", shown, !shown)
			}
			left := len(Possible(update, none)) == 0 && Drift(with, server, none) != nil
			if refused := Unchangeable(with, update, none) != nil; len(update) > 0 && refused == left {
				t.Errorf("a cloud that cannot make the changes: refused %t, left out and reported %t, want one of them", refused, left)
			}
			equal(t, "outcome on a cloud without capabilities", fmt.Sprint(Lacks(when(ex.lacked != "", ex.lacked)...)), fmt.Sprint(Unsupported(with, none)))
		})
	}
}

// A field that a create sends and an update does not change cannot be changed once the VM exists: the API server refuses it.
func TestFieldsThatAServerKeepsAreImmutable(t *testing.T) {
	text, err := os.ReadFile("../../../../config/crd/bases/samplecontroller.k8s.io_vms.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Rules []struct{ FieldPath, Message string } `json:"x-kubernetes-validations"`
					} `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	immutable := map[string]bool{}
	for _, rule := range crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Rules {
		name := strings.TrimPrefix(rule.FieldPath, ".spec.")
		immutable[name] = immutable[name] || strings.HasPrefix(rule.Message, name+" cannot be changed once the VM exists")
	}
	for name, ex := range examples {
		if kept := ex.created && ex.changes == ""; immutable[name] != kept {
			t.Errorf("spec.%s: the API server refuses a change: %t, want %t", name, immutable[name], kept)
		}
	}
}
