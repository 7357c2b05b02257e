package vsphere

import (
	"context"
	"errors"
	"strings"

	"github.com/go-logr/logr"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// faults says what errors and faults mean, and logs those of the vCenter.
type faults struct {
	transport *transport.Transport
	redactor  *transport.Redactor
	log       logr.Logger
}

// fail returns what the error of a request means for a call that does op.
func (f *faults) fail(ctx context.Context, op string, err error) *cloud.Error {
	if own, ok := errors.AsType[*cloud.Error](err); ok {
		e := *own
		e.Op = op
		return &e
	}
	if fault := faultOf(err); fault != nil {
		if exchange, ok := errors.AsType[*exchangeError](err); !ok || !exchange.sent {
			return f.refused(op, 1, fault, err.Error())
		}
	}
	if soap.IsSoapFault(err) {
		return refuse(op, cloud.Rejected, "the vCenter refuses it with a fault that the operator does not know")
	}
	e := f.unanswered(ctx, err)
	e.Op = op
	return e
}

// unanswered classifies an error of an exchange.
func (f *faults) unanswered(ctx context.Context, err error) *cloud.Error {
	_, syntax := errors.AsType[*xml.SyntaxError](err)
	_, element := errors.AsType[xml.UnmarshalError](err)
	if (syntax || element) && ctx.Err() == nil {
		return &cloud.Error{Kind: cloud.Unreadable, Detail: "the answer is no SOAP document: check whether spec.endpoint is that of a vCenter, such as https://vcenter.example.com/sdk"}
	}
	return f.transport.Classify(ctx, err)
}

// refused returns the error of a call that the vCenter refused. Its own message goes
// into the log alone, at a level: it may name hosts and datastores, which users do not
// know of.
func (f *faults) refused(op string, level int, fault types.BaseMethodFault, message string) *cloud.Error {
	code := codeOf(fault)
	kind, detail := meaningOf(fault)
	if detail == "" {
		detail = "the vCenter refuses it with the fault " + code
	}
	message = f.redactor.Redact(transport.Truncate(transport.Printable(message), maxText))
	f.log.V(level).Info("the vCenter refused a call", "call", op, "fault", code, "message", message)
	return &cloud.Error{Kind: kind, Op: op, Code: code, Detail: detail}
}

// violatesRule reports whether no host can run a VM, or none without violating a DRS rule.
func violatesRule(fault types.BaseMethodFault) bool {
	for range 10 { // bounds the chain of causes
		switch f := fault.(type) {
		case nil:
			return false
		case *types.RuleViolation, types.BaseNoCompatibleHost:
			return true
		default:
			cause := f.GetMethodFault().FaultCause
			if cause == nil {
				return false
			}
			fault = cause.Fault
		}
	}
	return false
}

// meaningOf returns the kind of a fault and, where the name of the fault says too
// little, a text for it.
func meaningOf(fault types.BaseMethodFault) (cloud.Kind, string) {
	code := codeOf(fault)
	switch f := fault.(type) {
	case *types.ManagedObjectNotFound:
		return cloud.NotFound, "the vCenter has no such " + f.Obj.Type
	case *types.DuplicateName, *types.AlreadyExists, *types.FileAlreadyExists:
		return cloud.Taken, "the folder has a VM of this name, or the datastore its files"
	case *types.InvalidName:
		return cloud.Prohibited, "the vCenter does not allow this name"
	case *types.InvalidArgument:
		return cloud.Rejected, "the vCenter does not accept the property " + quote(f.InvalidProperty)
	case *types.NotAuthenticated, *types.InvalidLogin:
		return cloud.Unauthorized, ""
	case *types.NoPermission:
		if f.PrivilegeId == "" {
			return cloud.Forbidden, "the operator's account lacks a privilege, and the vCenter does not say which: the administrator compares its role with docs/vsphere.md"
		}
		return cloud.Forbidden, "the operator's account lacks the privilege " + quote(f.PrivilegeId) + ": the administrator adds it to its role"
	case *types.RestrictedByAdministrator:
		return cloud.Forbidden, "an administrator of the vCenter has restricted it"
	case *types.CpuHotPlugNotSupported, *types.MemoryHotPlugNotSupported, *types.HotSnapshotMoveNotSupported:
		return cloud.NeedsStop, "the VM does not allow this change while it runs (" + code + ")"
	case *types.ToolsUnavailable:
		return cloud.GuestUnavailable, "VMware Tools do not run in the guest"
	case types.BaseTaskInProgress, types.BaseInvalidState, *types.ConcurrentAccess, *types.ResourceInUse, *types.ResourceNotAvailable,
		*types.FileLocked, *types.SnapshotLocked, *types.MethodDisabled: // a backup disables methods
		return cloud.Busy, "the vCenter works on the VM, or its state does not allow this now (" + code + ")"
	case types.BaseHostCommunication, *types.SystemError:
		return cloud.Unavailable, "the vCenter, or a host of it, cannot serve this now (" + code + ")"
	}
	switch {
	case violatesRule(fault):
		return cloud.NoHost, "no host can run the VM where its zone and its anti-affinity allow it (" + code + ")"
	case strings.HasPrefix(code, "Insufficient"), strings.HasPrefix(code, "NoDiskSpace"), strings.HasPrefix(code, "NumVirtualCpusExceedsLimit"),
		strings.HasPrefix(code, "MemorySizeNotRecommended"), code == "NotEnoughCpus", code == "NotEnoughLicenses", code == "InaccessibleDatastore":
		return cloud.Quota, "the vCenter has no room for it (" + code + ")"
	case strings.Contains(code, "Timedout"), code == "RequestCanceled":
		return cloud.Failed, "the vCenter did not finish it (" + code + ")"
	}
	return cloud.Rejected, ""
}

// failed is fail for an error that may be nil.
func (f *faults) failed(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return f.fail(ctx, op, err)
}

// ofTask returns why a task failed. That it met something that passes says nothing
// about the calls of this client.
func (f *faults) ofTask(op string, fault types.BaseMethodFault, message string) *cloud.Error {
	if fault == nil {
		return refuse(op, cloud.Failed, "the vCenter gives no reason")
	}
	e := f.refused(op, 0, fault, message)
	switch e.Kind {
	case cloud.Unauthorized, cloud.Throttled, cloud.Unavailable, cloud.NotFound, cloud.Busy:
		e.Kind = cloud.Failed
	default:
	}
	return e
}
