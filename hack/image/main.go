// Command image builds container images from files, pushes and archives them, and serves them, without a container engine. The same
// inputs give the same digest: images do not depend on the time, the user or the umask.
package main

import (
	"fmt"
	"os"
)

const usage = `usage: image COMMAND [FLAGS]

  build    builds an image from files and writes it as an OCI layout
  digest   prints the digest of OCI layouts, or of an image in a registry
  push     pushes OCI layouts to a registry
  archive  writes an OCI layout as a file that docker load and kind load image-archive read
  sbom     prints the SBOM of a Go program
  serve    serves a registry over TLS and stores the images in a folder

image COMMAND --help lists the flags of COMMAND.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func([]string) error{"build": buildCommand, "digest": digestCommand, "push": pushCommand, "archive": archiveCommand, "sbom": sbomCommand, "serve": serveCommand}
	run, ok := commands[os.Args[1]]
	if !ok {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	if err := run(os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "image %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
