package imports

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// maxImportable is the most entries of spec.importable.
const maxImportable = 1000

// cloudPolicy is what a Cloud allows to import.
type cloudPolicy struct {
	name string
	// known is whether the Cloud could be read.
	known      bool
	imports    pcapi.ImportPolicy
	importable []pcapi.ImportableVM
	// networks is what networkImports has to be, empty for absent, so that another value of imports allows no other
	// networks.
	networks pcapi.ImportPolicy
	// namespaceOf has the namespaces of importable by server.
	namespaceOf map[string]string
	// version is the resourceVersion of the Cloud.
	version string
}

func policyOf(c *pcapi.Cloud) cloudPolicy {
	p := cloudPolicy{name: c.Name, known: true, imports: c.Spec.Imports, importable: c.Spec.Importable, namespaceOf: map[string]string{}, version: c.ResourceVersion}
	if c.Spec.NetworkImports == "" && len(c.Spec.ImportableNetworks) > 0 && p.imports != pcapi.ImportPolicyListed {
		p.networks = cmp.Or(p.imports, pcapi.ImportPolicyNone)
	}
	for _, entry := range p.importable {
		p.namespaceOf[entry.VMID] = entry.Namespace
	}
	return p
}

// allows reports whether a namespace may import a server, as far as that is known.
func (p *cloudPolicy) allows(namespace, id string) bool {
	switch {
	case !p.known, p.imports == pcapi.ImportPolicyAny:
		return true
	case p.imports == pcapi.ImportPolicyListed:
		return p.namespaceOf[id] == namespace
	}
	return false
}

// taken returns the other namespace that alone may import a server, empty for none.
func (p *cloudPolicy) taken(namespace, id string) string {
	if of := p.namespaceOf[id]; p.imports != pcapi.ImportPolicyAny && of != namespace {
		return of
	}
	return ""
}

// advice returns what has to be set before n servers can be imported, of which unlisted are
// not allowed; empty if nothing.
func (p *cloudPolicy) advice(n, unlisted int, namespace string) string {
	switch {
	case n == 0:
		return ""
	case !p.known:
		return fmt.Sprintf("Cloud %q cannot be read, so it is not known whether it allows imports: ask its administrator (spec.imports)\n", p.name)
	case unlisted == 0:
		return ""
	}
	state := "allows no imports"
	if p.imports == pcapi.ImportPolicyListed {
		state = fmt.Sprintf("does not allow %d of these imports", unlisted)
	}
	dormant := ""
	if others := len(p.importable); p.imports != pcapi.ImportPolicyListed && others > 0 {
		dormant = fmt.Sprintf("This also allows the %d imports that spec.importable has already: look at them first.\n", others)
	}
	return fmt.Sprintf(`Cloud %[1]q %[2]s. Before the manifests are applied, either allow these servers to namespace %[3]s:
  kubectl privatecloud import --cloud %[1]s -n %[3]s -o importable > allow.yaml     (with the same --match)
  kubectl patch cloud %[1]s --type=merge --patch-file allow.yaml
or all servers to all namespaces that may use the Cloud, with spec.imports Any. Unless spec.networkImports is set, this allows all networks too.
%[4]s`, p.name, state, namespace, dormant)
}

func newWriter(out io.Writer, format string, p cloudPolicy) (*writer, error) {
	switch {
	case format != formatImportable:
	case !p.known:
		return nil, fmt.Errorf("-o importable needs the right to get Cloud %q: the patch has the entries that it has already", p.name)
	case p.imports == pcapi.ImportPolicyAny:
		return nil, fmt.Errorf("spec.imports of Cloud %q is Any, which allows all imports: a patch with a list would forbid those of others", p.name)
	}
	return &writer{format: format, out: out, cloud: p, added: slices.Clone(p.importable)}, nil
}

// allow adds an entry, unless the server has one.
func (w *writer) allow(entry pcapi.ImportableVM) {
	switch {
	case w.cloud.namespaceOf[entry.VMID] != "":
	case len(w.added) >= maxImportable:
		w.omitted++
	default:
		w.added = append(w.added, entry)
	}
}

// writePatch writes a merge patch of the Cloud; nothing if no entry is added. It has the
// entries that the Cloud has already, since a merge patch replaces a list, and fails if the
// Cloud has changed meanwhile.
func (w *writer) writePatch() error {
	if len(w.added) == len(w.cloud.importable) {
		return nil
	}
	type patchMetadata struct {
		ResourceVersion string `json:"resourceVersion,omitempty"`
	}
	type patchSpec struct {
		Imports        pcapi.ImportPolicy   `json:"imports"`
		NetworkImports pcapi.ImportPolicy   `json:"networkImports,omitempty"`
		Importable     []pcapi.ImportableVM `json:"importable"`
	}
	text, err := yaml.Marshal(struct {
		Metadata patchMetadata `json:"metadata"`
		Spec     patchSpec     `json:"spec"`
	}{patchMetadata{w.cloud.version}, patchSpec{pcapi.ImportPolicyListed, w.cloud.networks, w.added}})
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return w.print(string(text))
}
