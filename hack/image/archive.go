package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const archiveUsage = `usage: image archive --tag REFERENCE --output FILE DIR

Writes the image of the OCI layout DIR to FILE, with the name REFERENCE, as docker save does. docker load, ctr images import
and kind load image-archive read it.

`

func archiveCommand(args []string) error {
	flags := flag.NewFlagSet("archive", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), archiveUsage); flags.PrintDefaults() }
	tag := flags.String("tag", "", "the `REFERENCE` of the image, with a tag")
	output := flags.String("output", "", "the `FILE` to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *tag == "" || *output == "" || flags.NArg() != 1 {
		return errors.New("want --tag REFERENCE, --output FILE and DIR: see image archive --help")
	}
	ref, err := name.NewTag(*tag)
	if err != nil {
		return err
	}
	images, err := readLayouts(flags.Args())
	if err != nil {
		return err
	}
	if len(images) != 1 {
		return fmt.Errorf("%s has %d images: an archive has the image of one platform", flags.Arg(0), len(images))
	}
	if err := tarball.WriteToFile(*output, ref, images[0]); err != nil {
		return fmt.Errorf("write %s: %w", *output, err)
	}
	return nil
}
