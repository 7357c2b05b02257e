package guest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/privatecloud/operator/internal/testkit"
)

// atATime is how many guests run at a time: each of them uses a processor while it boots.
const atATime = 3

func TestMain(m *testing.M) {
	if err := testkit.RunInParallel(atATime); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// needGuests skips the test unless make test-guest runs it.
func needGuests(t *testing.T) {
	t.Helper()
	if os.Getenv("GUEST_IMAGE") == "" {
		t.Skip("needs the image of guests: run make test-guest")
	}
}

// scripts returns the folder of the scripts for guests.
var scripts = sync.OnceValues(func() (string, error) {
	root, err := testkit.ModuleRoot()
	return filepath.Join(root, "hack", "guest"), err
})

// image returns the name of the image in the chroot.
func image() string { return "/image/" + filepath.Base(os.Getenv("GUEST_IMAGE")) }

// inChroot returns a command in the chroot with QEMU, whose working directory is folder. It ends
// with this process.
func inChroot(t *testing.T, folder string, args ...string) *exec.Cmd {
	t.Helper()
	scripts, err := scripts()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(filepath.Join(scripts, "run.sh"), append([]string{folder}, args...)...)
	command.SysProcAttr = testkit.WithParent()
	return command
}

// run runs a command in the chroot.
func run(t *testing.T, folder string, args ...string) {
	t.Helper()
	if output, err := inChroot(t, folder, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, output)
	}
}
