package vcsim

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
)

func TestFindChildOmitsAVMThatHasNoNameYet(t *testing.T) {
	s, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	folder, err := s.MakeFolder(t.Context(), "busy")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := folder.CreateFolder(t.Context(), "inner")
	if err != nil {
		t.Fatal(err)
	}
	registered := s.Model.Map()
	nameless, ok := registered.Get(inner.Reference()).(*simulator.Folder)
	if !ok {
		t.Fatal("the folder is not registered")
	}
	nameless.Name = "" // as a VM while it is created
	endpoint, err := soap.ParseURL(strings.Replace(s.URL, "://", "://somebody:secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	user, err := govmomi.NewClient(t.Context(), endpoint, true)
	if err != nil {
		t.Fatal(err)
	}
	search := object.NewSearchIndex(user.Client)
	for range 2 {
		found, err := search.FindChild(t.Context(), folder, "other")
		if err != nil || found != nil {
			t.Fatalf("got %v, %v, want nothing", found, err)
		}
	}
	nameless.Name = "inner"
	if found, err := search.FindChild(t.Context(), folder, "inner"); err != nil || found == nil || found.Reference() != inner.Reference() {
		t.Errorf("got %v, %v, want %v", found, err, inner.Reference())
	}
}
