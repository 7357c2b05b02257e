package openstack_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
)

// sampleOfRights is how many rights are taken away by default.
const sampleOfRights = 1

// All tests have a user with the rights of the page alone.
func TestRightsOfThePageSuffice(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	u := &use{T: t, c: newClient(t, p, &wire{}), groups: groupsOf(t, p)}
	u.everything("")
	if len(u.errs) > 0 {
		t.Errorf("the rights do not suffice: %v", errors.Join(u.errs...))
	}
}

// Rights in withoutError are only shown to cause no error.
func TestMissingRightIsReported(t *testing.T) {
	t.Parallel()
	for _, right := range rightsToTake(t) {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			admin().grant(p, admin().userID, "no-"+right)
			c := newClient(t, p, &wire{}, func(c *openstack.Config) {
				if strings.Contains(right, "keypairs") {
					c.KeyPair = "none"
				}
			})
			u := &use{T: t, c: c, groups: groupsOf(t, p)}
			u.everything(right)
			says, failed := saysWithout(right)
			if text := fmt.Sprint(errors.Join(u.errs...)); failed && !says.MatchString(text) || !failed && len(u.errs) > 0 {
				t.Errorf("got the errors %s\nwant %v", text, says)
			}
		})
	}
}

// withoutError are the rights without which no error says so, with the reason.
var withoutError = map[string]string{
	"volume:update":                                  "volumes keep the names that nova gives them",
	"volume:create_volume_metadata":                  "the names of volumes say which disk they are",
	"os_compute_api:os-flavor-extra-specs:index":     "flavors have no extra specs",
	"update_router":                                  "only a router that lost its gateway needs it",
	"update_router:external_gateway_info":            "only a router that lost its gateway needs it",
	"update_router:external_gateway_info:network_id": "only a router that lost its gateway needs it",
	"get_network:router:external":                    "only servers on an external network need it",
	"update_floatingip":                              "only an address whose port is gone needs it",
	"upload_image":                                   "the simulated hypervisor stores no image",
	"modify_image":                                   "the simulated hypervisor stores no image",
	"download_image":                                 "the simulated hypervisor reads no image",
	"get_image_location":                             "the image service stores images in files",
	"set_image_location":                             "the image service stores images in files",
}

// withoutName has what errors say without a right that they do not name.
var withoutName = map[string]string{
	"create_port":                      "Exhausted all hosts",
	"create_port:fixed_ips":            "Exhausted all hosts",
	"create_port:fixed_ips:ip_address": "Exhausted all hosts",
	"volume:get_all":                   "this cloud lacks disks",
	"volume:get":                       "Volume … could not be found",
	"get_image":                        "no image that can be used is named",
	"get_network":                      "no external network that can be used is named",
	"get_security_group":               "no security group that can be used is named",
	"get_subnet":                       "the network has no subnet yet",
}

// saysWithout returns what an error says without a right, and whether there is one.
func saysWithout(right string) (says *regexp.Regexp, failed bool) {
	if _, found := withoutError[right]; found {
		return nil, false
	}
	if text, found := withoutName[right]; found {
		return regexp.MustCompile(regexp.QuoteMeta(text)), true
	}
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(right) + `($|[^:_])`), true
}

// rightsToTake returns the rights that OPENSTACK_RIGHT selects.
func rightsToTake(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(os.Getenv("OPENSTACK_RIGHTS"))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(data))
	if len(all) == 0 {
		t.Fatal("there are no rights")
	}
	switch word := os.Getenv("OPENSTACK_RIGHT"); word {
	case "all":
		return all
	case "":
		random := rand.New(rand.NewPCG(seed(t), 0))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:sampleOfRights]
	default:
		selected := slices.DeleteFunc(all, func(right string) bool { return !strings.Contains(right, word) })
		if len(selected) == 0 {
			t.Fatalf("no right has %q in its name", word)
		}
		return selected
	}
}

// use does all that the operator does in a project.
type use struct {
	*testing.T
	c      *openstack.Client
	groups [2]string
	errs   []error
}

// note keeps an error, and returns whether there was none.
func (u *use) note(what string, err error) bool {
	if err != nil {
		u.errs = append(u.errs, fmt.Errorf("%s: %w", what, err))
		u.Logf("%s: %v", what, err)
	}
	return err == nil
}

// everything uses all kinds of objects, or those that need a right unless it is empty.
func (u *use) everything(right string) {
	ctx := u.Context()
	_, err := u.c.Capabilities(ctx)
	u.note("capabilities", err)
	_, err = u.c.ListServers(ctx, cloud.ListServers{})
	u.note("list servers", err)
	ofDisks := strings.Contains(right, "volume")
	if !ofDisks {
		u.onNetwork(ctx)
	}
	if ofDisks || right == "" {
		u.withDisks(ctx)
	}
}

