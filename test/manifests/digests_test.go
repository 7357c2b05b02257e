package manifests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recordedDigests returns REFERENCE@DIGEST of each image in config/manifests/image-digests.txt by its reference.
func recordedDigests(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "manifests", "image-digests.txt"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		match := regexp.MustCompile(`^(\S+:v\S+)@sha256:[0-9a-f]{64}\n$`).FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("%q is not REFERENCE@DIGEST", line)
		}
		found[match[1]] = strings.TrimSpace(line)
	}
	return found
}

func TestBundleRefersToImagesByTheirRecordedDigests(t *testing.T) {
	recorded := recordedDigests(t)
	for _, image := range readBundle(t).CSV.Spec.RelatedImages {
		t.Run(image.Name, func(t *testing.T) {
			tag, _, _ := strings.Cut(image.Image, "@")
			want, ok := recorded[tag]
			if !ok {
				want = tag
			}
			if image.Image != want {
				t.Errorf("the image is %s, want %s: run make bundle", image.Image, want)
			}
		})
	}
}

func TestByDigest(t *testing.T) {
	const (
		image  = "registry.example.com/operator:v1.2.3"
		digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	file := filepath.Join(t.TempDir(), "digests")
	if err := os.WriteFile(file, []byte("# comment\n"+image+"-rc1"+digest+"\n"+image+digest+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		image, file, digests, want string
	}{
		"digest is recorded: tag and digest":               {image: image, file: file, want: image + digest},
		"digests are required and recorded: likewise":      {image: image, file: file, digests: "true", want: image + digest},
		"digest of another tag is recorded: the tag alone": {image: "registry.example.com/operator:v1.2", file: file, want: "registry.example.com/operator:v1.2"},
		"no file: the tag alone":                           {image: image, file: file + ".none", want: image},
		"digests are required and not recorded: an error":  {image: image, file: file + ".none", digests: "true"},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", `. "$1/hack/lib.sh"; by_digest "$2"`, "test", root, tc.image)
			command.Env = append(os.Environ(), "IMAGE_DIGESTS="+tc.file, "USE_IMAGE_DIGESTS="+tc.digests)
			output, err := command.Output()
			if got := strings.TrimSpace(string(output)); got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
