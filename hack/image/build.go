package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const buildUsage = `usage: image build --output DIR [FLAGS]

Builds an image from files, writes it as an OCI layout to DIR, which it replaces, and prints its digest.
Files belong to root and have mode 755 if they are executable, 644 otherwise. Later files replace earlier ones.

  image build --output out/manager --file bin/manager=/manager --user 65532:65532 --entrypoint '["/manager"]'

`

// recipe has the flags of image build.
type recipe struct {
	output, base string
	platform     v1.Platform
	files        tree
	// change has the changes of the flags to the configuration of the base, in their order.
	change []func(*v1.Config)
}

func buildCommand(args []string) error {
	r, err := parseRecipe(args)
	if err != nil {
		return err
	}
	img, err := r.image()
	if err != nil {
		return err
	}
	if err := writeLayout(img, r.platform, r.output); err != nil {
		return fmt.Errorf("write %s: %w", r.output, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	fmt.Println(digest)
	return nil
}

func parseRecipe(args []string) (recipe, error) {
	r := recipe{files: tree{}}
	flags := flag.NewFlagSet("build", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), buildUsage); flags.PrintDefaults() }
	flags.StringVar(&r.output, "output", "", "`DIR` to write the OCI layout to")
	flags.StringVar(&r.base, "base", "", "base `IMAGE`: the DIR of an OCI layout, or a reference to pull (default none)")
	platform := flags.String("platform", "linux/amd64", "`OS/ARCH` of the image")
	r.fileFlags(flags)
	r.configFlags(flags)
	if err := flags.Parse(args); err != nil {
		return r, err
	}
	if r.output == "" || flags.NArg() > 0 {
		return r, fmt.Errorf("want --output DIR and no arguments, got %q: see image build --help", flags.Args())
	}
	parsed, err := v1.ParsePlatform(*platform)
	if err != nil || parsed.Architecture == "" {
		return r, fmt.Errorf("--platform %q is not OS/ARCH", *platform)
	}
	r.platform = *parsed
	return r, nil
}

func (r *recipe) fileFlags(flags *flag.FlagSet) {
	pair := func(name, usage string, do func(what, where string) error) {
		flags.Func(name, usage, func(value string) error {
			cut := strings.LastIndex(value, "=")
			if cut < 0 || !strings.HasPrefix(value[cut+1:], "/") {
				return errors.New("want WHAT=/PATH")
			}
			return do(value[:cut], value[cut+1:])
		})
	}
	pair("file", "`SOURCE=PATH`: a file, or the contents of a folder; may be repeated", r.files.addPath)
	pair("text", "`CONTENT=PATH`: a file with this content; may be repeated", func(what, where string) error {
		r.files.addText(what, where)
		return nil
	})
	pair("link", "`TARGET=PATH`: a symbolic link; may be repeated", func(what, where string) error {
		r.files.addLink(what, where)
		return nil
	})
	pair("dir", "`MODE=PATH`: an empty folder, 1777=/tmp; may be repeated", func(what, where string) error {
		mode, err := strconv.ParseInt(what, 8, 16)
		r.files.addDir(where, mode)
		return err
	})
}

