// Command image builds container images out of files, pushes them and serves them, where there is no container engine.
// The same inputs give the same digest: nothing of an image comes from a clock, a user or a umask.
package main

import (
	"fmt"
	"os"
)

const usage = `usage: image COMMAND [FLAGS]

  build   makes an image out of files and writes it as an OCI layout
  push    pushes OCI layouts to a registry
  serve   is a registry over TLS that keeps what it gets in a folder

image COMMAND --help lists the flags of COMMAND.
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func([]string) error{"build": buildCommand, "push": pushCommand, "serve": serveCommand}
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
