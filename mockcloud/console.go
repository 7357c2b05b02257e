package mockcloud

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// maxConsoleLines bounds the lines of a console that a call shows.
const maxConsoleLines = 1000

// handleConsole handles GET /servers/{id}/console.
func (s *servers) handleConsole(w http.ResponseWriter, r *request) error {
	lines := maxConsoleLines
	if text := r.URL.Query().Get("lines"); text != "" {
		var err error
		if lines, err = strconv.Atoi(text); err != nil || lines < 1 || lines > maxConsoleLines {
			return invalid("lines is a number of 1-%d", maxConsoleLines)
		}
	}
	found, err := s.reads.server(r.vars[0])
	switch {
	case err != nil:
		return err
	case found.State == StateBuilding:
		return problem(http.StatusConflict, CodeInvalidState, "the server is %s", found.State)
	}
	return writeJSON(w, http.StatusOK, map[string]string{"output": found.printed(lines)})
}

// booted returns how often the server has started. One of an earlier release may run although
// nobody has counted it.
func (r *record) booted() int {
	if r.Boots == 0 && (r.State == StateActive || r.State == StateSuspended) {
		return 1
	}
	return r.Boots
}

// countBoots counts the start of a server that runs now; before is what it was, nil for a new one.
func (r *record) countBoots(before *record) {
	r.Boots = 0
	if before != nil {
		r.Boots = before.booted()
	}
	if r.State == StateActive && (r.Boots == 0 || before.State == StateStopped || before.State == StateBuilding) {
		r.Boots++
	}
}

// printed returns the last lines of what the console of the server has printed: a boot for each
// start, and the end of all but the one that runs. It follows from the server as it is now.
func (r *record) printed(lines int) string {
	boot, runs := r.boot(), r.State != StateStopped
	shown := min(r.booted(), lines/len(boot)+2)
	var all []string
	for n := range shown {
		all = append(all, boot...)
		if n == shown-1 && runs {
			break
		}
		all[len(all)-1] += "\n"
		all = append(all, "[  OK  ] Reached target poweroff.target - System Power Off.\n", "[  600.000000] reboot: Power down\n")
	}
	return strings.Join(all[max(0, len(all)-lines):], "")
}

// boot returns the lines of one boot of the server, of which the last is a prompt.
func (r *record) boot() []string {
	return []string{
		"[    0.000000] Linux version 6.12.0-mock (gcc 14.2.0) #1 SMP PREEMPT_DYNAMIC\n",
		"[    0.000000] Command line: BOOT_IMAGE=/boot/vmlinuz root=/dev/vda1 ro console=tty0 console=ttyS0,115200\n",
		fmt.Sprintf("[    0.011250] Memory: %dK available\n", r.Memory<<20),
		fmt.Sprintf("[    0.047310] smp: Brought up 1 node, %d CPU(s)\n", r.CPU),
		"[    1.382041] EXT4-fs (vda1): mounted filesystem with ordered data mode.\n",
		fmt.Sprintf("[    2.104422] systemd[1]: Hostname set to <%s>.\n", r.Name),
		"[    5.731902] cloud-init[412]: Cloud-init v. 25.1 running 'init'. Up 5.71 seconds.\n",
		fmt.Sprintf("[    6.018377] cloud-init[412]: instance %s is named %s\n", r.ID, r.Name),
		"[    9.264518] cloud-init[530]: Cloud-init v. 25.1 finished. Datasource DataSourceMock. Up 9.25 seconds.\n",
		"[  OK  ] Reached target multi-user.target - Multi-User System.\n",
		"\n",
		r.Name + " login: ",
	}
}
