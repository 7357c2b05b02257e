package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// kindOfCode is what the codes of problem documents mean for every call.
// The meaning of notFound depends on the call; see kindOf.
var kindOfCode = map[string]cloud.Kind{
	"nameProhibited":     cloud.Prohibited,
	"nameTaken":          cloud.Taken,
	"keyReused":          cloud.KeyReused,
	"quotaExceeded":      cloud.Quota,
	"noHost":             cloud.NoHost,
	"zoneUnknown":        cloud.Rejected,
	"diskTypeUnknown":    cloud.Rejected,
	"addressInvalid":     cloud.Rejected,
	"addressInUse":       cloud.Rejected,
	"invalid":            cloud.Rejected,
	"unsupported":        cloud.Rejected,
	"templateProhibited": cloud.Rejected,
	"templateUnknown":    cloud.Rejected,
	"invalidState":       cloud.Busy,
	"needsStop":          cloud.NeedsStop,
	"guestUnavailable":   cloud.GuestUnavailable,
	"attached":           cloud.Conflict,
	"unauthorized":       cloud.Unauthorized,
	"rateLimited":        cloud.Throttled,
	"unavailable":        cloud.Unavailable,
}

// classifier decides what answers mean.
type classifier struct {
	scrubber *scrubber
	// transport holds requests where an answer asks for it.
	transport *transport.Transport
	// advice is what to check when the cloud refuses the credentials.
	advice string
}

// classify returns what an answer means for the call: nil for a success, the
// body of which is still to be decoded.
func (c *classifier) classify(call *call, got *answer, token string) *cloud.Error {
	if accepts(call, got) {
		return nil
	}
	problem := got.problem()
	if c.scrubber.redactor.Redact(problem.Code, token) != problem.Code {
		problem.Code = ""
	}
	e := &cloud.Error{Op: call.op, Code: problem.Code}
	e.Kind = kindOf(call, got, problem.Code)
	e.Uncertain = call.changes() && mayHaveTakenEffect(got.status)
	if kind, about := aboutKey(call, got.status, problem); about {
		e.Kind, e.Uncertain = kind, kind == cloud.Busy
	}
	e.RetryAfter = c.retryAfter(e.Kind, got)
	e.Detail = c.describe(e.Kind, got)
	switch reason := c.scrubber.reasonOf(problem, got.header, token, call.id); {
	case reason == "":
	case e.Kind == cloud.Unauthorized, e.Kind == cloud.NotFoundUnproven, e.Kind == cloud.Unreadable, got.status == http.StatusPaymentRequired:
		e.Detail += " (" + reason + ")"
	default:
		e.Detail = reason
	}
	return e
}

// retryAfter returns how long the cloud asks to wait, 0 if it does not. The
// transport holds requests for that time when it sees status 429 or 503. It
// cannot see the code of a problem document.
func (c *classifier) retryAfter(kind cloud.Kind, got *answer) time.Duration {
	if kind != cloud.Throttled && got.status != http.StatusServiceUnavailable {
		return 0
	}
	wait := transport.RetryAfter(got.header, kind == cloud.Throttled)
	if kind == cloud.Throttled && got.status != http.StatusTooManyRequests {
		c.transport.Hold(wait)
	}
	return wait
}

// accepts reports whether the answer is a success of this call. A page of HTML
// never is: portals and proxies answer 200 too.
func accepts(call *call, got *answer) bool {
	if got.html() {
		return false
	}
	switch got.status {
	case http.StatusOK:
		return true
	case http.StatusCreated:
		return call.method == http.MethodPost
	case http.StatusAccepted:
		return call.changes()
	case http.StatusNoContent:
		return call.method == http.MethodDelete || call.about == aboutName
	default:
		return false
	}
}

// mayHaveTakenEffect reports whether a request with an answer of this status may
// have taken effect: only a refusal by the cloud itself proves that it did not.
func mayHaveTakenEffect(status int) bool {
	return status < 400 || status >= 500 || status == http.StatusRequestTimeout
}

