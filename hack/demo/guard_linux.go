package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// envtest starts etcd and kube-apiserver itself, and would leave them behind
// when the demo is killed. So it is given a folder where both names lead to this
// very program. Started under such a name, it binds its life to the demo's, sends
// its output to a log, and becomes the real one.
const (
	// These tell a stand-in where the real programs are, where its log goes and
	// whose child it is. Without them nothing is taken for a stand-in.
	realAssets  = "DEMO_ASSETS"
	demoLogs    = "DEMO_LOGS"
	demoProcess = "DEMO_PROCESS"
)

var guarded = []string{"etcd", "kube-apiserver"}

// guard fills folder with stand-ins for assets and returns it as the assets to
// use. Their logs go into logs.
func guard(assets, folder, logs string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("looking for this program: %w", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of stand-ins: %w", err)
	}
	links := map[string]string{"kubectl": filepath.Join(assets, "kubectl")}
	for _, name := range guarded {
		links[name] = self
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("making a stand-in: %w", err)
		}
	}
	_ = os.Setenv(realAssets, assets)
	_ = os.Setenv(demoLogs, logs)
	_ = os.Setenv(demoProcess, strconv.Itoa(os.Getpid()))
	return folder, nil
}

// standIn returns unless this program was started as a stand-in.
func standIn() {
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

func bind(name string) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); errno != 0 {
		return fmt.Errorf("binding %s to the demo: %w", name, errno)
	}
	if strconv.Itoa(os.Getppid()) != os.Getenv(demoProcess) {
		return fmt.Errorf("the demo that wanted %s is gone", name)
	}
	log, err := os.Create(filepath.Join(os.Getenv(demoLogs), name+".log"))
	if err != nil {
		return fmt.Errorf("making a log: %w", err)
	}
	for _, fd := range []int{1, 2} {
		if err := syscall.Dup3(int(log.Fd()), fd, 0); err != nil {
			return fmt.Errorf("redirecting the output of %s: %w", name, err)
		}
	}
	return nil
}

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
