package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const digestUsage = `usage: image digest DIR [DIR]...
       image digest --registry REFERENCE

Prints the digest that image push gives the images of the OCI layouts DIR, without a registry; or the digest that the
registry has for REFERENCE. Uses the credentials of docker login; SSL_CERT_FILE has the CAs to trust.

`

func digestCommand(args []string) error {
	flags := flag.NewFlagSet("digest", flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), digestUsage); flags.PrintDefaults() }
	reference := flags.String("registry", "", "`REFERENCE` to ask its registry for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if (*reference == "") == (flags.NArg() == 0) {
		return errors.New("want either DIR or --registry REFERENCE: see image digest --help")
	}
	digest, err := digestOf(*reference, flags.Args())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, digest)
	return err
}

// digestOf returns the digest of a reference or, if there is none, of OCI layouts.
func digestOf(reference string, dirs []string) (v1.Hash, error) {
	if reference != "" {
		ref, err := name.ParseReference(reference)
		if err != nil {
			return v1.Hash{}, err
		}
		descriptor, err := remote.Head(ref, remote.WithAuthFromKeychain(authn.DefaultKeychain))
		if err != nil {
			return v1.Hash{}, fmt.Errorf("ask for %s: %w", reference, err)
		}
		return descriptor.Digest, nil
	}
	images, err := readLayouts(dirs)
	if err != nil {
		return v1.Hash{}, err
	}
	if len(images) == 1 {
		return images[0].Digest()
	}
	index, err := indexOf(images)
	if err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}
