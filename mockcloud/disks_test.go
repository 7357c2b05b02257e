package mockcloud

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRootDiskAndTypesOfDisks(t *testing.T) {
	h := start(t, Options{})
	s := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"a","disks":[{"name":"data","size":1,"type":"fast"},{"name":"logs","size":1}]}`).body)
	type disks struct {
		Disks []Disk
		Root  *RootDisk
	}
	has := disks{[]Disk{{Name: "data", Size: 1, Type: "fast"}, {Name: "logs", Size: 1, Type: "standard"}}, &RootDisk{TemplateDiskSize, "standard"}}
	if diff := cmp.Diff(has, disks{s.Disks, s.RootDisk}); diff != "" {
		t.Errorf("new server (-want +got):\n%s", diff)
	}
	for _, tc := range []struct{ body, code string }{
		{`{"rootDisk":{"size":9}}`, CodeInvalid},
		{`{"rootDisk":{"size":16385}}`, CodeInvalid},
		{`{"rootDisk":{"size":20,"type":"fast"}}`, CodeInvalid},
		{`{"rootDisk":{"type":"fast"}}`, CodeInvalid},
		{`{"rootDisk":{}}`, CodeInvalid},
		{`{"rootDisk":{"size":20},"disks":[{"name":"more","size":1,"type":"nowhere"}]}`, CodeDiskTypeUnknown},
	} {
		if got := codeIn(t, h.send("PATCH", "/servers/"+s.ID, tc.body)); got != tc.code {
			t.Errorf("%s: got %q, want %s", tc.body, got, tc.code)
		}
	}
	h.call(200, "PATCH", "/servers/"+s.ID, `{"rootDisk":{"size":20},"disks":[{"name":"data","size":2,"type":"nowhere"},{"name":"more","size":1,"type":"fast"}]}`)
	s, _ = h.cloud.Server(s.ID)
	has = disks{[]Disk{{Name: "data", Size: 2, Type: "fast"}, {Name: "logs", Size: 1, Type: "standard"}, {Name: "more", Size: 1, Type: "fast"}}, &RootDisk{20, "standard"}}
	if diff := cmp.Diff(has, disks{s.Disks, s.RootDisk}); diff != "" {
		t.Errorf("changed server (-want +got):\n%s", diff)
	}
	for body, code := range map[string]string{
		`{"name":"b","rootDisk":{"size":9}}`:                               CodeInvalid,
		`{"name":"b","rootDisk":{}}`:                                       CodeInvalid,
		`{"name":"b","rootDisk":{"type":"nowhere"}}`:                       CodeDiskTypeUnknown,
		`{"name":"b","disks":[{"name":"data","size":1,"type":"nowhere"}]}`: CodeDiskTypeUnknown,
	} {
		if got := codeIn(t, h.send("POST", "/servers", body)); got != code {
			t.Errorf("%s: got %q, want %s", body, got, code)
		}
	}
}

func TestDisksThatAreKept(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{ResizeStopped: true}})
	s := decodeInto[Server](t, h.call(201, "POST", "/servers", `{"name":"a","disks":[{"name":"data","size":1,"keep":true},{"name":"logs","size":1}]}`).body)
	for body, code := range map[string]string{
		`{"disks":[{"name":"data"}]}`:              CodeInvalid,
		`{"disks":[{"name":"more","keep":true}]}`:  CodeInvalid,
		`{"disks":[{"name":"data","size":-1}]}`:    CodeInvalid,
		`{"disks":[{"name":"logs","size":2}]}`:     CodeNeedsStop,
		`{"disks":[{"name":"more","size":1}]}`:     CodeNeedsStop,
		`{"disks":[{"name":"data","keep":"yes"}]}`: CodeInvalid,
	} {
		if got := codeIn(t, h.send("PATCH", "/servers/"+s.ID, body)); got != code {
			t.Errorf("%s: got %q, want %s", body, got, code)
		}
	}
	h.call(200, "PATCH", "/servers/"+s.ID, `{"disks":[{"name":"logs","keep":true},{"name":"data","keep":false}]}`)
	s, _ = h.cloud.Server(s.ID)
	want := []Disk{{Name: "data", Size: 1, Type: "standard"}, {Name: "logs", Size: 1, Type: "standard", Keep: true}}
	if diff := cmp.Diff(want, s.Disks); diff != "" {
		t.Errorf("changed server (-want +got):\n%s", diff)
	}
	h.call(204, "DELETE", "/servers/"+s.ID, "")
	entries := h.cloud.Ledger()
	if diff := cmp.Diff([]string{"logs"}, entries[len(entries)-1].KeptDisks); diff != "" {
		t.Errorf("disks that the deletion kept (-want +got):\n%s", diff)
	}
}

func TestRootDiskOfARunningServerNeedsAStopWhereSizesDo(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{ResizeStopped: true}})
	s := h.create("a")
	if got := codeIn(t, h.send("PATCH", "/servers/"+s.ID, `{"rootDisk":{"size":20}}`)); got != CodeNeedsStop {
		t.Errorf("got %q, want %s", got, CodeNeedsStop)
	}
	h.call(200, "PATCH", "/servers/"+s.ID, `{"rootDisk":{"size":10}}`)
}
