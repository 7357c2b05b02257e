package manifests_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// krewPlugin has the fields of a plugin manifest that krew documents.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string         `json:"version"`
		Homepage         string         `json:"homepage"`
		ShortDescription string         `json:"shortDescription"`
		Description      string         `json:"description"`
		Caveats          string         `json:"caveats"`
		Platforms        []krewPlatform `json:"platforms"`
	} `json:"spec"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

func TestKrewManifestNamesTheArchivesOfThePlugin(t *testing.T) {
	folder := t.TempDir()
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "plugin.sh"), folder)
	// The other platforms are built for a release only: each takes a minute.
	command.Env = append(os.Environ(), "VERSION=1.2.3", "PLUGIN_PLATFORMS=linux/amd64")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	text, err := os.ReadFile(filepath.Join(folder, "kubectl-privatecloud-krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict(text, &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != "privatecloud" || plugin.Spec.Version != "v1.2.3" {
		t.Errorf("not the plugin of version 1.2.3:\n%s", text)
	}
	if n := len(plugin.Spec.ShortDescription); n == 0 || n > 50 || strings.HasSuffix(plugin.Spec.ShortDescription, ".") {
		t.Errorf("the short description has %d characters, krew wants at most 50 and no full stop", n)
	}
	if len(plugin.Spec.Platforms) != 1 {
		t.Fatalf("%d platforms, want 1", len(plugin.Spec.Platforms))
	}
	checkPlatform(t, folder, plugin.Spec.Platforms[0])
}

func checkPlatform(t *testing.T, folder string, p krewPlatform) {
	t.Helper()
	archive, found := strings.CutPrefix(p.URI, "https://github.com/privatecloud/operator/releases/download/v1.2.3/")
	if !found || p.Selector.MatchLabels["os"] != "linux" || p.Selector.MatchLabels["arch"] != "amd64" {
		t.Fatalf("platform %+v", p)
	}
	content, err := os.ReadFile(filepath.Join(folder, archive))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	if p.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("sha256 %s, want %x", p.SHA256, sum)
	}
	names, binary := unpacked(t, filepath.Join(folder, archive), p.Bin)
	if want := []string{"LICENSE", "kubectl-privatecloud", "kubectl_complete-privatecloud"}; !slices.Equal(names, want) {
		t.Errorf("the archive has %v, want %v", names, want)
	}
	output, err := exec.CommandContext(t.Context(), binary, "--version").CombinedOutput()
	if err != nil || !regexp.MustCompile(`version v1\.2\.3\n$`).Match(output) {
		t.Errorf("--version: %q, %v", output, err)
	}
}

// unpacked returns the names of the files in an archive, sorted, and the path of one that is
// unpacked.
func unpacked(t *testing.T, archive, name string) (names []string, file string) {
	t.Helper()
	opened, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	plain, err := gzip.NewReader(opened)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), name)
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, file
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.Name != name {
			continue
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
