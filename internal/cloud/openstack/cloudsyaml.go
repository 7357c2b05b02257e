package openstack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is what a clouds.yaml says about one cloud, in the format of the OpenStack SDK.
type File struct {
	Credentials Credentials
	// AuthURL and Region are empty where the file has none.
	AuthURL, Region string
	// Interface is empty where the file has none.
	Interface Interface
	Endpoints Endpoints
	// SkipVerify is whether the file switches the verification of certificates off.
	SkipVerify bool
	// CAFile is the path of a CA on the machine where the file was written, empty if it
	// names none.
	CAFile string
}

// ParseFile reads the cloud of this name in a clouds.yaml; with an empty name, the only one.
// Its errors quote nothing of the file but names of clouds.
func ParseFile(data []byte, name string) (File, error) {
	var all struct {
		Clouds map[string]map[string]any `yaml:"clouds"`
	}
	if err := yaml.Unmarshal(data, &all); err != nil {
		return File{}, fmt.Errorf("clouds.yaml: is not YAML with a map of clouds%s", lineOf(err))
	}
	names := slices.Sorted(maps.Keys(all.Clouds))
	switch {
	case len(names) == 0:
		return File{}, errors.New("clouds.yaml: has no cloud under clouds")
	case name == "" && len(names) > 1:
		return File{}, fmt.Errorf("clouds.yaml: has several clouds: set spec.openstack.cloudName to one of %s", listText(names))
	case name == "":
		name = names[0]
	case !slices.Contains(names, name):
		return File{}, fmt.Errorf("clouds.yaml: has no cloud %s, which spec.openstack.cloudName names, but %s", quote(name), listText(names))
	}
	return newEntry(all.Clouds[name]).file()
}

// lineOf returns where in a file an error is. The rest of the error may quote the file.
func lineOf(err error) string {
	line := regexp.MustCompile(`line \d+`).FindString(err.Error())
	if line == "" {
		return ""
	}
	return ": see " + line
}

// entry is one cloud of a clouds.yaml, and the first error of what was read of it.
type entry struct {
	values, auth map[string]any
	err          error
}

// newEntry returns an entry with the words that the SDK takes for each other in one form. It takes
// the project, the domains and a token also beside auth, and prefers them there.
func newEntry(values map[string]any) *entry {
	e := &entry{values: sameWords(values)}
	auth, _ := e.values["auth"].(map[string]any)
	e.auth = sameWords(auth)
	for key, value := range e.values {
		if key == "token" || strings.HasPrefix(key, "project_") || strings.Contains(key, "domain_") {
			e.auth[key] = value
		}
	}
	return e
}

// sameWords returns values with underscores for hyphens, and projects for tenants.
func sameWords(values map[string]any) map[string]any {
	same := make(map[string]any, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		word := strings.ReplaceAll(key, "-", "_")
		if rest, found := strings.CutPrefix(word, "tenant_"); found {
			word = "project_" + rest
		}
		same[word] = values[key]
	}
	return same
}

// text returns the text of a setting without a line end, empty if there is none.
func (e *entry) text(key string) string { return e.textOf(key, e.values[key]) }

// authText is text for a setting below auth.
func (e *entry) authText(key string) string { return e.textOf("auth."+key, e.auth[key]) }

func (e *entry) textOf(key string, value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimRight(value, "\r\n")
	case map[string]any, []any:
		e.refuse("%s has several values, where one is needed", key)
	default:
		e.refuse("%s is not text: put it in quotes", key)
	}
	return ""
}

// refuse keeps an error if there is none yet.
func (e *entry) refuse(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("clouds.yaml: "+format, args...)
	}
}

// identifier returns the id or name of a user, project or domain.
func (e *entry) identifier(what string) Identifier {
	return Identifier{ID: e.authText(what + "_id"), Name: e.authText(what + "_name")}
}

// domain returns the domain of a user or project.
func (e *entry) domain(what string) Identifier {
	for _, found := range []Identifier{e.identifier(what + "_domain"), e.identifier("domain"), e.identifier("default_domain")} {
		if found != (Identifier{}) {
			return found
		}
	}
	return Identifier{}
}

func (e *entry) file() (File, error) {
	f := File{
		AuthURL: e.authText("auth_url"), Region: e.region(), Interface: e.access(), CAFile: e.text("cacert"),
		Endpoints: Endpoints{
			Compute: e.text("compute_endpoint_override"), Network: e.text("network_endpoint_override"), Image: e.text("image_endpoint_override"),
			BlockStorage: cmp.Or(e.text("block_storage_endpoint_override"), e.text("volumev3_endpoint_override"), e.text("volume_endpoint_override")),
		},
		Credentials: e.credentials(),
	}
	if verify, is := e.values["verify"].(bool); is {
		f.SkipVerify = !verify
	}
	if e.text("cert") != "" || e.text("key") != "" {
		e.refuse("client certificates (cert and key) are not supported")
	}
	return f, e.err
}

// region returns the region, also that of a list with one.
func (e *entry) region() string {
	if named := e.text("region_name"); named != "" {
		return named
	}
	if all, _ := e.values["regions"].([]any); len(all) == 1 {
		if settings, is := all[0].(map[string]any); is {
			return e.textOf("regions", settings["name"])
		}
		return e.textOf("regions", all[0])
	}
	return ""
}

// access returns the interface, which was called endpoint_type and publicURL once.
func (e *entry) access() Interface {
	text := e.text("interface")
	if older := e.text("endpoint_type"); older != "" {
		text = older
	}
	switch access := Interface(strings.TrimSuffix(text, "URL")); access {
	case "", InterfacePublic, InterfaceInternal, InterfaceAdmin:
		return access
	default:
		e.refuse("interface is none of public, internal and admin")
		return ""
	}
}

// credentials returns those of the auth_type. Without one, there must be one kind.
func (e *entry) credentials() Credentials {
	for _, scope := range []string{"trust_id", "system_scope"} {
		if e.authText(scope) != "" {
			e.refuse("auth.%s is not supported: the operator needs credentials of one project", scope)
		}
	}
	c := Credentials{
		ApplicationCredentialID: e.authText("application_credential_id"), ApplicationCredentialName: e.authText("application_credential_name"),
		ApplicationCredentialSecret: e.authText("application_credential_secret"),
		UserID:                      e.authText("user_id"), Username: e.authText("username"), UserDomain: e.domain("user"),
		Password: e.authText("password"), Token: e.authText("token"),
		Project: e.identifier("project"), ProjectDomain: e.domain("project"),
	}
	kind := e.text("auth_type")
	if !slices.Contains([]string{"", "v3applicationcredential"}, kind) {
		c.ApplicationCredentialID, c.ApplicationCredentialName, c.ApplicationCredentialSecret = "", "", ""
	}
	switch kind {
	case "":
	case "v3applicationcredential":
		c.Password, c.Token = "", ""
	case "password", "v3password":
		c.Token = ""
	case "token", "v3token":
		c.UserID, c.Username, c.Password = "", "", ""
	default:
		e.refuse("this auth_type is not supported: use v3applicationcredential, password or token")
	}
	if _, err := c.cleaned(); err != nil {
		e.refuse("auth needs one of these: application_credential_id and application_credential_secret; application_credential_name, " +
			"application_credential_secret and the user; username, password and project_name; token")
	}
	return c
}
