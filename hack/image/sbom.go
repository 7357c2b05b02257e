package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

const sbomUsage = `usage: image sbom --name NAME --version VERSION --created TIME BINARY

Prints the SBOM of the Go program BINARY: an SPDX 2.3 document in JSON with each module that is linked into it, and the
Go version. The same inputs give the same bytes.

`

const unknown = "NOASSERTION"

// subject is the program that an SBOM describes.
type subject struct {
	name, version string
	created       time.Time
}

func sbomCommand(args []string) error {
	var s subject
	flags := flag.NewFlagSet("sbom", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), sbomUsage); flags.PrintDefaults() }
	flags.StringVar(&s.name, "name", "", "`NAME` of the program")
	flags.StringVar(&s.version, "version", "", "`VERSION` of the program")
	flags.Func("created", "`TIME` of the document, in RFC 3339", func(value string) (err error) {
		s.created, err = time.Parse(time.RFC3339, value)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if s.name == "" || s.version == "" || s.created.IsZero() || flags.NArg() != 1 {
		return errors.New("want --name, --version, --created and one BINARY: see image sbom --help")
	}
	document, err := s.document(flags.Arg(0))
	if err != nil {
		return err
	}
	return json.Write(document, os.Stdout, json.Indent(" "))
}

// document returns the SBOM of a binary. It is an error if the binary was not built by Go with modules.
func (s subject) document(binary string) (*spdx.Document, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("read the build information: %w", err)
	}
	sum, err := sha256Of(binary)
	if err != nil {
		return nil, err
	}
	program := &spdx.Package{
		PackageName: s.name, PackageSPDXIdentifier: "Package-program", PackageVersion: s.version,
		PackageFileName: filepath.Base(binary), PackageDownloadLocation: unknown,
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: sum}},
		PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: unknown,
		PrimaryPackagePurpose: "APPLICATION",
	}
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      s.name + "-" + s.version,
		DocumentNamespace: fmt.Sprintf("https://github.com/privatecloud/operator/spdx/%s-%s-%s", s.name, s.version, sum),
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "privatecloud-operator-image-sbom"}},
			Created:  s.created.UTC().Format(time.RFC3339),
		},
		Packages:      []*spdx.Package{program},
		Relationships: []*spdx.Relationship{relationship("DOCUMENT", common.TypeRelationshipDescribe, program.PackageSPDXIdentifier)},
	}
	modules := append([]*debug.Module{{Path: "stdlib", Version: info.GoVersion[len("go"):]}}, info.Deps...)
	for i, module := range modules {
		pkg := packageOf(i, module)
		doc.Packages = append(doc.Packages, pkg)
		doc.Relationships = append(doc.Relationships,
			relationship(program.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, pkg.PackageSPDXIdentifier))
	}
	return doc, nil
}

// packageOf returns the package of a module, or of what replaces it.
func packageOf(i int, module *debug.Module) *spdx.Package {
	if module.Replace != nil {
		module = module.Replace
	}
	return &spdx.Package{
		PackageName: module.Path, PackageVersion: module.Version,
		PackageSPDXIdentifier:   common.ElementID(fmt.Sprintf("Package-module-%d", i)),
		PackageDownloadLocation: unknown, PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + module.Path + "@" + module.Version,
		}},
	}
}

func relationship(from common.ElementID, kind string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: common.DocElementID{ElementRefID: from}, Relationship: kind, RefB: common.DocElementID{ElementRefID: to},
	}
}

// sha256Of returns the SHA-256 sum of a file, in hexadecimal.
func sha256Of(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
