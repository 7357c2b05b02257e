package vsphere

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxText bounds what is quoted of a text, in characters.
const maxText = 128

// refuse returns the error of a call that was not sent, or whose answer refuses it.
func refuse(op string, kind cloud.Kind, format string, args ...any) *cloud.Error {
	return &cloud.Error{Kind: kind, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// quote bounds what people typed.
func quote(text string) string {
	return fmt.Sprintf("%q", transport.Truncate(transport.Printable(text), maxText))
}

// fail returns what the error of a request means for a call that does op.
func (c *Client) fail(ctx context.Context, op string, err error) *cloud.Error {
	if own, ok := errors.AsType[*cloud.Error](err); ok {
		e := *own
		e.Op = op
		return &e
	}
	if fault := faultOf(err); fault != nil {
		if exchange, ok := errors.AsType[*exchangeError](err); !ok || !exchange.sent {
			return c.refused(op, 1, fault, err.Error())
		}
	}
	if soap.IsSoapFault(err) {
		return refuse(op, cloud.Rejected, "the vCenter refuses it with a fault that the operator does not know")
	}
	e := c.unanswered(ctx, err)
	e.Op = op
	return e
}

// unanswered classifies an error of an exchange.
func (c *Client) unanswered(ctx context.Context, err error) *cloud.Error {
	_, syntax := errors.AsType[*xml.SyntaxError](err)
	_, element := errors.AsType[xml.UnmarshalError](err)
	if (syntax || element) && ctx.Err() == nil {
		return &cloud.Error{Kind: cloud.Unreadable, Detail: "the answer is no SOAP document: check whether spec.endpoint is that of a vCenter, such as https://vcenter.example.com/sdk"}
	}
	return c.transport.Classify(ctx, err)
}

// readable fails answers that are not of the SOAP API, which govmomi would not classify.
func readable(next http.RoundTripper) http.RoundTripper {
	return httpRoundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		status := resp.StatusCode
		kind := resp.Header.Get("Content-Type")
		other := strings.Contains(kind, "html") || strings.Contains(kind, "json")
		if !other && (status == http.StatusOK || status == http.StatusInternalServerError) {
			return resp, nil
		}
		_ = resp.Body.Close()
		refusal := &cloud.Error{
			Kind: cloud.Unreadable, Code: strconv.Itoa(status),
			Detail: fmt.Sprintf("the answer, with HTTP status %d, is not of a vCenter's SOAP API: check whether spec.endpoint ends with /sdk", status),
		}
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			refusal.Kind = cloud.Unavailable
			refusal.Detail = fmt.Sprintf("the vCenter, or something in front of it, answers with HTTP status %d", status)
			refusal.RetryAfter = transport.RetryAfter(resp.Header, status == http.StatusTooManyRequests)
		}
		return nil, refusal
	})
}

// httpRoundTripper is a function that is an http.RoundTripper.
type httpRoundTripper func(*http.Request) (*http.Response, error)

func (f httpRoundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// faultOf returns the fault that the vCenter answered with, nil if it did not.
func faultOf(err error) types.BaseMethodFault {
	if err == nil {
		return nil
	}
	if fault, ok := errors.AsType[interface {
		error
		Fault() types.BaseMethodFault
	}](err); ok {
		return fault.Fault()
	}
	return nil
}

func notAuthenticated(err error) bool {
	_, ended := faultOf(err).(*types.NotAuthenticated)
	_, unclear := errors.AsType[*exchangeError](err)
	return ended && !unclear
}

// codeOf returns the name of a fault.
func codeOf(fault types.BaseMethodFault) string {
	if fault == nil || reflect.TypeOf(fault).Kind() != reflect.Pointer {
		return ""
	}
	return reflect.TypeOf(fault).Elem().Name()
}

// refused returns the error of a call that the vCenter refused. Its own message goes
// into the log alone, at a level: it may name hosts and datastores, which users do not
// know of.
func (c *Client) refused(op string, level int, fault types.BaseMethodFault, message string) *cloud.Error {
	code := codeOf(fault)
	kind, detail := meaningOf(fault)
	if detail == "" {
		detail = "the vCenter refuses it with the fault " + code
	}
	message = c.redactor.Redact(transport.Truncate(transport.Printable(message), maxText))
	c.log.V(level).Info("the vCenter refused a call", "call", op, "fault", code, "message", message)
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
