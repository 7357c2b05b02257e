package main

import (
	"debug/buildinfo"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
)

var released = subject{name: "program", version: "1.2.3", created: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}

func TestSBOMNamesEachModuleOfTheBinaryWithItsVersion(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := released.document(self)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"program@1.2.3", "stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, module := range info.Deps {
		want = append(want, module.Path+"@"+module.Version)
	}
	var got []string
	dependencies := 0
	for _, pkg := range doc.Packages {
		got = append(got, pkg.PackageName+"@"+pkg.PackageVersion)
	}
	for _, related := range doc.Relationships {
		if related.Relationship == common.TypeRelationshipDependsOn {
			dependencies++
		}
	}
	if len(info.Deps) == 0 || !slices.Equal(got, want) || dependencies != len(want)-1 {
		t.Errorf("the SBOM has %d dependencies and the packages %q, want %q", dependencies, got, want)
	}
	if created := doc.CreationInfo.Created; created != "2026-11-21T00:00:00Z" {
		t.Errorf("created %s", created)
	}
}

func TestSBOMOfAFileThatIsNoGoProgramIsAnError(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "text"), "text", 0o644)
	if _, err := released.document(file); err == nil || !strings.Contains(err.Error(), "build information") {
		t.Errorf("got %v, want an error about the build information", err)
	}
}
