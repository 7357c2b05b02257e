package openstack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// requestID matches the ids that services put into their messages.
var requestID = regexp.MustCompile(`(?i)\s*\(?(request-id:?\s*)?req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)?`)

// problem is what the body of a refusal says.
type problem struct {
	// code is the service's name for the failure, empty if the body is not the service's.
	code, message string
}

// problemIn reads the body of a refusal. Services name failures differently: compute
// {"itemNotFound": {"message", "code"}}, network {"NeutronError": {"type", "message"}},
// identity {"error": {"title", "message"}}, and image {"title", "message", "code"} with tags of HTML.
func problemIn(body []byte) problem {
	var document map[string]json.RawMessage
	if json.Unmarshal(body, &document) != nil {
		return problem{}
	}
	var flat struct{ Title, Message, Code string }
	if json.Unmarshal(body, &flat) == nil && flat.Title != "" && flat.Message != "" && flat.Code != "" {
		return problem{code: flat.Title, message: strings.TrimSpace(strings.ReplaceAll(flat.Message, "<br />", " "))}
	}
	for name, value := range document {
		var inner struct {
			Message, Type, Title string
		}
		if json.Unmarshal(value, &inner) != nil || inner.Message == "" {
			continue
		}
		switch name {
		case "NeutronError":
			name = inner.Type
		case "error":
			name = inner.Title
		}
		return problem{code: name, message: inner.Message}
	}
	return problem{}
}

// quota reports whether a refusal with a status is because the project has no room. The
// compute service has no code for that: it answers 403, and 413 in old releases. The block
// storage service answers 413.
func (p problem) quota(status int) bool {
	switch {
	case p.code == "OverQuota", p.code == "IpAddressGenerationFailure":
		return true // the network service's; a network has no free address, or the project no room
	case status == http.StatusForbidden && p.code == "forbidden", status == http.StatusRequestEntityTooLarge && p.code == "overLimit":
		return quotaExceeded(p.message)
	}
	return false
}

// usedUp matches what the compute and the block storage service say of a quota that is used up.
var usedUp = regexp.MustCompile(`(?i)quota exceeded|maximum number of ports exceeded|exceeded for quota|exceeds (allowed|available) \w+ quota|exceeds available quota`)

// quotaExceeded reports whether a message says that a quota is used up, and not, for instance,
// that a policy about quotas refuses the call.
func quotaExceeded(message string) bool { return usedUp.MatchString(message) }

// noHost reports whether a message of the compute service says that no host can take a
// server, which it has no code for.
func noHost(message string) bool {
	lower := strings.ToLower(message)
	return strings.Contains(lower, "no valid host was found") || strings.Contains(lower, "anti-affinity instance group policy was violated")
}

// classify returns what a refusal means for the call.
func (x *exchange) classify(call *call, status int, header http.Header, body []byte, token string) *cloud.Error {
	p := problemIn(body)
	if x.redactor.Redact(p.code, token) != p.code {
		p.code = ""
	}
	e := &cloud.Error{Op: call.op, Code: transport.Truncate(transport.Printable(p.code), 64), Kind: kindOf(call, status, p)}
	if lacks(call, status) {
		e.Kind = cloud.Unsupported
	}
	e.Uncertain = call.changes() && (status < 400 || status >= 500 || status == http.StatusRequestTimeout)
	if e.Kind == cloud.Throttled || status == http.StatusServiceUnavailable {
		e.RetryAfter = transport.RetryAfter(header, e.Kind == cloud.Throttled)
	}
	if e.Kind == cloud.Throttled && status != http.StatusTooManyRequests {
		x.transport.Hold(e.RetryAfter)
	}
	e.Detail = x.describe(call, e.Kind, status, header)
	switch reason := x.reason(p.message, token); {
	case reason == "":
	case e.Kind == cloud.Unauthorized, e.Kind == cloud.NotFoundUnproven:
		e.Detail += " (" + reason + ")"
	default:
		e.Detail = reason
	}
	return e
}

// lacks reports whether a refusal says that the service, or what runs the server, cannot do what the call asks for.
func lacks(call *call, status int) bool {
	switch call.about {
	case aboutRouters:
		return slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, status)
	case aboutConsole:
		return status == http.StatusNotImplemented
	default:
		return false
	}
}

