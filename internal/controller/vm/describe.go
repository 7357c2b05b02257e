package vm

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
)

// describeCreate says what a create asks for, as a plan shows it.
func describeCreate(vm *pcapi.VM, req cloud.CreateServer) (parts []string) {
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+approval.Quoted(value))
		}
	}
	add("flavor", req.Flavor)
	add("cpu", amount(req.CPU))
	add("memory", mib(req.MemoryMiB))
	add("template", req.Template)
	add("folder", req.Folder)
	add("zone", req.Zone)
	for _, i := range controller.InterfacesOf(vm) {
		add("network", i.NetworkRef.Name)
		for _, address := range i.Addresses {
			parts[len(parts)-1] += " address " + string(address)
		}
	}
	if a := vm.Spec.AntiAffinity; a != nil {
		parts = append(parts, fmt.Sprintf("anti-affinity %s group %s", a.Policy, approval.Quoted(a.Group)))
	}
	for _, disk := range req.Disks.List() {
		parts = append(parts, fmt.Sprintf("disk %s %s", approval.Quoted(disk.Name), mib(disk.SizeMiB)))
	}
	for _, key := range slices.Sorted(maps.Keys(vm.Spec.Tags)) {
		parts = append(parts, "tag "+approval.Quoted(key+"="+string(vm.Spec.Tags[key])))
	}
	if vm.Spec.Bootstrap != nil {
		parts = append(parts, describeBootstrap(vm.Spec.Bootstrap.CloudInit)...)
	}
	if req.PowerState == cloud.PowerOff {
		parts = append(parts, "powered off")
	}
	return parts
}

// describeBootstrap says who may log in to a server, and which Secret has its user data. What that holds is not
// part of a plan.
func describeBootstrap(c pcapi.VMCloudInit) (parts []string) {
	if ref := c.UserDataSecretRef; ref != nil {
		parts = append(parts, fmt.Sprintf("user data of Secret %s key %s", approval.Quoted(ref.Name), approval.Quoted(ref.Key)))
	}
	for _, key := range c.SSHAuthorizedKeys {
		parts = append(parts, "SSH key "+fingerprint(string(key)))
	}
	return parts
}

// fingerprint returns the fingerprint of a line of an authorized_keys file as ssh-keygen -l prints it, and its comment.
func fingerprint(line string) string {
	fields := append(strings.SplitN(line, " ", 3), "", "")
	key, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		key = []byte(fields[1]) // as it is: the cloud may take it all the same
	}
	sum := sha256.Sum256(key)
	text := "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
	if fields[2] != "" {
		text += " " + approval.Quoted(fields[2])
	}
	return text
}

// describeChange says what a change does to a server, but for its power state.
func describeChange(s cloud.Server, change cloud.UpdateServer) (parts []string) {
	if change.Flavor != nil {
		parts = append(parts, fmt.Sprintf("flavor %s to %s", approval.Quoted(s.Flavor), approval.Quoted(*change.Flavor)))
	}
	if change.CPU != nil {
		parts = append(parts, fmt.Sprintf("cpu %d to %d", s.CPU, *change.CPU))
	}
	if change.MemoryMiB != nil {
		parts = append(parts, fmt.Sprintf("memory %s to %s", mib(s.MemoryMiB), mib(*change.MemoryMiB)))
	}
	for _, disk := range change.Disks.List() {
		if has := s.Disks.Size(disk.Name); has > 0 {
			parts = append(parts, fmt.Sprintf("disk %s %s to %s", approval.Quoted(disk.Name), mib(has), mib(disk.SizeMiB)))
		} else {
			parts = append(parts, fmt.Sprintf("new disk %s %s", approval.Quoted(disk.Name), mib(disk.SizeMiB)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(change.Labels)) {
		switch value := change.Labels[key]; {
		case key == inventory.TagsLabel:
		case value == nil:
			parts = append(parts, "without tag "+approval.Quoted(key))
		default:
			parts = append(parts, "tag "+approval.Quoted(key+"="+*value))
		}
	}
	if len(parts) == 0 && len(change.Labels) > 0 {
		parts = []string{"the list of its tags"}
	}
	return parts
}

// amount and mib return sizes as text, empty for 0.
func amount(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func mib(n int) string {
	switch {
	case n == 0:
		return ""
	case n%mibPerGiB == 0:
		return fmt.Sprintf("%dGi", n/mibPerGiB)
	}
	return fmt.Sprintf("%dMi", n)
}
