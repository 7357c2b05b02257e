package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// envtest starts etcd and kube-apiserver itself, and both would keep running
// when the demo is killed. Therefore envtest gets a folder where both names are
// links to this program. Started under such a name, the program has the kernel
// kill it when the demo exits, redirects its output to a log, and executes the
// real binary.
const (
	// Environment variables for a stand-in: the folder of the real binaries, the
	// folder of its log, and the process ID of the demo. A program that is started
	// without them is not a stand-in.
	realAssets  = "DEMO_ASSETS"
	demoLogs    = "DEMO_LOGS"
	demoProcess = "DEMO_PROCESS"
)

var guarded = []string{"etcd", "kube-apiserver"}

// guard creates folder with stand-ins for the binaries in assets and returns it.
// The stand-ins write their logs to the folder logs.
func guard(assets, folder, logs string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", fmt.Errorf("creating the folder of stand-ins: %w", err)
	}
	links := map[string]string{"kubectl": filepath.Join(assets, "kubectl")}
	for _, name := range guarded {
		links[name] = self
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("creating a stand-in: %w", err)
		}
	}
	_ = os.Setenv(realAssets, assets)
	_ = os.Setenv(demoLogs, logs)
	_ = os.Setenv(demoProcess, strconv.Itoa(os.Getpid()))
	return folder, nil
}

// execStandIn executes the real binary if this program was started as a
// stand-in. Otherwise it returns.
func execStandIn() {
	name, assets := filepath.Base(os.Args[0]), os.Getenv(realAssets)
	if assets == "" || !slices.Contains(guarded, name) {
		return
	}
	if !slices.Contains(os.Args, "--help") {
		if err := bind(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	path := filepath.Join(assets, name)
	fmt.Fprintln(os.Stderr, path, syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ()))
	os.Exit(1)
}

// bind has the kernel kill this process when the demo exits, and redirects its
// output to a log.
func bind(name string) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return fmt.Errorf("binding %s to the demo: %w", name, errno)
	}
	if strconv.Itoa(os.Getppid()) != os.Getenv(demoProcess) {
		return fmt.Errorf("the demo that started %s has exited", name)
	}
	log, err := os.Create(filepath.Join(os.Getenv(demoLogs), name+".log"))
	if err != nil {
		return fmt.Errorf("creating a log: %w", err)
	}
	for _, fd := range []int{1, 2} {
		if err := syscall.Dup3(int(log.Fd()), fd, 0); err != nil {
			return fmt.Errorf("redirecting the output of %s: %w", name, err)
		}
	}
	return nil
}

func processGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
