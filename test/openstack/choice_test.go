package openstack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
)

// keyPairOfTests is the public half of a key pair, whose private half nobody has.
const keyPairOfTests = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILpJ6sYq0mB9pQmXo5bqgB0mI6YV4m3Zk2cT7hJq8r1W tests"

func TestFlavorWithoutADiskIsChosenLast(t *testing.T) {
	t.Parallel()
	c := newClient(t, newProject(t), &wire{})
	if server := create(t, c, cloud.CreateServer{Name: "web", CPU: 5, MemoryMiB: 1024}); server.Flavor != "t-5-1" {
		t.Errorf("flavor %q, want the one of this size that has a disk", server.Flavor)
	}
	_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", Flavor: diskless})
	if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "zero disk") {
		t.Errorf("a flavor without a disk: %v, want it Rejected by nova", err)
	}
}

func TestFlavorIsLargeEnoughForTheImage(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	const needs = "a disk of 5 GiB and 4096 MiB of memory"
	for name, req := range map[string]cloud.CreateServer{"a size": {CPU: 3, MemoryMiB: 5120}, "a flavor": {Flavor: "t-3-5"}, "the default": {}} {
		req.Name, req.Template = "web", demanding
		if _, err := newClient(t, p, &wire{}).CreateServer(t.Context(), req); !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), needs) {
			t.Errorf("%s: %v, want it Rejected with %q", name, err, needs)
		}
	}
	c := newClient(t, p, &wire{}, func(c *openstack.Config) { c.AtLeast = true })
	server := create(t, c, cloud.CreateServer{Name: "web", CPU: 3, MemoryMiB: 5120, Template: demanding})
	if server.Flavor != "t-6-8" {
		t.Errorf("flavor %q, want the next one that is large enough", server.Flavor)
	}
	stop(t, c, server.ID)
	if _, err := c.UpdateServer(t.Context(), server.ID, cloud.Update{cloud.SetFlavor("t-3-5")}); !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), needs) {
		t.Errorf("a resize: %v, want it Rejected with %q", err, needs)
	}
}

func TestFlavorForCertainHostsIsChosenByItsNameOnly(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	c := newClient(t, p, &wire{})
	if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 7}); !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), special+" (7 CPUs, 1024 MiB, by name only)") {
		t.Errorf("by size: %v, want it Rejected", err)
	}
	if server := create(t, c, cloud.CreateServer{Name: "web", Flavor: special}); server.CPU != 7 {
		t.Errorf("by name: %+v, want 7 CPUs", server)
	}
	limited := newClient(t, p, &wire{}, func(c *openstack.Config) { c.Flavors = []string{"t-2-*"} })
	if _, err := limited.CreateServer(t.Context(), cloud.CreateServer{Name: "limited", CPU: 7}); !cloud.Is(err, cloud.Rejected) ||
		!strings.Contains(err.Error(), "there are: t-2-2 (2 CPUs, 2048 MiB), t1 (1 CPUs, 512 MiB)") {
		t.Errorf("a size of which no flavor is allowed: %v, want it Rejected with those that are", err)
	}
	if server := create(t, limited, cloud.CreateServer{Name: "limited", Flavor: special}); server.CPU != 7 {
		t.Errorf("by name, which is not allowed for sizes: %+v, want 7 CPUs", server)
	}
}

func TestImageOfTheProjectIsUsedRatherThanAPublicOne(t *testing.T) {
	t.Parallel()
	p, a := newProject(t), admin()
	for template, name := range map[string]string{"": "small", "tags:stable, debian": "small", "debian:12": "debian:12"} {
		<-time.After(1100 * time.Millisecond) // glance keeps the time of a create in seconds
		var made map[string]any
		a.must(http.MethodPost, a.services["image"]+"/images", map[string]any{
			"name": name, "disk_format": "raw", "container_format": "bare", "visibility": "private", "owner": p.id, "tags": []string{"debian", "stable"},
		}, &made)
		id := fmt.Sprint(made["id"])
		if err := a.upload(id); err != nil {
			t.Fatalf("upload: %v", err)
		}
		if server := create(t, newClient(t, p, &wire{}), cloud.CreateServer{Name: "web", Template: template}); server.Image.ID != id {
			t.Errorf("template %q: image %+v, want %s: the newest of the project", template, server.Image, id)
		}
	}
}

// The account of the operator may not make key pairs, and reads only its own.
func TestKeyPairOfTheAccountIsGivenToServersOfWindows(t *testing.T) {
	t.Parallel()
	p, a := newProject(t), admin()
	name := p.name
	target := a.services["compute"] + "/os-keypairs"
	made := map[string]any{"keypair": map[string]any{"name": name, "user_id": a.userID, "type": "ssh", "public_key": keyPairOfTests}}
	a.at("compute 2.92").must(http.MethodPost, target, made, nil)
	t.Cleanup(func() {
		_, _, _, _ = a.at("compute 2.92").request(http.MethodDelete, target+"/"+name+"?user_id="+a.userID, nil, "application/json")
	})
	c := newClient(t, p, &wire{}, func(c *openstack.Config) { c.KeyPair = name })
	if _, err := c.Capabilities(t.Context()); err != nil {
		t.Fatalf("Capabilities: %v", err)
	}
	server := create(t, c, cloud.CreateServer{Name: "web", Template: ofWindows})
	var got struct {
		Server struct {
			KeyName string `json:"key_name"`
		}
	}
	a.must(http.MethodGet, a.services["compute"]+"/servers/"+server.ID, nil, &got)
	if got.Server.KeyName != name {
		t.Errorf("key pair %q, want %q", got.Server.KeyName, name)
	}

	missing := newClient(t, p, &wire{}, func(c *openstack.Config) { c.KeyPair = "none of them" })
	if _, err := missing.Capabilities(t.Context()); !cloud.Is(err, cloud.Misconfigured) || !strings.Contains(err.Error(), `no key pair "none of them"`) {
		t.Errorf("Capabilities: %v, want Misconfigured", err)
	}
	if _, err := missing.CreateServer(t.Context(), cloud.CreateServer{Name: "web", Template: ofWindows}); !cloud.Is(err, cloud.Misconfigured) {
		t.Errorf("CreateServer: %v, want Misconfigured", err)
	}
}
