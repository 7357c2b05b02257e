package openstack

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxReason bounds a reason of the cloud, in runes.
const maxReason = 512

// refuse returns the error of a call that was not sent.
func refuse(op string, kind cloud.Kind, format string, args ...any) *cloud.Error {
	return &cloud.Error{Kind: kind, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// asError keeps a nil *cloud.Error from becoming an error that is not nil.
func asError(err *cloud.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// quote bounds what people typed, for an op.
func quote(text string) string { return fmt.Sprintf("%q", transport.Truncate(text, 128)) }

// listText lists some names.
func listText(names []string) string {
	const most = 8
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return transport.Truncate(transport.Printable(strings.Join(names, ", ")), maxReason)
}

// unreadable is the error of an answer that cannot be understood. The call may have
// taken effect.
func unreadable(call *call, detail string) *cloud.Error {
	return &cloud.Error{Kind: cloud.Unreadable, Op: call.op, Detail: detail, Uncertain: call.changes()}
}

// misconfigured returns err, as an error of the spec if it says that what the field names
// does not exist. Tenants do not see what else there is.
func misconfigured(field string, err *cloud.Error) *cloud.Error {
	if err != nil && err.Kind == cloud.Rejected {
		err.Kind, err.Detail = cloud.Misconfigured, "spec.openstack."+field+": "+err.Detail
	}
	return err
}

// media describes the body of an answer.
func media(header http.Header) string {
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); kind == "" {
		return "a body without a content type"
	}
	return transport.Truncate(transport.Printable(kind), 64)
}
