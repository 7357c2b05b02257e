package guest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// leastRoot is less than the root file system has after it has grown from the image to the
// disk, and more than before, in bytes.
const leastRoot = 5 << 29

// expected is what is checked of a guest beside what is the same for all.
type expected struct {
	// source is the data source of cloud-init, and instance the id that it gives.
	source, instance string
	// hostname is the name of the guest, with its domain.
	hostname string
	// gateway is empty if QEMU gives the guest its address: without a way out of the network, it names none.
	gateway string
	// answers are what commands print.
	answers map[string]string
}

// check checks a guest once cloud-init has ended.
func (s *session) check(m machine, want expected) {
	s.Helper()
	const result = "/run/cloud-init/result.json"
	var ended struct {
		V1 struct {
			Source string   `json:"datasource"`
			Errors []string `json:"errors"`
		} `json:"v1"`
	}
	text := s.output("until [ -e " + result + " ]; do sleep 1; done; cat " + result)
	if err := json.Unmarshal([]byte(text), &ended); err != nil {
		s.fail("%s: %v: %s", result, err, text)
	}
	if !strings.HasPrefix(ended.V1.Source, want.source) || len(ended.V1.Errors) > 0 {
		s.Errorf("cloud-init ended with %s, want the data source %s and no errors", text, want.source)
	}
	var disks []string
	for _, size := range m.disksMiB {
		disks = append(disks, strconv.Itoa(size<<20/512))
	}
	answers := map[string]string{
		"sudo cloud-init schema --system":                           "Valid cloud-config: system userdata",
		"sudo -n id -un":                                            "root",
		"cat /run/user-data-ran":                                    "root", // by the script
		"sudo cat /var/lib/cloud/data/instance-id":                  want.instance,
		"hostname --fqdn":                                           want.hostname,
		"ip -4 -o addr show eth0 scope global | awk '{ print $4 }'": fmt.Sprintf("%s/%d", m.address, lan.prefix.Bits()),
		"ip route show default | awk '{ print $3 }'":                want.gateway,
		"cat /sys/block/vd[b-z]/size 2>/dev/null":                   strings.Join(disks, "\n"),
		"nproc": strconv.Itoa(m.cpu),
	}
	maps.Copy(answers, want.answers)
	got := map[string]string{}
	for command := range answers {
		got[command] = s.output(command)
	}
	if diff := cmp.Diff(answers, got); diff != "" {
		s.Errorf("commands in the guest (-want +got):\n%s", diff)
	}
	size := s.output("df -B1 --output=size / | tail -n 1")
	if bytes, err := strconv.Atoi(size); err != nil || bytes < leastRoot {
		s.Errorf("the root file system has %s bytes, want at least %d: it has not grown", size, leastRoot)
	}
	if s.Failed() {
		s.fail("the guest is not as it should be")
	}
}