func (r *recipe) configFlags(flags *flag.FlagSet) {
	set := func(name, usage string, parse func(value string) (func(*v1.Config), error)) {
		flags.Func(name, usage, func(value string) error {
			change, err := parse(value)
			r.change = append(r.change, change)
			return err
		})
	}
	set("entrypoint", "a JSON `LIST`; clears the cmd of the base", func(value string) (func(*v1.Config), error) {
		list, err := parseList(value)
		return func(c *v1.Config) { c.Entrypoint, c.Cmd = list, nil }, err
	})
	set("cmd", "a JSON `LIST`", func(value string) (func(*v1.Config), error) {
		list, err := parseList(value)
		return func(c *v1.Config) { c.Cmd = list }, err
	})
	set("user", "`USER[:GROUP]`, as numbers if runAsNonRoot must be verifiable", func(value string) (func(*v1.Config), error) {
		return func(c *v1.Config) { c.User = value }, nil
	})
	set("workdir", "working folder `PATH` of the process", func(value string) (func(*v1.Config), error) {
		return func(c *v1.Config) { c.WorkingDir = value }, nil
	})
	set("env", "`NAME=VALUE`; may be repeated", func(value string) (func(*v1.Config), error) {
		key, _, err := parsePair(value)
		return func(c *v1.Config) { c.Env = append(without(c.Env, key+"="), value) }, err
	})
	set("label", "`NAME=VALUE`; may be repeated", func(value string) (func(*v1.Config), error) {
		key, text, err := parsePair(value)
		return func(c *v1.Config) { c.Labels[key] = text }, err
	})
}

func parseList(value string) (list []string, err error) {
	if err = json.Unmarshal([]byte(value), &list); err != nil {
		return nil, errors.New(`want a JSON list of strings, like ["/manager","--debug"]`)
	}
	return list, nil
}

func parsePair(value string) (key, text string, err error) {
	key, text, ok := strings.Cut(value, "=")
	if !ok || key == "" {
		return "", "", errors.New("want NAME=VALUE")
	}
	return key, text, nil
}

// without returns a copy of list without the values that have the prefix.
func without(list []string, prefix string) []string {
	kept := make([]string, 0, len(list)+1)
	for _, value := range list {
		if !strings.HasPrefix(value, prefix) {
			kept = append(kept, value)
		}
	}
	return kept
}

func (r *recipe) image() (v1.Image, error) {
	img, err := r.baseImage()
	if err != nil {
		return nil, fmt.Errorf("base %s: %w", cmp.Or(r.base, "scratch"), err)
	}
	if img, err = r.withFiles(img); err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	if file.Config.Labels == nil {
		file.Config.Labels = map[string]string{}
	}
	for _, change := range r.change {
		change(&file.Config)
	}
	return mutate.ConfigFile(img, file)
}

func (r *recipe) baseImage() (v1.Image, error) {
	if r.base == "" {
		img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
		img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
		return mutate.ConfigFile(img, &v1.ConfigFile{
			OS: r.platform.OS, Architecture: r.platform.Architecture, Variant: r.platform.Variant,
			RootFS: v1.RootFS{Type: "layers"},
		})
	}
	if _, err := os.Stat(filepath.Join(r.base, "index.json")); err == nil {
		images, err := readLayout(r.base)
		if err != nil {
			return nil, err
		}
		return pick(images, r.platform)
	}
	ref, err := name.ParseReference(r.base)
	if err != nil {
		return nil, err
	}
	return remote.Image(ref, remote.WithPlatform(r.platform), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// pick returns the image for the platform.
func pick(images []v1.Image, platform v1.Platform) (v1.Image, error) {
	for _, img := range images {
		file, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		if file.Platform().Satisfies(platform) {
			return img, nil
		}
	}
	return nil, fmt.Errorf("no image for %s", platform)
}

func (r *recipe) withFiles(img v1.Image) (v1.Image, error) {
	if len(r.files) == 0 {
		return img, nil
	}
	kind, err := img.MediaType()
	if err != nil {
		return nil, err
	}
	mediaType := types.OCILayer
	if kind == types.DockerManifestSchema2 {
		mediaType = types.DockerLayer
	}
	layer, err := r.files.layer(mediaType)
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "image build"}})
}

// writeLayout replaces dir with an OCI layout of img atomically.
func writeLayout(img v1.Image, platform v1.Platform, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(dir), ".image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	fresh := filepath.Join(scratch, "new")
	written, err := layout.Write(fresh, empty.Index)
	if err != nil {
		return err
	}
	if err := written.AppendImage(img, layout.WithPlatform(platform)); err != nil {
		return err
	}
	if err := os.Rename(dir, filepath.Join(scratch, "old")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, dir)
}
