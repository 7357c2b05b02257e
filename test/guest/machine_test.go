package guest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// rootSize is the size of the disk that a platform makes of the image.
	rootSize = "3G"
	// mac is the address of the network adapter.
	mac = "fa:16:3e:00:00:01"
	// stopTime only ends what hangs: a guest shuts down in seconds on a quiet machine.
	stopTime = 5 * time.Minute
	// consoleLines is how many lines of the console a failure shows.
	consoleLines = 60
)

// lan is the network of the guests, in which QEMU is the gateway and gives addresses.
var lan = struct {
	prefix                netip.Prefix
	gateway, given, fixed string
}{netip.MustParsePrefix("10.77.0.0/24"), "10.77.0.1", "10.77.0.15", "10.77.0.9"}

// machine is what a platform makes for a server.
type machine struct {
	cpu, memoryMiB int
	// disksMiB are the sizes of the disks beside the first one.
	disksMiB []int
	// drives are CD-ROM drives.
	drives []drive
	// address is that of the guest.
	address string
	// firmware are files that the firmware shows, by name.
	firmware map[string]string
	// qemu are other arguments.
	qemu []string
}

// drive is a CD-ROM with a label and files.
type drive struct {
	label string
	files map[string]string
}

// guest is a machine that runs.
type guest struct {
	*testing.T

	folder string
	// port of 127.0.0.1 leads to SSH of the guest.
	port string
	done chan struct{}

	control io.Writer
	answers *json.Decoder
}

// boot starts a machine, which ends with the test.
func boot(t *testing.T, m machine) *guest {
	t.Helper()
	g := &guest{T: t, folder: t.TempDir(), done: make(chan struct{})}
	run(t, g.folder, "qemu-img", "create", "-q", "-f", "qcow2", "-b", image(), "-F", "qcow2", "root.qcow2", rootSize)
	args := []string{
		"qemu-system-x86_64", "-accel", "tcg", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "file:console.log", "-qmp", "stdio",
		"-smp", fmt.Sprint(m.cpu), "-m", fmt.Sprint(m.memoryMiB),
		"-netdev", fmt.Sprintf("user,id=lan,restrict=on,net=%s,host=%s,dhcpstart=%s,hostfwd=tcp:127.0.0.1:0-%s:22", lan.prefix, lan.gateway, lan.given, m.address),
		"-device", "virtio-net-pci,netdev=lan,mac=" + mac,
		"-drive", "file=root.qcow2,if=virtio,cache=unsafe",
	}
	for i, size := range m.disksMiB {
		name := fmt.Sprintf("disk-%d.qcow2", i)
		run(t, g.folder, "qemu-img", "create", "-q", "-f", "qcow2", name, fmt.Sprintf("%dM", size))
		args = append(args, "-drive", "file="+name+",if=virtio,cache=unsafe")
	}
	for i, d := range m.drives {
		name := fmt.Sprintf("drive-%d", i)
		g.write(name, d.files)
		run(t, g.folder, "xorriso", "-as", "mkisofs", "-quiet", "-R", "-V", d.label, "-o", name+".iso", name)
		args = append(args, "-drive", "file="+name+".iso,if=ide,media=cdrom,readonly=on")
	}
	g.write("firmware", m.firmware)
	for name := range m.firmware {
		args = append(args, "-fw_cfg", fmt.Sprintf("name=opt/%s,file=firmware/%s", name, name))
	}
	g.start(append(args, m.qemu...))
	return g
}

// write writes files into a folder of the machine.
func (g *guest) write(folder string, files map[string]string) {
	g.Helper()
	for name, content := range files {
		path := filepath.Join(g.folder, folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			g.Fatal(err)
		}
	}
}

// forward matches the line of a forwarded port.
var forward = regexp.MustCompile(`HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)`)

func (g *guest) start(args []string) {
	g.Helper()
	log := &testkit.Buffer{}
	command := inChroot(g.T, g.folder, args...)
	command.Stderr = log
	in, noInput := command.StdinPipe()
	out, noOutput := command.StdoutPipe()
	if err := errors.Join(noInput, noOutput); err != nil {
		g.Fatal(err)
	}
	if err := command.Start(); err != nil {
		g.Fatalf("start QEMU: %v", err)
	}
	g.Cleanup(func() {
		_ = command.Process.Kill()
		<-g.done
	})
	go g.wait(command)
	g.control, g.answers = in, json.NewDecoder(out)
	g.command("qmp_capabilities", nil)
	forwarded, _ := g.command("human-monitor-command", map[string]string{"command-line": "info usernet"}).(string)
	found := forward.FindStringSubmatch(forwarded)
	if found == nil {
		g.Fatalf("QEMU forwards no port: %s\n%s", forwarded, log)
	}
	g.port = found[1]
}

func (g *guest) wait(command *exec.Cmd) {
	_, _ = command.Process.Wait()
	close(g.done)
}

// command sends a command to QEMU, and returns its answer.
func (g *guest) command(name string, arguments map[string]string) any {
	g.Helper()
	request := struct {
		Execute   string            `json:"execute"`
		Arguments map[string]string `json:"arguments,omitempty"`
	}{name, arguments}
	if err := json.NewEncoder(g.control).Encode(request); err != nil {
		g.Fatalf("%s: %v", name, err)
	}
	for {
		var message struct {
			Return any             `json:"return"`
			Error  json.RawMessage `json:"error"`
		}
		if err := g.answers.Decode(&message); err != nil {
			g.Fatalf("%s: QEMU does not answer: %v", name, err)
		}
		switch {
		case message.Error != nil:
			g.Fatalf("%s: %s", name, message.Error)
		case message.Return != nil:
			return message.Return
		}
	}
}

// shutDown asks the guest to shut down, as a platform does whose user powers a server off softly.
func (g *guest) shutDown() {
	g.Helper()
	g.command("system_powerdown", nil)
	select {
	case <-g.done:
	case <-time.After(stopTime):
		g.fail("the guest was asked to shut down and runs after %s", stopTime)
	}
}

// console returns what the guest has written to its console.
func (g *guest) console() string {
	text, _ := os.ReadFile(filepath.Join(g.folder, "console.log"))
	return strings.ReplaceAll(string(text), "\r", "")
}

// fail ends the test with a message and the end of the console.
func (g *guest) fail(format string, args ...any) {
	g.Helper()
	lines := strings.Split(g.console(), "\n")
	g.Fatalf("%s\nthe end of the console:\n%s", fmt.Sprintf(format, args...), strings.Join(lines[max(0, len(lines)-consoleLines):], "\n"))
}
