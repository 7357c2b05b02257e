package vmconsolerequest

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/lean"
)

// Lean is a transform of caches. It drops what lean.Object does, and the answer of a VMConsoleRequest, which may have 64 KiB:
// status.readTime says that it was given.
func Lean(o any) (any, error) {
	if r, ok := o.(*pcapi.VMConsoleRequest); ok && r.Status.Console != "" {
		r.Status.Console = ""
	}
	return lean.Object(o)
}
