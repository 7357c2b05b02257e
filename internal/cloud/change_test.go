package cloud

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// before is a server before each of the changes.
var before = Server{
	CPU: 1, MemoryMiB: 512, Flavor: "medium", Disks: "a=512 b=512=fast", RootDisk: RootDisk{SizeMiB: 512, Type: "fast"}, State: StateUnknown, PublicAddress: "203.0.113.9", Labels: map[string]string{"a": "0", "b": "0"},
}

// with returns that server with a change.
func with(change func(*Server)) Server {
	s := before.Clone()
	change(&s)
	return s
}

// changes has two changes of each type, of different values.
var changes = []struct {
	change ServerChange
	part   Part
	needs  []Capability
	after  Server
}{
	{SetCPU(2), SizePart, []Capability{Resize}, with(func(s *Server) { s.CPU = 2 })},
	{SetCPU(4), SizePart, []Capability{Resize}, with(func(s *Server) { s.CPU = 4 })},
	{SetMemory(2), SizePart, []Capability{Resize}, with(func(s *Server) { s.MemoryMiB = 2 })},
	{SetMemory(1024), SizePart, []Capability{Resize}, with(func(s *Server) { s.MemoryMiB = 1024 })},
	{SetFlavor("small"), SizePart, []Capability{Flavors, Resize}, with(func(s *Server) { s.Flavor = "small" })},
	{SetFlavor("large"), SizePart, []Capability{Flavors, Resize}, with(func(s *Server) { s.Flavor = "large" })},
	{SetDisk{Name: "a", SizeMiB: 1024}, DiskPart, []Capability{WithDisks}, with(func(s *Server) { s.Disks = "a=1024 b=512=fast" })},
	{SetDisk{Name: "b", SizeMiB: 1024, Type: "slow"}, DiskPart, []Capability{WithDisks, DiskTypes}, with(func(s *Server) { s.Disks = "a=512 b=1024=fast" })},
	{SetDisk{Name: "c", SizeMiB: 2048, Type: "a type"}, DiskPart, []Capability{WithDisks, DiskTypes}, with(func(s *Server) { s.Disks = "a=512 b=512=fast c=2048=a+type" })},
	{SetRootDisk(1024), DiskPart, []Capability{WithRootDisk}, with(func(s *Server) { s.RootDisk.SizeMiB = 1024 })},
	{SetRootDisk(2048), DiskPart, []Capability{WithRootDisk}, with(func(s *Server) { s.RootDisk.SizeMiB = 2048 })},
	{SetDisk{Name: "c", SizeMiB: 2048}, DiskPart, []Capability{WithDisks}, with(func(s *Server) { s.Disks = "a=512 b=512=fast c=2048" })},
	{SetDisk{Name: "c", SizeMiB: 2048, Keep: true}, DiskPart, []Capability{WithDisks, KeepDisks}, with(func(s *Server) { s.Disks = "a=512 b=512=fast c=2048==keep" })},
	{SetDiskKeep{Name: "b", Keep: true}, KeepPart, []Capability{WithDisks, KeepDisks}, with(func(s *Server) { s.Disks = "a=512 b=512=fast=keep" })},
	{SetDiskKeep{Name: "b"}, KeepPart, []Capability{WithDisks, KeepDisks}, before},
	{SetLabel{Key: "a", Value: "1"}, LabelPart, []Capability{Labels}, with(func(s *Server) { s.Labels["a"] = "1" })},
	{SetLabel{Key: "c", Value: "2"}, LabelPart, []Capability{Labels}, with(func(s *Server) { s.Labels["c"] = "2" })},
	{RemoveLabel("a"), LabelPart, []Capability{Labels}, with(func(s *Server) { delete(s.Labels, "a") })},
	{RemoveLabel("c"), LabelPart, []Capability{Labels}, before},
	{SetSecurityGroups("ssh"), GroupPart, []Capability{WithSecurityGroups}, with(func(s *Server) { s.SecurityGroups = "ssh" })},
	{SetAllowedAddresses("10.0.0.9"), AllowedPart, []Capability{WithAllowedAddresses}, with(func(s *Server) { s.AllowedAddresses = "10.0.0.9" })},
	{SetAllowedAddresses(""), AllowedPart, []Capability{WithAllowedAddresses}, with(func(s *Server) { s.AllowedAddresses = "" })},
	{SetSecurityGroups("ssh\nweb"), GroupPart, []Capability{WithSecurityGroups}, with(func(s *Server) { s.SecurityGroups = "ssh\nweb" })},
	{SetPublicAddress("ext"), AddressPart, []Capability{PublicAddresses}, with(func(s *Server) { s.PublicAddress = "address of ext" })},
	{SetPublicAddress("other"), AddressPart, []Capability{PublicAddresses}, with(func(s *Server) { s.PublicAddress = "address of other" })},
	{RemovePublicAddress{}, AddressPart, []Capability{PublicAddresses}, with(func(s *Server) { s.PublicAddress = "" })},
	{SetPower{State: PowerOn}, PowerPart, []Capability{Power}, with(func(s *Server) { s.State = StateActive })},
	{SetPower{State: PowerOff}, PowerPart, []Capability{Power}, with(func(s *Server) { s.State = StateStopped })},
	{SetPower{State: PowerOff, Soft: true}, PowerPart, []Capability{Power, SoftPowerOff}, with(func(s *Server) { s.State = StateStopped })},
	{SetPower{State: PowerSuspended}, PowerPart, []Capability{Power, Suspend}, with(func(s *Server) { s.State = StateSuspended })},
}

