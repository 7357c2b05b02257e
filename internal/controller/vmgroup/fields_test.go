package vmgroup

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// replaced is what happens to a member that is not changed in place.
const replaced = "replaced"

// example sets a field of a group.
type example struct {
	set func(*pcapi.VmGroup)
	// value is the field of a new member, as JSON.
	value string
	// revision is that of the group. If it changed, an upgrade of the operator would replace all members.
	revision string
	// added is what happens to a member without the field, and removed to one with it of a group that has it no longer:
	// replaced, the merge patch of its spec, or nothing.
	added, removed string
	// lacked is what a group reports as Unsupported on a cloud without capabilities; empty if the members report it.
	lacked string
	// waits reports whether a new member waits for another object, so that it is created without its claim.
	waits bool
}

// unrevised is the revision of a group without any of the examples.
const unrevised = "506dd2c90f"

// examples has each field of the spec of a VM that a group has, too.
var examples = map[string]example{
	"cpu": {
		set:   func(g *pcapi.VmGroup) { g.Spec.CPU = textCores(pcapi.Cores(3)) },
		value: `3`, revision: "01c692d355", added: `{"cpu":3,"updatePolicy":"RestartAllowed"}`, removed: `{"cpu":null,"updatePolicy":"RestartAllowed"}`,
	},
	"memory": {
		set:   func(g *pcapi.VmGroup) { g.Spec.Memory = textMemory("2048Mi") },
		value: `2`, revision: "45d4ee285e", added: `{"memory":2,"updatePolicy":"RestartAllowed"}`, removed: `{"memory":null,"updatePolicy":"RestartAllowed"}`,
	},
	"className": {
		set:   func(g *pcapi.VmGroup) { g.Spec.ClassName = "c1" },
		value: `"c1"`, revision: "c9d7870011", added: `{"className":"c1","updatePolicy":"RestartAllowed"}`, removed: `{"className":null,"updatePolicy":"RestartAllowed"}`, waits: true,
	},
	"flavor": {
		set:   func(g *pcapi.VmGroup) { g.Spec.Flavor = "m1.small" },
		value: `"m1.small"`, revision: "7aaa1ffcf9", added: `{"flavor":"m1.small","updatePolicy":"RestartAllowed"}`, removed: `{"flavor":null,"updatePolicy":"RestartAllowed"}`,
		lacked: "flavor", waits: true,
	},
	"template": {
		set:   func(g *pcapi.VmGroup) { g.Spec.Template = "debian" },
		value: `"debian"`, revision: "e43d52ff83", added: replaced, removed: replaced,
	},
	"cloudRef": {
		set:   func(g *pcapi.VmGroup) { g.Spec.CloudRef = &pcapi.CloudReference{Name: "other"} },
		value: `{"name":"other"}`, revision: "713ff38096", added: replaced, removed: replaced,
	},
	"zone": {
		set:   func(g *pcapi.VmGroup) { g.Spec.Zone = "z1" },
		value: `"z1"`, revision: "a337d2bbc5", added: replaced, removed: replaced, lacked: "zone",
	},
	"antiAffinity": {
		set:   func(g *pcapi.VmGroup) { g.Spec.AntiAffinity = &pcapi.VmGroupAntiAffinity{} },
		value: `{"group":"web","policy":"Required"}`, revision: "57d92d6f2f", added: replaced, removed: replaced, lacked: "antiAffinity",
	},
	"networkRef": {
		set:   func(g *pcapi.VmGroup) { g.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} },
		value: `{"name":"net"}`, revision: "9dcbd6b0e7", added: replaced, removed: replaced, waits: true,
	},
	"network": {
		set:   attachedTo("a", "b"),
		value: `{"interfaces":[{"name":"on-a","networkRef":{"name":"a"}},{"name":"on-b","networkRef":{"name":"b"}}]}`, revision: "4327efa2a4",
		added: replaced, removed: replaced, lacked: "network", waits: true,
	},
	"securityGroups": {
		set:   func(g *pcapi.VmGroup) { g.Spec.SecurityGroups = []pcapi.SecurityGroupName{"web", "ssh"} },
		value: `["web","ssh"]`, revision: unrevised, added: `{"securityGroups":["web","ssh"]}`, removed: `{"securityGroups":null}`, lacked: "securityGroups",
	},
	"allowedAddresses": {
		set:   func(g *pcapi.VmGroup) { g.Spec.AllowedAddresses = []pcapi.AllowedAddress{"10.0.0.9"} },
		value: `["10.0.0.9"]`, revision: unrevised, added: `{"allowedAddresses":["10.0.0.9"]}`, removed: `{"allowedAddresses":null}`, lacked: "allowedAddresses",
	},
	"publicAddress": {
		set:   func(g *pcapi.VmGroup) { g.Spec.PublicAddress = &pcapi.VMPublicAddress{Network: "ext-net"} },
		value: `{"network":"ext-net"}`, revision: unrevised, added: `{"publicAddress":{"network":"ext-net"}}`, removed: `{"publicAddress":null}`, lacked: "publicAddress",
	},
	"bootstrap": {
		set:   bootsFrom("boot", "ssh-rsa B", "ssh-rsa A"),
		value: `{"cloudInit":{"userDataSecretRef":{"name":"boot","key":"user-data"},"sshAuthorizedKeys":["ssh-rsa A","ssh-rsa B"]}}`, revision: "67d6cb5986",
		added: replaced, removed: replaced, waits: true,
	},
	"disks": {
		set:   func(g *pcapi.VmGroup) { g.Spec.Disks = []pcapi.VMDisk{diskOf("logs", "2048Gi"), diskOf("data", "1Gi")} },
		value: `[{"name":"data","size":"1Gi"},{"name":"logs","size":"2Ti"}]`, revision: "dbc5057bc3",
		added: `{"disks":[{"name":"data","size":"1Gi"},{"name":"logs","size":"2Ti"}],"updatePolicy":"RestartAllowed"}`, removed: replaced, lacked: "disks",
	},
	"rootDisk": {
		set:   func(g *pcapi.VmGroup) { g.Spec.RootDisk = &pcapi.VMRootDisk{Size: "2048Gi"} },
		value: `{"size":"2Ti"}`, revision: "e68f1395c4", added: `{"rootDisk":{"size":"2Ti"},"updatePolicy":"RestartAllowed"}`, removed: replaced, lacked: "rootDisk",
	},
	"tags": {
		set:   func(g *pcapi.VmGroup) { g.Spec.Tags = pcapi.VMTags{"env": "prod"} },
		value: `{"env":"prod"}`, revision: unrevised, added: `{"tags":{"env":"prod"}}`, removed: `{"tags":null}`, lacked: "tags",
	},
	"powerOffMode": {
		set:   func(g *pcapi.VmGroup) { g.Spec.PowerOffMode = pcapi.PowerOffModeSoft },
		value: `"Soft"`, revision: unrevised, added: `{"powerOffMode":"Soft"}`, removed: `{"powerOffMode":null}`,
	},
	"powerOffTimeout": {
		set:   func(g *pcapi.VmGroup) { g.Spec.PowerOffTimeout = &metav1.Duration{Duration: time.Minute} },
		value: `"1m0s"`, revision: unrevised, added: `{"powerOffTimeout":"1m0s"}`, removed: `{"powerOffTimeout":null}`,
	},
	"readinessProbe": {
		set: func(g *pcapi.VmGroup) {
			g.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
		},
		value: `{"address":{}}`, revision: unrevised, added: `{"readinessProbe":{"address":{}}}`, removed: `{"readinessProbe":null}`, lacked: "readinessProbe.address",
	},
	// A step of its own, SetApproval, sets it.
	"approval": {set: needsApproval, value: `"Required"`, revision: unrevised},
}

