package openstack

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestFlavorIsTheSmallestThatFits(t *testing.T) {
	all := []flavor{
		{ID: "1", Name: "b.small", VCPUs: 1, MemoryMiB: 1024, Disk: 5},
		{ID: "2", Name: "a.small", VCPUs: 1, MemoryMiB: 1024, Disk: 5},
		{ID: "3", Name: "disk", VCPUs: 1, MemoryMiB: 1024, Disk: 10},
		{ID: "4", Name: "wide", VCPUs: 4, MemoryMiB: 1024, Disk: 5},
		{ID: "5", Name: "large", VCPUs: 4, MemoryMiB: 8192, Disk: 5},
		{ID: "0", Name: "a.diskless", VCPUs: 1, MemoryMiB: 1024},
		{ID: "6", Name: "off", VCPUs: 2, MemoryMiB: 2048, Disk: 5, Disabled: true},
	}
	tests := map[string]struct {
		asked          size
		standard       string
		exact, atLeast string
	}{
		"no size: the default":                       {standard: "large", exact: "large", atLeast: "large"},
		"no size and no default: none":               {},
		"the size of several: the first by name":     {asked: size{1, 1024}, exact: "a.small", atLeast: "a.small"},
		"between two: the next, if larger ones fit":  {asked: size{2, 4096}, exact: "", atLeast: "large"},
		"CPUs only: the least memory":                {asked: size{cpu: 4}, exact: "wide", atLeast: "wide"},
		"CPUs only, as the default has: the default": {asked: size{cpu: 4}, standard: "large", exact: "large", atLeast: "wide"},
		"memory only":                         {asked: size{mib: 8192}, exact: "large", atLeast: "large"},
		"a disabled one: not used":            {asked: size{2, 2048}, exact: "", atLeast: "large"},
		"larger than all: none":               {asked: size{8, 1024}},
		"a default that does not exist: none": {standard: "huge"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for atLeast, want := range map[bool]string{false: tc.exact, true: tc.atLeast} {
				c := &flavorClient{defaultFlavor: tc.standard, atLeast: atLeast}
				got, found := c.choose(all, wish{size: tc.asked})
				if got.Name != want || found != (want != "") {
					t.Errorf("at least %t: %q, want %q", atLeast, got.Name, want)
				}
			}
		})
	}
}

func TestMissingFlavorListsThoseThatThereAre(t *testing.T) {
	s := newStub(t)
	for _, tc := range []struct {
		atLeast bool
		says    string
	}{
		{false, `no flavor has exactly 3 CPUs and 5120 MiB of memory; there are: large (4 CPUs, 8192 MiB), small (1 CPUs, 1024 MiB)`},
		{true, ``},
	} {
		s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
		c := s.client(func(c *Config) { c.AtLeast = tc.atLeast })
		_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 3, MemoryMiB: 5120})
		if (err == nil) != (tc.says == "") || (err != nil && (!cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), tc.says))) {
			t.Errorf("at least %t: %v, want %q", tc.atLeast, err, tc.says)
		}
	}
	sent := s.taken()
	if last := sent[len(sent)-1]; !strings.Contains(last, `"privatecloud:size":"3x5120@large"`) || !strings.Contains(last, `"flavorRef":"f2"`) {
		t.Errorf("sent %s, want the larger flavor and the size that was asked for", last)
	}
}

