package report

import (
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const redacted = "REDACTED"

var (
	// hiddenKeys are fields that may hold secrets, whatever their type.
	hiddenKeys = []string{"bootstrap", "cloudInit", "userData", "data", "stringData", "binaryData", "caBundle", "ca.crt"}
	// kept are annotations of others whose values are known to be harmless; kept as well are
	// those of the operator.
	kept = []string{"deployment.kubernetes.io/revision", "kubectl.kubernetes.io/restartedAt", "kubectl.kubernetes.io/default-container", "controller-gen.kubebuilder.io/version"}
	// keptEnv are variables whose values are known to be harmless.
	keptEnv = []string{"POD_NAMESPACE", "POD_NAME", "GOMEMLIMIT", "GOMAXPROCS", "GOGC", "PROBE_NETWORKS"}
)

// object replaces in an object what may be secret, and returns it.
func (r *redactor) object(o map[string]any) map[string]any {
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	return r.fields(o)
}

func (r *redactor) fields(o map[string]any) map[string]any {
	for key, value := range o {
		o[key] = r.field(key, value)
	}
	return o
}

func (r *redactor) field(key string, value any) any {
	switch {
	case slices.Contains(hiddenKeys, key):
		return redacted
	case key == "annotations":
		return annotations(value, r)
	case key == "env":
		return environment(value)
	}
	text, isText := value.(string)
	switch {
	case isText && key == "endpoint":
		return endpoint(text)
	case isText && secretName.MatchString(key) && !strings.HasSuffix(key, "Name"):
		return redacted
	}
	return r.value(value)
}

func (r *redactor) value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["name"].(string); ok && secretName.MatchString(name) && v["value"] != nil { // as a header of a probe
			v["value"] = redacted
		}
		return r.fields(v)
	case []any:
		for i := range v {
			if ofSecretFlag(v, i) {
				v[i] = redacted
				continue
			}
			v[i] = r.value(v[i])
		}
	case string:
		return r.text(v)
	}
	return value
}

// ofSecretFlag reports whether the item i of a list is the value of a flag before it that is
// named like a secret, as in the arguments of a container.
func ofSecretFlag(list []any, i int) bool {
	value, ok := list[i].(string)
	if i == 0 || !ok || strings.HasPrefix(value, "-") {
		return false
	}
	flag, ok := list[i-1].(string)
	return ok && strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") && secretName.MatchString(flag)
}

// annotations keeps the values of the operator's annotations.
func annotations(value any, r *redactor) any {
	all, ok := value.(map[string]any)
	if !ok {
		return redacted
	}
	for key, v := range all {
		text, ok := v.(string)
		if !ok || !strings.HasPrefix(key, pcapi.GroupVersion.Group+"/") && !slices.Contains(kept, key) {
			all[key] = redacted
			continue
		}
		all[key] = r.text(text)
	}
	return all
}

// environment hides the values of variables: a proxy or a collector may have a password.
func environment(value any) any {
	variables, ok := value.([]any)
	if !ok {
		return redacted
	}
	for _, v := range variables {
		variable, ok := v.(map[string]any)
		if !ok {
			return redacted
		}
		name, _ := variable["name"].(string)
		if _, has := variable["value"]; has && !slices.Contains(keptEnv, name) {
			variable["value"] = redacted
		}
	}
	return variables
}

// endpoint keeps only the scheme of a URL.
func endpoint(text string) string {
	scheme, _, found := strings.Cut(text, "://")
	if !found {
		return redacted
	}
	return scheme + "://" + redacted
}
