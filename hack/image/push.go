package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const pushUsage = `usage: image push --tag REFERENCE [--tag REFERENCE]... DIR [DIR]...

Pushes the image of the OCI layout DIR to each REFERENCE; images of several platforms become one index.
Prints REFERENCE@DIGEST. Uses the credentials of docker login; SSL_CERT_FILE has the CAs to trust.

`

func pushCommand(args []string) error {
	var tags []string
	flags := flag.NewFlagSet("push", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), pushUsage); flags.PrintDefaults() }
	flags.Func("tag", "`REFERENCE` to push to; may be repeated", func(value string) error {
		tags = append(tags, value)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(tags) == 0 || flags.NArg() == 0 {
		return errors.New("want --tag REFERENCE and DIR: see image push --help")
	}
	images, err := readLayouts(flags.Args())
	if err != nil {
		return err
	}
	for _, tag := range tags {
		digest, err := push(tag, images)
		if err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
		fmt.Printf("%s@%s\n", tag, digest)
	}
	return nil
}

// push pushes an image, or an index of several images.
func push(tag string, images []v1.Image) (v1.Hash, error) {
	ref, err := name.ParseReference(tag)
	if err != nil {
		return v1.Hash{}, err
	}
	auth := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if len(images) == 1 {
		if err := remote.Write(ref, images[0], auth); err != nil {
			return v1.Hash{}, err
		}
		return images[0].Digest()
	}
	index, err := indexOf(images)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := remote.WriteIndex(ref, index, auth); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

func indexOf(images []v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	platforms := map[string]bool{}
	for _, img := range images {
		file, err := img.ConfigFile()
		if err != nil {
			return nil, err
		}
		platform := file.Platform()
		if platforms[platform.String()] {
			return nil, fmt.Errorf("more than one image for %s", platform)
		}
		platforms[platform.String()] = true
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

// readLayouts returns the images of several OCI layouts.
func readLayouts(dirs []string) ([]v1.Image, error) {
	var images []v1.Image
	for _, dir := range dirs {
		found, err := readLayout(dir)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		images = append(images, found...)
	}
	return images, nil
}

// readLayout returns the images of the OCI layout dir.
func readLayout(dir string) ([]v1.Image, error) {
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	images := make([]v1.Image, 0, len(manifest.Manifests))
	for i := range manifest.Manifests {
		img, err := index.Image(manifest.Manifests[i].Digest)
		if err != nil {
			return nil, err
		}
		images = append(images, img)
	}
	if len(images) == 0 {
		return nil, errors.New("no image in the layout")
	}
	return images, nil
}