func TestEachChange(t *testing.T) {
	texts := map[string]bool{}
	for _, tc := range changes {
		text := tc.change.String()
		t.Run(text, func(t *testing.T) {
			if texts[text] {
				t.Error("another change has the same text")
			}
			texts[text] = true
			if part := tc.change.Part(); part != tc.part {
				t.Errorf("part %d, want %d", part, tc.part)
			}
			if diff := cmp.Diff(tc.needs, tc.change.Needs()); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
			server := before.Clone()
			tc.change.Apply(&server)
			if diff := cmp.Diff(tc.after, server); diff != "" {
				t.Errorf("the server after it (-want +got):\n%s", diff)
			}
			if !slices.Contains(Update{SetCPU(1), tc.change}, tc.change) { // compares, and panics if that is not possible
				t.Error("the change is not equal to itself")
			}
		})
	}
}

func TestAllTypesOfChangesAreTested(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "change.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, tc := range changes {
		tested[reflect.TypeOf(tc.change).Name()] = true
	}
	found := 0
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != "Part" {
			continue
		}
		found++
		if name := fn.Recv.List[0].Type.(*ast.Ident).Name; !tested[name] {
			t.Errorf("no test has a change of the type %s", name)
		}
	}
	if found != len(tested) {
		t.Errorf("%d types of changes in change.go, %d in the test", found, len(tested))
	}
}

func TestPartsOfAnUpdate(t *testing.T) {
	update := Update{SetCPU(2), SetLabel{Key: "a", Value: "1"}, SetDisk{Name: "d", SizeMiB: 1}, SetPower{State: PowerOff}}
	for name, tc := range map[string]struct{ want, got any }{
		"Of":                   {Update{SetCPU(2), SetDisk{Name: "d", SizeMiB: 1}}, update.Of(DiskPart, SizePart)},
		"Without":              {Update{SetCPU(2), SetLabel{Key: "a", Value: "1"}}, update.Without(DiskPart, PowerPart)},
		"Has":                  {true, update.Has(DiskPart)},
		"Has, without it":      {false, update.Of(SizePart).Has(DiskPart, PowerPart)},
		"Needs":                {[]Capability{Resize, Labels, WithDisks, Power}, update.Needs()},
		"Changes":              {[]SetCPU{2}, Changes[SetCPU](update)},
		"Resizes":              {true, update.Of(DiskPart).Resizes()},
		"Resizes, without it":  {false, update.Of(PowerPart, LabelPart).Resizes()},
		"PowersOff":            {true, update.PowersOff()},
		"PowersOff, starts it": {false, Update{SetPower{State: PowerOn}}.PowersOff()},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(update) != 4 {
		t.Errorf("the update was changed: %v", update)
	}
}
