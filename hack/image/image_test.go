package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// built runs image build with the flags and returns the image that it wrote.
func built(t *testing.T, flags ...string) v1.Image {
	t.Helper()
	images, err := readLayout(builtInto(t, flags...))
	if err != nil {
		t.Fatal(err)
	}
	return images[0]
}

func builtInto(t *testing.T, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := buildCommand(append([]string{"--output", dir}, flags...)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func digest(t *testing.T, img interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}

func write(t *testing.T, file, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	// The umask may have changed the mode.
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
	return file
}

// contents returns the files of a container: mode, path, and content or target.
func contents(t *testing.T, img v1.Image) []string {
	t.Helper()
	flat := mutate.Extract(img)
	defer flat.Close()
	var list []string
	for archive := tar.NewReader(flat); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%o %s %s%s", header.Mode, header.Name, data, header.Linkname)))
	}
}

func TestSameInputsGiveTheSameDigest(t *testing.T) {
	flagsIn := func(mode os.FileMode) []string {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "conf", "b"), "b", 0o600&mode)
		write(t, filepath.Join(dir, "conf", "a"), "a", 0o666&mode)
		return []string{
			"--file", write(t, filepath.Join(dir, "manager"), "code", 0o777&mode) + "=/manager",
			"--file", filepath.Join(dir, "conf") + "=/etc/conf", "--label", "one=1", "--label", "two=2",
		}
	}
	one, two := built(t, flagsIn(0o777)...), built(t, flagsIn(0o700)...)
	if digest(t, one) != digest(t, two) {
		t.Errorf("digests differ: %s and %s", digest(t, one), digest(t, two))
	}
}

func TestDifferentInputsGiveDifferentDigests(t *testing.T) {
	digests := map[string][]string{}
	for _, flags := range [][]string{
		{},
		{"--text", "a=/a"},
		{"--text", "b=/a"},
		{"--text", "a=/b"},
		{"--dir", "755=/a"},
		{"--dir", "1777=/a"},
		{"--link", "a=/b"},
		{"--user", "1"},
		{"--env", "A=1"},
		{"--label", "a=1"},
		{"--cmd", `["a"]`},
		{"--entrypoint", `["a"]`},
		{"--platform", "linux/arm64"},
	} {
		got := digest(t, built(t, flags...))
		if other, ok := digests[got]; ok {
			t.Errorf("%q gives the digest of %q", flags, other)
		}
		digests[got] = flags
	}
}

func TestFilesHaveNormalizedModesAndLaterOnesReplaceEarlierOnes(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tree", "bin", "tool"), "code", 0o700)
	write(t, filepath.Join(dir, "tree", "data"), "early", 0o600)
	if err := os.Symlink("data", filepath.Join(dir, "tree", "again")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "tree", "bin", "tool"), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	got := contents(t, built(t, "--file", filepath.Join(dir, "tree")+"=/opt", "--text", "late=x=/opt/data",
		"--file", filepath.Join(dir, "linked")+"=/tool", "--dir", "1777=/tmp", "--link", "/tool=/bin/sh"))
	want := []string{
		"755 bin", "777 bin/sh /tool", "755 opt", "777 opt/again data", "755 opt/bin", "755 opt/bin/tool code",
		"644 opt/data late=x", "1777 tmp", "755 tool code",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestFlagsOverrideTheConfigurationOfTheBase(t *testing.T) {
	base := builtInto(t, "--text", "base=/base", "--user", "1", "--env", "A=1", "--env", "B=1", "--label", "kept=yes",
		"--entrypoint", `["/old"]`, "--cmd", `["gone"]`)
	img := built(t, "--base", base, "--text", "top=/top", "--user", "65532:65532", "--env", "A=2", "--label", "new=a=b",
		"--workdir", "/work", "--entrypoint", `["/new","--flag"]`)
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", Env: []string{"B=1", "A=2"}, Labels: map[string]string{"kept": "yes", "new": "a=b"},
		WorkingDir: "/work", Entrypoint: []string{"/new", "--flag"},
	}
	if !reflect.DeepEqual(file.Config, want) {
		t.Errorf("got %+v, want %+v", file.Config, want)
	}
	if got, want := contents(t, img), []string{"644 top top", "644 base base"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := file.Created.Unix(); got != 0 {
		t.Errorf("created at %d, want the epoch", got)
	}
}

func TestInvalidFlagsAreRejected(t *testing.T) {
	for name, args := range map[string][]string{
		"no output":                      {},
		"an argument that is no flag":    {"--output", "x", "surplus"},
		"a platform without its machine": {"--output", "x", "--platform", "linux"},
		"a base that does not exist":     {"--output", t.TempDir(), "--base", t.TempDir() + "/none"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := buildCommand(args); err == nil {
				t.Errorf("%q is accepted", args)
			}
		})
	}
}

func TestRegistryHasPushedImagesAfterRestart(t *testing.T) {
	dir := t.TempDir()
	serve := func() (*httptest.Server, string) {
		handler, err := newStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return server, strings.TrimPrefix(server.URL, "http://")
	}
	amd, arm := builtInto(t, "--text", "amd=/a"), builtInto(t, "--text", "arm=/a", "--platform", "linux/arm64")
	early := built(t, "--text", "early=/a")

	server, host := serve()
	if _, err := push(host+"/some/image:latest", []v1.Image{early}); err != nil {
		t.Fatal(err)
	}
	if err := pushCommand([]string{"--tag", host + "/some/image:latest", amd}); err != nil {
		t.Fatal(err)
	}
	if err := pushCommand([]string{"--tag", host + "/some/index:v1", "--tag", host + "/some/index:v2", amd, arm}); err != nil {
		t.Fatal(err)
	}
	server.Close()

	_, host = serve()
	if got, want := digest(t, pulled(t, host+"/some/image:latest", "")), digest(t, built(t, "--text", "amd=/a")); got != want {
		t.Errorf("the tag has %s, want %s", got, want)
	}
	pulled(t, host+"/some/image@"+digest(t, early), "")
	if got := contents(t, pulled(t, host+"/some/index:v2", "linux/arm64")); !reflect.DeepEqual(got, []string{"644 a arm"}) {
		t.Errorf("linux/arm64 has %q", got)
	}
	if got := contents(t, pulled(t, host+"/some/index:v1", "linux/amd64")); !reflect.DeepEqual(got, []string{"644 a amd"}) {
		t.Errorf("linux/amd64 has %q", got)
	}
}

func TestDigestIsKnownBeforeThePush(t *testing.T) {
	handler, err := newStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	tag := strings.TrimPrefix(server.URL, "http://") + "/some/image:v1"
	amd, arm := builtInto(t, "--text", "amd=/a"), builtInto(t, "--text", "arm=/a", "--platform", "linux/arm64")
	for name, dirs := range map[string][]string{"one platform: the image": {amd}, "two platforms: the index": {amd, arm}} {
		t.Run(name, func(t *testing.T) {
			want, err := digestOf("", dirs)
			if err != nil {
				t.Fatal(err)
			}
			if err := pushCommand(append([]string{"--tag", tag}, dirs...)); err != nil {
				t.Fatal(err)
			}
			if got, err := digestOf(tag, nil); err != nil || got != want {
				t.Errorf("the registry has %v (%v), want %v", got, err, want)
			}
		})
	}
}

func TestDigestNeedsLayoutsOrAReference(t *testing.T) {
	for name, args := range map[string][]string{
		"neither":                    {},
		"both":                       {"--registry", "localhost:1/a:b", t.TempDir()},
		"a layout that is not there": {t.TempDir() + "/none"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := digestCommand(args); err == nil {
				t.Errorf("%q is accepted", args)
			}
		})
	}
}

