package vsphere

import "strings"

// The kinds of operations.
const (
	createOperation = "create"
	// startOperation is a create whose VM is started after its clone has ended.
	startOperation  = "start"
	updateOperation = "update"
	deleteOperation = "delete"
)

// operation is a task of the vCenter, and what it is about. Its text is its id, which
// says after a restart what is left to do.
type operation struct {
	kind, task string
	// server is the id of the VM.
	server string
	// folder is the one that a deletion may leave empty.
	folder string
	// request is the digest of what a create asks for; empty in ids of older versions.
	request string
}

// creates reports whether it is a create.
func (o operation) creates() bool { return o.kind == createOperation || o.kind == startOperation }

func (o operation) String() string {
	return strings.TrimSuffix(strings.Join([]string{o.kind, o.task, o.server, o.folder + o.request}, "/"), "/")
}

// parseOperation reads an id. It reports false if it is of no operation.
func parseOperation(id string) (operation, bool) {
	parts := strings.Split(id, "/")
	if len(parts) == 3 {
		parts = append(parts, "")
	}
	if len(parts) != 4 || parts[1] == "" || parts[2] == "" {
		return operation{}, false
	}
	o := operation{kind: parts[0], task: parts[1], server: parts[2]}
	if o.creates() {
		o.request = parts[3]
	} else {
		o.folder = parts[3]
	}
	return o, o.creates() || o.kind == updateOperation || o.kind == deleteOperation
}
