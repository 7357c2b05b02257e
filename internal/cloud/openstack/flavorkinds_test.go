package openstack

import (
	"slices"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestExtraSpecsForCertainHostsAndDevices(t *testing.T) {
	for key, value := range map[string]string{
		"pci_passthrough:alias": "a100:1", "resources:VGPU": "1", "resources1:CUSTOM_X": "1", "resources_GPU:VGPU": "1", "resources:CUSTOM_BAREMETAL": "1",
		"trait:HW_CPU_X86_AVX512F": "required", "trait_GPU:CUSTOM_A": "required", "hw:cpu_policy": "dedicated", "hw:mem_page_size": "large", "hw:numa_nodes": "2",
		"aggregate_instance_extra_specs:licence": "windows", "capabilities:boot_option": "local", "accel:device_profile": "fpga", "os:secure_boot": "required",
		"ssd": "true", "cpu_arch": "x86_64",
	} {
		if f := (flavor{ExtraSpecs: map[string]any{"quota:cpu_shares": "2048", key: value}}); !f.isSpecial() {
			t.Errorf("%s=%s is not special", key, value)
		}
	}
	ordinary := flavor{ExtraSpecs: map[string]any{
		"quota:disk_total_iops_sec": "1000", "hw_rng:allowed": "True", "hw_video:ram_max_mb": "16", "hw:cpu_policy": "shared", "hw:cpu_sockets": "1",
		"hw:watchdog_action": "reset", "hw:vif_multiqueue_enabled": "true", ":category": "general_purpose", "scs:name-v2": "SCS-1V-4", "odd:number": 1,
	}}
	if ordinary.isSpecial() || (flavor{}).isSpecial() {
		t.Error("limits, properties of the guest and texts for people count as special")
	}
}

func TestFlavorsForCertainHostsAreChosenByNameOnly(t *testing.T) {
	const flavors = `[
		{"id": "f1", "name": "gpu", "vcpus": 4, "ram": 8192, "disk": 10, "extra_specs": {"pci_passthrough:alias": "a100:1"}},
		{"id": "f2", "name": "small", "vcpus": 1, "ram": 1024, "disk": 10, "extra_specs": {"aggregate_instance_extra_specs:pool": "a"}},
		{"id": "f3", "name": "large", "vcpus": 4, "ram": 8192, "disk": 20, "extra_specs": {"hw_rng:allowed": "true", "quota:cpu_shares": "1"}},
		{"id": "f4", "name": "huge", "vcpus": 64, "ram": 65536, "disk": 20, "extra_specs": {"resources:CUSTOM_BAREMETAL": "1"}}]`
	tests := map[string]struct {
		req     cloud.CreateServer
		allowed []string
		atLeast bool
		// flavor is the id of what is sent, and says what the refusal says if nothing is.
		flavor, says string
	}{
		"by a size that another one has":       {req: cloud.CreateServer{CPU: 4, MemoryMiB: 8192}, flavor: "f3"},
		"by a size that no other one has":      {req: cloud.CreateServer{CPU: 64}, says: "no flavor has exactly 64 CPUs; there are: gpu (4 CPUs, 8192 MiB, by name only), huge (64 CPUs, 65536 MiB, by name only), large (4 CPUs, 8192 MiB), small (1 CPUs, 1024 MiB)"},
		"by a size that only smaller ones are": {req: cloud.CreateServer{CPU: 32}, atLeast: true, says: "no flavor has 32 CPUs or more"},
		"by name":                              {req: cloud.CreateServer{Flavor: "gpu"}, flavor: "f1"},
		"the default":                          {flavor: "f2"},
		"the default, by its size":             {req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024}, flavor: "f2"},
		"allowed, by name":                     {req: cloud.CreateServer{Flavor: "gpu"}, allowed: []string{"x", "g*"}, flavor: "f1"},
		"allowed, by size":                     {req: cloud.CreateServer{CPU: 4, MemoryMiB: 8192}, allowed: []string{"gpu"}, flavor: "f1"},
		"not allowed, by name":                 {req: cloud.CreateServer{Flavor: "gpu"}, allowed: []string{"l*"}, flavor: "f1"},
		"unknown, by name: names what is allowed": {
			req: cloud.CreateServer{Flavor: "none"}, allowed: []string{"l*"}, says: `no flavor is named "none"; there are: large (4 CPUs, 8192 MiB), small (1 CPUs, 1024 MiB)`,
		},
		"not allowed, by size":           {req: cloud.CreateServer{CPU: 4, MemoryMiB: 8192}, allowed: []string{"s*"}, says: "there are: small (1 CPUs, 1024 MiB)"},
		"the default is always allowed":  {allowed: []string{"l*"}, flavor: "f2"},
		"the default is allowed by name": {req: cloud.CreateServer{Flavor: "small"}, allowed: []string{"l*"}, flavor: "f2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.offers(flavors, imagesOfSizes())
			c := s.client(func(c *Config) { c.AtLeast, c.Flavors = tc.atLeast, tc.allowed })
			tc.req.Name = "web"
			_, err := c.CreateServer(t.Context(), tc.req)
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("CreateServer: %v", err)
			case tc.says != "" && (!cloud.Is(err, cloud.Rejected) || !strings.HasSuffix(err.Error(), tc.says) && !strings.Contains(err.Error(), tc.says+";")):
				t.Errorf("CreateServer: %v, want %q", err, tc.says)
			}
			sent := slices.DeleteFunc(s.taken(), func(r string) bool { return !strings.HasPrefix(r, "POST") })
			if (len(sent) == 1) != (tc.flavor != "") || (len(sent) == 1 && !strings.Contains(sent[0], `"flavorRef":"`+tc.flavor+`"`)) {
				t.Errorf("sent %q, want a create with flavor %q", sent, tc.flavor)
			}
		})
	}
}

func TestNoFlavorIsAllowed(t *testing.T) {
	s := newStub(t)
	_, err := s.client(func(c *Config) { c.Flavor, c.Flavors = "", []string{"x*"} }).CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 1})
	if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "the project has none that spec.openstack.flavors.allowed of the Cloud allows") {
		t.Errorf("CreateServer: %v, want it Rejected with the field of the Cloud", err)
	}
}