func TestSizeIsThatWhichWasAskedFor(t *testing.T) {
	large := `"flavor": {"original_name": "large", "vcpus": 4, "ram": 8192}`
	tests := map[string]struct {
		fields []string
		want   size
	}{
		"no record: that of the flavor":                     {[]string{large}, size{4, 8192}},
		"a record for the flavor: the recorded size":        {[]string{large, `"metadata": {"privatecloud:size": "3x5120@large"}`}, size{3, 5120}},
		"a record for another flavor: that of the flavor":   {[]string{large, `"metadata": {"privatecloud:size": "3x5120@small"}`}, size{4, 8192}},
		"a record that is damaged: that of the flavor":      {[]string{large, `"metadata": {"privatecloud:size": "-3xx@large"}`}, size{4, 8192}},
		"a record of the CPUs only: the rest of the flavor": {[]string{large, `"metadata": {"privatecloud:size": "3x0@large"}`}, size{3, 8192}},
		"a resize of ours that is not confirmed: the size before": {
			[]string{large, `"status": "VERIFY_RESIZE"`, `"metadata": {"privatecloud:size": "4x8192@large", "privatecloud:resize": "1x1024@large"}`}, size{1, 1024},
		},
		"a resize of somebody else: that of the flavor": {[]string{large, `"status": "VERIFY_RESIZE"`}, size{4, 8192}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET compute/servers/"+someID, oneServer(tc.fields...))
			got, err := s.client().GetServer(t.Context(), someID)
			if diff := cmp.Diff([]int{tc.want.cpu, tc.want.mib}, []int{got.CPU, got.MemoryMiB}); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestCreateUsesTheFlavorThatIsNamed(t *testing.T) {
	s := newStub(t)
	s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
	c := s.client()
	got, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", Flavor: "large"})
	if err != nil || got.Server.Flavor != "large" || got.Server.CPU != 4 || got.Server.MemoryMiB != 8192 {
		t.Fatalf("CreateServer = %+v, %v; want the flavor large and its size", got.Server, err)
	}
	sent := s.taken()
	if body := sent[len(sent)-1]; !strings.Contains(body, `"flavorRef":"f2"`) || strings.Contains(body, sizeKey) {
		t.Errorf("sent %s, want flavor f2 and no record of a size", body)
	}
	_, err = c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", Flavor: "gone"})
	if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), `no flavor is named "gone"; there are: large (4 CPUs, 8192 MiB), small (1 CPUs, 1024 MiB)`) {
		t.Errorf("a flavor that does not exist: %v, want Rejected with what there is", err)
	}
	if sent := s.taken(); slices.ContainsFunc(sent, func(r string) bool { return strings.HasPrefix(r, "POST") }) {
		t.Errorf("a flavor that does not exist: sent %q, want no create", sent)
	}
}

func TestResizeToAFlavorIsCompleteOnceItIsConfirmed(t *testing.T) {
	s := newStub(t)
	s.on("GET compute/servers/"+someID, oneServer(`"status": "SHUTOFF"`))
	s.on("POST compute/servers/"+someID+"/metadata", `{}`)
	s.on("POST compute/servers/"+someID+"/action", ``, 202)
	c := s.client()
	result, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetFlavor("large")})
	if err != nil || result.Operation == "" {
		t.Fatalf("UpdateServer = %+v, %v; want an operation", result, err)
	}
	want := []string{
		"GET compute/servers/" + someID, "GET compute/flavors/detail",
		"POST compute/servers/" + someID + `/metadata {"metadata":{"privatecloud:resize":"1x1024@large","privatecloud:size":"4x8192@large"}}`,
		"POST compute/servers/" + someID + `/action {"resize":{"flavorRef":"f2"}}`,
	}
	if diff := cmp.Diff(want, s.taken()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	resized := `"flavor": {"original_name": "large", "vcpus": 4, "ram": 8192}, "metadata": {"privatecloud:resize": "1x1024@large", "privatecloud:size": "4x8192@large"}`
	for status, complete := range map[string]bool{"VERIFY_RESIZE": false, "SHUTOFF": true} {
		s.on("GET compute/servers/"+someID, oneServer(`"status": "`+status+`"`, resized))
		got, err := c.GetServer(t.Context(), someID)
		if err != nil || (got.Flavor == "large") != complete || !complete && got.Flavor != cloud.FlavorPending {
			t.Errorf("%s: flavor %q, %v; want it to be large: %t", status, got.Flavor, err, complete)
		}
	}
}