// onNetwork uses a routed network, and a server on it that is reached from outside.
func (u *use) onNetwork(ctx context.Context) {
	network, err := u.c.CreateNetwork(ctx, cloud.CreateNetwork{
		Name: "net", CIDR: "10.8.0.0/24", IPv6CIDR: "fd00:8::/64", Gateway: "10.8.0.1", DNSNameservers: []string{"192.0.2.1"}, ExternalNetwork: externalNetwork, IdempotencyKey: "net",
	})
	if !u.note("create a network", err) {
		return
	}
	changed, err := u.c.UpdateNetwork(ctx, network.ID, cloud.UpdateNetwork{Gateway: "10.8.0.1", DNSNameservers: []string{"192.0.2.2"}, ExternalNetwork: externalNetwork})
	if u.note("change the network", err) {
		u.listed(ctx, changed)
	}
	server := u.created(ctx, cloud.CreateServer{
		Name: "web", NetworkID: network.ID, SecurityGroups: cloud.SecurityGroups(u.groups[0]), Labels: map[string]string{tagLabel: "web"},
		AntiAffinity: cloud.AntiAffinity{Group: "web"}, UserData: cloud.UserData("#!/bin/sh\n"), IdempotencyKey: "web",
	})
	if server != "" {
		_, err := u.c.ReadConsole(ctx, server, 1)
		u.note("read the console", err)
		u.changed(ctx, server)
		u.reverted(ctx, server)
		u.deleted(ctx, server)
		u.note("delete the snapshots", u.c.DeleteSnapshots(ctx, server, "web"))
	}
	if server := u.created(ctx, cloud.CreateServer{Name: "fixed", Interfaces: []cloud.Attachment{{NetworkID: network.ID, Addresses: []string{"10.8.0.9"}}}}); server != "" {
		u.deleted(ctx, server)
	}
	u.note("delete the network", u.c.DeleteNetwork(ctx, network.ID))
}

// listed notes an error if a network is not listed as it is.
func (u *use) listed(ctx context.Context, want cloud.Network) {
	all, err := u.c.ListNetworks(ctx)
	if !u.note("list networks", err) {
		return
	}
	at := slices.IndexFunc(all, func(n cloud.Network) bool { return n.ID == want.ID })
	if at < 0 || !reflect.DeepEqual(all[at], want) {
		u.note("list networks", fmt.Errorf("%+v is not in %+v", want, all))
	}
}

// changed makes changes of a server.
func (u *use) changed(ctx context.Context, server string) {
	u.update(ctx, server, "new label", cloud.SetLabel{Key: "env", Value: "test"})
	u.update(ctx, server, "label", cloud.RemoveLabel("env"))
	u.update(ctx, server, "public address", cloud.SetPublicAddress(externalNetwork))
	u.update(ctx, server, "security groups", cloud.SetSecurityGroups(u.groups[1]))
	u.update(ctx, server, "allowed addresses", cloud.SetAllowedAddresses("10.8.0.200"))
	u.update(ctx, server, "suspend", cloud.SetPower{State: cloud.PowerSuspended})
	u.update(ctx, server, "resume", cloud.SetPower{State: cloud.PowerOn})
	u.update(ctx, server, "stop", cloud.SetPower{State: cloud.PowerOff})
	u.update(ctx, server, "resize", cloud.SetFlavor("t-2-2"))
	u.update(ctx, server, "start", cloud.SetPower{State: cloud.PowerOn})
}

// reverted takes a snapshot of a server and reverts the server to it.
func (u *use) reverted(ctx context.Context, server string) {
	snapshot, err := u.c.CreateSnapshot(ctx, cloud.CreateSnapshot{ServerID: server, Name: "before", IdempotencyKey: "before"})
	if !u.note("create a snapshot", err) {
		return
	}
	for deadline := time.Now().Add(callTime); ; <-time.After(pollTime) {
		result, err := u.c.RevertServer(ctx, cloud.RevertServer{ServerID: server, SnapshotID: snapshot.ID})
		if cloud.Is(err, cloud.Busy) && time.Now().Before(deadline) {
			continue
		}
		if u.note("revert", err) {
			u.finish("revert", result)
		}
		return
	}
}

// withDisks uses a server that boots from a volume and has another one.
func (u *use) withDisks(ctx context.Context) {
	server := u.created(ctx, cloud.CreateServer{
		Name: "store", RootDisk: cloud.RootDisk{SizeMiB: 2048}, Disks: "data=1024=" + otherType, IdempotencyKey: "store",
	})
	if server == "" {
		return
	}
	u.update(ctx, server, "new disk", cloud.SetDisk{Name: "logs", SizeMiB: 1024})
	u.update(ctx, server, "larger disk", cloud.SetDisk{Name: "data", SizeMiB: 2048})
	u.update(ctx, server, "disk that is kept", cloud.SetDiskKeep{Name: "data", Keep: true})
	u.deleted(ctx, server)
}

// created returns the id of a new server, empty if there is none.
func (u *use) created(ctx context.Context, req cloud.CreateServer) string {
	result, err := u.c.CreateServer(ctx, req)
	if !u.note("create "+req.Name, err) {
		return ""
	}
	u.finish("create "+req.Name, result)
	return result.Server.ID
}

// finish waits until a change of a server has ended.
func (u *use) finish(what string, result cloud.Result) {
	for deadline := time.Now().Add(callTime); ; <-time.After(pollTime) {
		got, err := u.c.GetOperation(u.Context(), result.Operation)
		switch {
		case err != nil:
			u.note(what, err)
			return
		case got.Err != nil:
			u.note(what, got.Err)
			return
		case got.Done:
			return
		case time.Now().After(deadline):
			u.Fatalf("%s: operation %s does not end: %+v", what, result.Operation, got)
		}
	}
}

func (u *use) update(ctx context.Context, server, what string, change cloud.ServerChange) {
	result, err := u.c.UpdateServer(ctx, server, cloud.Update{change})
	if u.note(what, err) && result.Operation != "" {
		u.finish(what, result)
	}
}

func (u *use) deleted(ctx context.Context, server string) {
	result, err := u.c.DeleteServer(ctx, server)
	if u.note("delete", err) && !result.Gone() {
		u.finish("delete", result)
	}
	u.note("delete the public address", u.c.DeletePublicAddresses(ctx, server))
	for deadline := time.Now().Add(callTime); ; <-time.After(pollTime) {
		if err := u.c.DeleteDisks(ctx, server); !cloud.Is(err, cloud.Busy) || time.Now().After(deadline) {
			u.note("delete the disks", err)
			return
		}
	}
}
