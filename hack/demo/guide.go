package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
)

// guide prints commands to try in a second terminal.
func (s *stack) guide() {
	path := ""
	if _, err := exec.LookPath("kubectl"); err != nil {
		path = " PATH=" + filepath.Dir(s.kubectlPath()) + ":$PATH"
	}
	fmt.Printf(s.on.guide(), s.kubeconfig(), s.adminURL, path)
}
