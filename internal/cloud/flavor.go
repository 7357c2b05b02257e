package cloud

import "fmt"

// CodeFlavorUnknown is the code of the error of UnknownFlavor.
const CodeFlavorUnknown = "flavorUnknown"

// UnknownFlavor returns the error of a call that names a flavor which does not exist. There
// says which ones exist.
func UnknownFlavor(op, flavor, there string) *Error {
	return &Error{Kind: Rejected, Code: CodeFlavorUnknown, Op: op, Detail: fmt.Sprintf("no flavor is named %q; %s", flavor, there)}
}
