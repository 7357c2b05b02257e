// Package vsphere is a cloud.Client of the SOAP API of a vCenter, on govmomi. All
// requests go through the transport chain of internal/cloud/transport.
//
// A server is a VM below the configured folder that is no template. Its id is the
// instance UUID, which survives a change of the VM's place in the inventory. The
// clone sets it, derived from the idempotency key, together with the owner's mark:
// keys of the VM's extraConfig. Of all creates with one key, name and folder, at most
// one makes a VM: names are unique in a folder, which vCenter enforces, and the mark
// says whose VM has the name.
//
// Calls that take time are answered with the vCenter's task as the operation.
package vsphere