// reason returns a message of the cloud in a form for people: one line of bounded
// length, without secrets and ids of requests.
func (x *exchange) reason(message, token string) string {
	message = requestID.ReplaceAllString(transport.Printable(message), "")
	return transport.Truncate(x.redactor.Redact(message, token), maxReason)
}

// kindOf returns what status and body together mean for the call.
func kindOf(call *call, status int, p problem) cloud.Kind {
	switch {
	case status == http.StatusUnauthorized:
		return cloud.Unauthorized
	case status == http.StatusTooManyRequests:
		return cloud.Throttled
	case status >= 500, status < 400, status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return cloud.Unavailable
	case status != http.StatusNotFound && call.changes() && p.quota(status):
		return cloud.Quota
	case status == http.StatusBadRequest && p.code == "badRequest" && call.changes() && noHost(p.message):
		return cloud.NoHost
	}
	return kindOfStatus(call, status, p)
}

// kindOfStatus returns what a refusal means for the call whose body does not decide that alone.
func kindOfStatus(call *call, status int, p problem) cloud.Kind {
	switch status {
	case http.StatusNotFound:
		return notFound(call, p)
	case http.StatusForbidden:
		if call.cloudWide() {
			return cloud.Unauthorized
		}
		return cloud.Forbidden
	case http.StatusRequestEntityTooLarge:
		return overLimit(call, p)
	case http.StatusConflict:
		switch {
		case call.about == aboutNetwork:
			return cloud.Conflict
		case p.code == "AddressPairAndPortSecurityRequired":
			return cloud.Rejected // the network has no port security
		case call.about == aboutCreate && strings.Contains(p.message, "already exists"):
			return cloud.Taken // where the administrator has nova keep names unique
		}
		return cloud.Busy
	case http.StatusPreconditionFailed, http.StatusLocked:
		return cloud.Busy // somebody else changed the object meanwhile, or has locked it
	default:
		return cloud.Rejected
	}
}

// overLimit returns what a 413 means: compute answered so before 429, and the block storage service does so for quotas, whose names the
// administrator chooses, and for limits of a volume.
func overLimit(call *call, p problem) cloud.Kind {
	switch {
	case call.service != volume, p.code != "overLimit", strings.Contains(p.message, "rate-limited"):
		return cloud.Throttled
	case strings.Contains(p.message, "maximum allowed limit"):
		return cloud.Rejected
	}
	return cloud.Quota
}

// notFound returns what a 404 means. Only the service's own code proves that it is about
// the object: a proxy answers 404 too, and so does a service that lacks the path.
func notFound(call *call, p problem) cloud.Kind {
	switch call.about {
	case aboutServer, aboutNetwork, aboutVolume, aboutConsole:
		if p.code == "itemNotFound" || (strings.HasSuffix(p.code, "NotFound") && p.code != "HTTPNotFound") {
			return cloud.NotFound
		}
		return cloud.NotFoundUnproven
	case aboutImage:
		// The service answers so for a path that it lacks, too, but then names no image.
		if p.code == "Not Found" && strings.Contains(p.message, path.Base(call.path)) {
			return cloud.NotFound
		}
		return cloud.NotFoundUnproven
	case aboutSession:
		if p.code != "" {
			return cloud.NotFound
		}
	case aboutCreate, aboutReach, aboutNewVolume:
		if p.code != "" {
			return cloud.Rejected // something that the request names does not exist
		}
	default:
	}
	return cloud.Unreadable
}

// describe returns the text for an answer in which the cloud gave no reason.
func (x *exchange) describe(call *call, kind cloud.Kind, status int, header http.Header) string {
	text := strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
	switch {
	case status >= 300 && status < 400:
		return fmt.Sprintf("the %s service answered %s, which is not followed", call.service, text)
	case kind == cloud.Unauthorized && status == http.StatusForbidden:
		return "the credentials lack a right: see the role in docs/openstack.md"
	case kind == cloud.Unauthorized:
		return x.advice
	case kind == cloud.NotFoundUnproven, kind == cloud.Unreadable:
		return fmt.Sprintf("an answer that may not be the %s service's own: %s, %s", call.service, text, media(header))
	default:
		return fmt.Sprintf("the %s service answered %s", call.service, text)
	}
}
