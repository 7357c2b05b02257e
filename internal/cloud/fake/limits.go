package fake

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

func quote(word string) string { return fmt.Sprintf("%q", word) }

// failure returns the error of a call that certainly had no effect.
func failure(op string, kind cloud.Kind, format string, args ...any) error {
	return &cloud.Error{Kind: kind, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// lacking returns an error if the cloud lacks a capability that the call needs.
func lacking(call call, has cloud.Capabilities) error {
	var missing []string
	for _, need := range cloud.NewCapabilities(call.needs...) {
		if !has.Has(need) {
			missing = append(missing, string(need))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return failure(call.op, cloud.Unsupported, "this cloud lacks %s", strings.Join(missing, ", "))
}

func checkName(op, name string) error {
	switch {
	case name == "":
		return failure(op, cloud.Rejected, "the name is empty")
	case !utf8.ValidString(name):
		return failure(op, cloud.Rejected, "the name is not valid UTF-8")
	default:
		return nil
	}
}

func checkID(op, id string) error {
	if id == "" {
		return failure(op, cloud.Rejected, "no id was given")
	}
	return nil
}

// needs collects the capabilities that a request needs.
type needs []cloud.Capability

func (n *needs) when(used bool, capability cloud.Capability) {
	if used {
		*n = append(*n, capability)
	}
}