// ofMembers has what members get in the fields of the spec of a VM that a group does not have.
var ofMembers = map[string]string{
	"vmname": "the name of the member", "folder": "the namespace and the name of the group", "powerState": "On", "updatePolicy": "RestartAllowed for a new size",
	"deletionPolicy": "the default", "managementPolicy": "the default", "nextRestartTime": "none", "currentSnapshotName": "none", "import": "none",
}

// ofGroups are the fields of the spec of a group that members do not have.
var ofGroups = map[string]bool{"replicas": true, "strategy": true, "scaleDown": true}

// jsonName returns the name of a field in JSON.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// A field that is added to the spec of a VM or of a group has an example here, or members and groups do not share it.
func TestEachFieldOfMembers(t *testing.T) {
	plain := groupOfSize(1, bounds(1, 0), func(g *pcapi.VmGroup) { g.Spec.CPU, g.Spec.Template = nil, "" })
	whole := plain.DeepCopy()
	for _, ex := range examples {
		ex.set(whole)
	}
	if got := observedOf(whole).revision; got != "139e5b00e3" {
		t.Errorf("the revision of a group with all fields is %s", got)
	}
	for field := range reflect.TypeFor[pcapi.VmGroupSpec]().Fields() {
		name := jsonName(field)
		if _, ok := examples[name]; !ok && !ofGroups[name] {
			t.Errorf("spec.%s of a VmGroup is neither among the examples nor among those that members do not have", name)
		}
	}
	for field := range reflect.TypeFor[pcapi.VMSpec]().Fields() {
		name := jsonName(field)
		ex, ok := examples[name]
		if !ok {
			if ofMembers[name] == "" {
				t.Errorf("spec.%s of a VM is neither among the examples nor among those that groups do not have", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			set := plain.DeepCopy()
			ex.set(set)
			member, others := fieldsOf(t, newMember(t, set)), fieldsOf(t, newMember(t, plain))
			obs := observedOf(set)
			got := example{value: member[name], revision: obs.revision, added: changeOf(t, plain, set), removed: changeOf(t, set, plain), waits: !obs.claimsMembers()}
			obs.caps = cloud.NewCapabilities()
			got.lacked, ex.set = obs.lacking(), nil
			if diff := cmp.Diff(ex, got, cmp.AllowUnexported(example{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			delete(member, name)
			delete(others, name)
			if diff := cmp.Diff(others, member); diff != "" {
				t.Errorf("other fields of a member (-want +got):\n%s", diff)
			}
		})
	}
}

// observedOf observes a group without members whose Cloud can do everything.
func observedOf(g *pcapi.VmGroup, members ...*pcapi.VM) *observation {
	name := "default"
	if g.Spec.CloudRef != nil {
		name = g.Spec.CloudRef.Name
	}
	t := templateOf(g, name)
	return &observation{claimed: true, template: t, revision: t.revision(), reachable: true, members: members, caps: cloud.NewCapabilities(
		cloud.Idempotency, cloud.Labels, cloud.Folders, cloud.Resize, cloud.WithDisks, cloud.WithRootDisk, cloud.DiskTypes, cloud.Zones, cloud.WithAntiAffinity, cloud.Networks, cloud.WithInterfaces, cloud.Addresses, cloud.Flavors)}
}

// newMember returns a member that a group creates.
func newMember(t *testing.T, g *pcapi.VmGroup) *pcapi.VM {
	t.Helper()
	member, err := kindReading(t).member(g, observedOf(g), memberName(g, 0))
	if err != nil {
		t.Fatal(err)
	}
	return member
}

// fieldsOf returns the fields of the spec of a VM, as JSON.
func fieldsOf(t *testing.T, vm *pcapi.VM) map[string]string {
	t.Helper()
	text, err := json.Marshal(vm.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for name, value := range raw {
		fields[name] = string(value)
	}
	return fields
}

// changeOf returns what happens to a member if its group changes.
func changeOf(t *testing.T, from, to *pcapi.VmGroup) string {
	t.Helper()
	member := newMember(t, from)
	member.Spec.PowerState = pcapi.PowerOn // the default
	becomeReady(member)
	obs := observedOf(to, member)
	m := movesFor(to, obs)
	switch {
	case len(m.remove) > 0:
		return replaced
	case len(m.align)+len(m.keep) == 0:
		return ""
	}
	changed := member.DeepCopy()
	alignMember(to, obs, changed, len(m.align) > 0)
	if has := changed.Labels[pcapi.RevisionLabel]; len(m.align) > 0 && has != obs.revision {
		t.Errorf("the revision of the member is %s, want %s", has, obs.revision)
	}
	patch, err := client.MergeFrom(member).Data(changed)
	if err != nil {
		t.Fatal(err)
	}
	var of struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(patch, &of); err != nil {
		t.Fatal(err)
	}
	return string(of.Spec)
}