// kindOf returns what status and code together mean.
func kindOf(call *call, got *answer, code string) cloud.Kind {
	switch status := got.status; {
	case status >= 500:
		return cloud.Unavailable
	case status == http.StatusUnauthorized:
		return cloud.Unauthorized
	case status == http.StatusTooManyRequests:
		return cloud.Throttled
	case status >= 300 && status < 400,
		status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout, status == http.StatusTooEarly,
		status == http.StatusMisdirectedRequest:
		return cloud.Unavailable
	case status < 400, got.html() && !missing(status):
		return cloud.Unreadable
	}
	if kind, known := meaningOf(call, code); known {
		return kind
	}
	switch got.status {
	case http.StatusForbidden:
		return forbidden(call, code)
	case http.StatusPaymentRequired:
		return cloud.Forbidden
	case http.StatusNotFound, http.StatusGone:
		return notFound(call, code)
	case http.StatusConflict:
		if call.about == aboutName || call.about == aboutCreate {
			return cloud.Taken
		}
		if call.about == aboutServer || call.about == aboutSnapshot || call.about == aboutConsole {
			return cloud.Busy
		}
		return cloud.Conflict
	case http.StatusLocked, http.StatusPreconditionFailed, http.StatusFailedDependency:
		return cloud.Busy
	default:
		return cloud.Rejected
	}
}

// meaningOf returns what a code means for the call, and whether it is known. Consoles are all that one server can lack.
func meaningOf(call *call, code string) (kind cloud.Kind, known bool) {
	if call.about == aboutConsole && code == "unsupported" {
		return cloud.Unsupported, true
	}
	kind, known = kindOfCode[code]
	return kind, known
}

// forbidden returns what a 403 without a known code means. The core profile has no codes, and
// answers so for a prohibited name. For a call about one server or network it is about
// that object alone: if the credentials were at fault, the listing, which is about the
// cloud as a whole, would get a 403 too.
func forbidden(call *call, code string) cloud.Kind {
	switch {
	case call.about == aboutName && code == "":
		return cloud.Prohibited
	case call.cloudWide():
		return cloud.Unauthorized
	default:
		return cloud.Forbidden
	}
}

// missing reports whether the status says that there is nothing here.
func missing(status int) bool { return status == http.StatusNotFound || status == http.StatusGone }

// notFound returns what a 404 means. Only its code proves that it is the cloud's
// own: an ingress without a backend answers 404 too. What the code does not prove,
// a complete listing does.
func notFound(call *call, code string) cloud.Kind {
	switch {
	case slices.Contains([]subject{aboutServer, aboutNetwork, aboutSnapshot, aboutOperation, aboutConsole}, call.about):
		if code == "notFound" {
			return cloud.NotFound
		}
		return cloud.NotFoundUnproven
	case call.about == aboutCreate && code != "":
		// Something that the request names does not exist.
		return cloud.Rejected
	default:
		return cloud.Unreadable
	}
}

// describe returns the text for an answer in which the cloud gave no reason.
func (c *classifier) describe(kind cloud.Kind, got *answer) string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", got.status, http.StatusText(got.status)))
	switch {
	case got.status >= 300 && got.status < 400:
		if got.target == "" {
			return fmt.Sprintf("the cloud answered %s, which is not followed", status)
		}
		return fmt.Sprintf("the cloud redirects to %s, which is not followed: the client follows only redirects of a GET to the same scheme, host and port, at most three; set the Cloud's endpoint to the address of the API",
			transport.Truncate(transport.Printable(got.target), 128))
	case kind == cloud.Unauthorized:
		return c.advice
	case kind == cloud.NotFoundUnproven:
		return fmt.Sprintf("the answer %d without the code notFound (%s) may not be the cloud's own: a complete listing decides", got.status, kindOfBody(got))
	case missing(got.status) && kind == cloud.Unreadable:
		return fmt.Sprintf("an answer that is not the cloud's own (%d, %s): check the path of the Cloud's endpoint and the proxies in front of the cloud", got.status, kindOfBody(got))
	case got.status == http.StatusPartialContent && !got.html():
		return "the cloud answered " + status + ": a part of an answer is not used, since what it lacks would look deleted; check the proxies and caches in front of the cloud"
	case got.status < 300 && !got.html():
		return fmt.Sprintf("the cloud answered %s, which is no answer to this call (%s)", status, kindOfBody(got))
	case got.status == http.StatusPaymentRequired:
		return "the cloud answered " + status + ": it refuses until its provider is paid or grants more"
	case kind == cloud.Unreadable:
		return fmt.Sprintf("an answer that is not the cloud's own: %s, %s", status, kindOfBody(got))
	default:
		return "the cloud answered " + status
	}
}

func kindOfBody(got *answer) string {
	switch {
	case got.truncated:
		return "cut short"
	case len(got.body) == 0:
		return "empty"
	default:
		return kindOfMedia(got)
	}
}

func kindOfMedia(got *answer) string {
	media := got.media()
	if media == "" {
		return "without a content type"
	}
	return transport.Truncate(transport.Printable(media), 64)
}