func TestDeletedImageIsDeletedAfterRestart(t *testing.T) {
	dir := t.TempDir()
	handler, err := newStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	tag := strings.TrimPrefix(server.URL, "http://") + "/some/image:gone"
	if _, err := push(tag, []v1.Image{built(t, "--text", "a=/a")}); err != nil {
		t.Fatal(err)
	}
	ref := reference(t, tag)
	if err := remote.Delete(ref); err != nil {
		t.Fatal(err)
	}
	if handler, err = newStore(dir); err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = handler
	if _, err := remote.Image(ref); err == nil {
		t.Error("the image can be pulled")
	}
}

func TestArchiveHasTheImageUnderItsName(t *testing.T) {
	dir := builtInto(t, "--file", write(t, filepath.Join(t.TempDir(), "tool"), "binary", 0o755)+"=/tool", "--entrypoint", `["/tool"]`)
	file := filepath.Join(t.TempDir(), "image.tar")
	const tag = "registry.example.com/tool:v1"
	if err := archiveCommand([]string{"--tag", tag, "--output", file, dir}); err != nil {
		t.Fatal(err)
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	got, err := tarball.ImageFromPath(file, &ref)
	if err != nil {
		t.Fatal(err)
	}
	want, err := readLayout(dir)
	if err != nil {
		t.Fatal(err)
	}
	gotName, gotErr := got.ConfigName()
	wantName, wantErr := want[0].ConfigName()
	if gotName != wantName || gotErr != nil || wantErr != nil {
		t.Errorf("the archive has the image %s (%v), want %s (%v)", gotName, gotErr, wantName, wantErr)
	}
}

func TestArchiveNeedsOneImageAndItsName(t *testing.T) {
	dir, file := builtInto(t), filepath.Join(t.TempDir(), "image.tar")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no name":        {[]string{"--output", file, dir}, "want --tag REFERENCE, --output FILE and DIR"},
		"two layouts":    {[]string{"--tag", "tool:v1", "--output", file, dir, dir}, "want --tag REFERENCE, --output FILE and DIR"},
		"a digest":       {[]string{"--tag", "tool@sha256:" + strings.Repeat("0", 64), "--output", file, dir}, "tool"},
		"no such layout": {[]string{"--tag", "tool:v1", "--output", file, dir + "-missing"}, dir + "-missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := archiveCommand(test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestIndexOfRejectsTwoImagesOfOnePlatform(t *testing.T) {
	img := built(t)
	if _, err := indexOf([]v1.Image{img, img}); err == nil {
		t.Error("got no error")
	}
}

func pulled(t *testing.T, tag, platform string) v1.Image {
	t.Helper()
	var options []remote.Option
	if platform != "" {
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, remote.WithPlatform(*parsed))
	}
	img, err := remote.Image(reference(t, tag), options...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func reference(t *testing.T, tag string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(tag)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
