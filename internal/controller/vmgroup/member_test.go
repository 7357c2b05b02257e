package vmgroup

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// TestMemberNamesAreThoseOfEarlierReleases fails if the names change: a group would take the
// names of its members for free after an upgrade.
func TestMemberNamesAreThoseOfEarlierReleases(t *testing.T) {
	for name, test := range map[string]struct {
		group string
		want  []string
	}{
		"a short name": {"web", []string{
			"web-replica-mvxsfkpi", "web-replica-vivyfgbm", "web-replica-klejdlqr", "web-replica-uocywiad", "web-replica-aeqaqwlk",
		}},
		"a name that does not fit: cut, with a hash": {strings.Repeat("long", 20), []string{
			"longlonglonglonglonglonglonglonglongl-5aa1dce7-replica-mvxsfkpi",
			"longlonglonglonglonglonglonglonglongl-5aa1dce7-replica-vivyfgbm",
			"longlonglonglonglonglonglonglonglongl-5aa1dce7-replica-klejdlqr",
			"longlonglonglonglonglonglonglonglongl-5aa1dce7-replica-uocywiad",
			"longlonglonglonglonglonglonglonglongl-5aa1dce7-replica-aeqaqwlk",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := groupOfSize(1, func(g *pcapi.VmGroup) { g.Name, g.UID = test.group, "0b6c1bd4-8b50-4ad9-93a9-0b9f3b2f7d61" })
			var got []string
			for _, n := range []int{0, 1, 9, 10, 49999} {
				got = append(got, memberName(g, n))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFreeNamesAreTheFirstThatAreNotTaken(t *testing.T) {
	g := groupOfSize(1)
	name := func(n int) string { return memberName(g, n) }
	k := &kind{refused: newRefused(time.Now)}
	k.refused.add(g, name(3))
	for test, tc := range map[string]struct {
		members []string
		n       int
		want    []string
	}{
		"no members: the first that was not refused": {nil, 4, []string{name(0), name(1), name(2), name(4)}},
		"members: the gaps, then those after them":   {[]string{name(0), name(2), name(6)}, 4, []string{name(1), name(4), name(5), name(7)}},
		"members with names of others take no name": {
			[]string{"another", strings.Replace(name(0), "web", "wob", 1), name(1)[:len(name(1))-1], name(2) + "x"}, 3, []string{name(0), name(1), name(2)},
		},
		"none is needed": {[]string{name(0)}, 0, []string{}},
	} {
		t.Run(test, func(t *testing.T) {
			var members []*pcapi.VM
			for _, member := range tc.members {
				members = append(members, vm(member))
			}
			if diff := cmp.Diff(tc.want, k.freeNames(g, observed(members), tc.n)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFreeNamesMakesNoNamesOfMembers(t *testing.T) {
	g := groupOfSize(1)
	members := make([]*pcapi.VM, 2000)
	for i := range members {
		members[i] = vm(memberName(g, i))
	}
	k, obs := &kind{refused: newRefused(time.Now)}, observed(members)
	if got := testing.AllocsPerRun(10, func() { k.freeNames(g, obs, 1) }); got > 200 {
		t.Errorf("%v allocations for one name beside 2000 members", got)
	}
}

// bootsFrom makes a group create its members from a Secret and keys.
func bootsFrom(secret string, keys ...pcapi.SSHAuthorizedKey) func(*pcapi.VmGroup) {
	return func(g *pcapi.VmGroup) {
		g.Spec.Bootstrap = &pcapi.VMBootstrap{CloudInit: pcapi.VMCloudInit{
			UserDataSecretRef: &pcapi.SecretKeyReference{Name: secret, Key: "user-data"}, SSHAuthorizedKeys: keys,
		}}
	}
}

// TestRevisionOfBootstrap holds the table of changes in docs/vmgroup.md. A revision that an
// earlier release computed must not change: it would replace all members after an upgrade.
func TestRevisionOfBootstrap(t *testing.T) {
	plain := groupOfSize(1, func(g *pcapi.VmGroup) { g.Spec.CPU, g.Spec.Memory, g.Spec.Template = pcapi.Cores(2), nil, "debian-13" })
	if got := templateOf(plain, "default").revision(); got != "9165a77469" {
		t.Errorf("a group without bootstrap has the revision %s", got)
	}
	before := templateOf(groupOfSize(1, bootsFrom("boot", "ssh-rsa B", "ssh-rsa A")), "default")
	for name, test := range map[string]struct {
		after    func(*pcapi.VmGroup)
		replaces bool
	}{
		"nothing":               {bootsFrom("boot", "ssh-rsa B", "ssh-rsa A"), false},
		"the order of the keys": {bootsFrom("boot", "ssh-rsa A", "ssh-rsa B"), false},
		"another Secret":        {bootsFrom("boot-2", "ssh-rsa A", "ssh-rsa B"), true},
		"a key less":            {bootsFrom("boot", "ssh-rsa A"), true},
		"a readiness probe": {func(g *pcapi.VmGroup) {
			bootsFrom("boot", "ssh-rsa B", "ssh-rsa A")(g)
			g.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
		}, false},
		"tags": {func(g *pcapi.VmGroup) {
			bootsFrom("boot", "ssh-rsa B", "ssh-rsa A")(g)
			g.Spec.Tags = map[string]pcapi.TagValue{"env": "prod"}
		}, false},
		"no bootstrap": {func(g *pcapi.VmGroup) { g.Spec.Bootstrap = nil }, true},
		"another key of the Secret": {func(g *pcapi.VmGroup) {
			bootsFrom("boot", "ssh-rsa A", "ssh-rsa B")(g)
			g.Spec.Bootstrap.CloudInit.UserDataSecretRef.Key = "other"
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := templateOf(groupOfSize(1, test.after), "default")
			member := vm("member", func(vm *pcapi.VM) {
				vm.Spec.Template, vm.Spec.Bootstrap = before.Template, before.Bootstrap
				vm.Spec.CloudRef = &pcapi.CloudReference{Name: "default"}
			})
			if changed := before.revision() != after.revision(); changed != test.replaces || after.sizeOnly(member) == test.replaces {
				t.Errorf("revision changed %t, size only %t; want the members replaced: %t", changed, after.sizeOnly(member), test.replaces)
			}
		})
	}
}
