package imports

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/diagnostics/wire"
)

const (
	// maxVMName and maxVMID are the most characters of spec.vmname and of spec.import.vmId.
	maxVMName, maxVMID = 63, 128

	formatYAML       = "yaml"
	formatJSON       = "json"
	formatImportable = "importable"
)

// validVMName is the pattern of spec.vmname.
var validVMName = regexp.MustCompile(`^[\p{L}\p{N}]([\p{L}\p{M}\p{N} ._-]*[\p{L}\p{M}\p{N}])?$`)

// manifest is a VM without what the API server sets, so that nothing is written that the user
// does not have to decide.
type manifest struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   metadata     `json:"metadata"`
	Spec       pcapi.VMSpec `json:"spec"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// planner makes the manifests, one server after the other.
type planner struct {
	target         target
	deletionPolicy pcapi.DeletionPolicy
	// planned and leftOut count servers; unlisted are those of planned that the Cloud does
	// not allow to import yet, and ofNodes those of leftOut that are servers of Nodes.
	planned, leftOut, unlisted, ofNodes int
}

// plan returns the manifest of a server, or why there is none.
func (p *planner) plan(server wire.Server) (manifest, string) {
	power, why := powerOf(server)
	if why == "" {
		why = invalid(server)
	}
	if of := p.target.policy.taken(p.target.namespace, server.ID); why == "" && of != "" {
		why = fmt.Sprintf("spec.importable of the Cloud gives it to namespace %s: import it there, or remove the entry", of)
	}
	if node := p.target.nodes.of(server); node != "" {
		why = node
		p.ofNodes++
	}
	if why != "" {
		p.leftOut++
		return manifest{}, why
	}
	p.planned++
	if !p.target.allows(server.ID) {
		p.unlisted++
	}
	vm := manifest{
		APIVersion: pcapi.GroupVersion.String(), Kind: "VM",
		Metadata: metadata{Name: p.target.names.next(server.Name, server.ID), Namespace: p.target.namespace},
		Spec:     pcapi.VMSpec{VMName: server.Name, PowerState: power, DeletionPolicy: p.deletionPolicy, Import: &pcapi.VMImport{VMID: server.ID}},
	}
	if !p.target.isDefault {
		vm.Spec.CloudRef = &pcapi.CloudReference{Name: p.target.cloud}
	}
	return vm, ""
}

// powerOf returns the power state with which a server stays as it is, empty for the default,
// or why the server cannot be imported now: its VM would not be Ready.
func powerOf(server wire.Server) (power pcapi.PowerState, why string) {
	switch cloud.State(server.State) {
	case cloud.StateActive, "":
		return "", ""
	case cloud.StateStopped:
		return pcapi.PowerOff, ""
	case cloud.StateSuspended:
		return pcapi.PowerSuspended, ""
	case cloud.StateBuilding:
		return "", "it is being created or changed: run this again when that is over"
	case cloud.StateDeleting:
		return "", "it is being deleted"
	case cloud.StateError:
		return "", "it is in error: repair or delete it in the cloud, and run this again"
	default:
		return "", fmt.Sprintf("its state is %s, which the operator does not change: bring it into another in the cloud, and run this again", server.State)
	}
}

// invalid returns why a server cannot be named in a VM, empty if it can.
func invalid(server wire.Server) string {
	switch {
	case utf8.RuneCountInString(server.Name) > maxVMName:
		return fmt.Sprintf("its name is longer than the %d characters of spec.vmname: rename it in the cloud", maxVMName)
	case !validVMName.MatchString(server.Name):
		return "its name is not allowed in spec.vmname (letters and digits of any script; space, '.', '_' and '-' inside): rename it in the cloud"
	case utf8.RuneCountInString(server.ID) > maxVMID:
		return fmt.Sprintf("its id is longer than the %d characters of spec.import.vmId", maxVMID)
	}
	return ""
}

// writer writes manifests in a format, one after the other.
type writer struct {
	format string
	out    io.Writer
	cloud  cloudPolicy
	n      int
	// added are the entries for spec.importable, and omitted counts those that it has no
	// room for.
	added   []pcapi.ImportableVM
	omitted int
}

func (w *writer) write(vm manifest) error {
	defer func() { w.n++ }()
	switch w.format {
	case formatImportable:
		w.allow(pcapi.ImportableVM{VMID: vm.Spec.Import.VMID, Namespace: vm.Metadata.Namespace})
		return nil
	case formatJSON:
		text, err := json.MarshalIndent(vm, "    ", "  ")
		if err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		before := ",\n    "
		if w.n == 0 {
			before = listHead + "\n    "
		}
		return w.print(before + string(text))
	}
	text, err := yaml.Marshal(vm)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return w.print("---\n" + string(text))
}

// listHead and listEnd are around the items of a List of kubectl.
const (
	listHead = "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": ["
	listEnd  = "]\n}\n"
)

// end writes what comes after the last manifest.
func (w *writer) end() error {
	switch {
	case w.format == formatImportable:
		return w.writePatch()
	case w.format != formatJSON:
		return nil
	case w.n == 0:
		return w.print(listHead + listEnd)
	}
	return w.print("\n  " + listEnd)
}

func (w *writer) print(text string) error {
	if _, err := io.WriteString(w.out, text); err != nil {
		return fmt.Errorf("write the manifests: %w", err)
	}
	return nil
}
