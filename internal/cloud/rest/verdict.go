package rest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// kindOfCode is what the codes of problem documents mean, whatever the call.
// notFound depends on the call; see kindOf.
var kindOfCode = map[string]cloud.Kind{
	"nameProhibited":     cloud.Prohibited,
	"nameTaken":          cloud.Taken,
	"keyReused":          cloud.KeyReused,
	"quotaExceeded":      cloud.Quota,
	"invalid":            cloud.Rejected,
	"unsupported":        cloud.Rejected,
	"templateProhibited": cloud.Rejected,
	"templateUnknown":    cloud.Rejected,
	"invalidState":       cloud.Conflict,
	"attached":           cloud.Conflict,
	"unauthorized":       cloud.Unauthorized,
	"rateLimited":        cloud.Throttled,
	"unavailable":        cloud.Unavailable,
}

// verdict says what an answer means for the call: nil when it is the one that
// was hoped for. The body of such an answer is still to be decoded.
func (c *Client) verdict(call *call, got *answer, token string) *cloud.Error {
	if accepts(call, got) {
		return nil
	}
	problem := got.problem()
	if c.redact(problem.Code, token) != problem.Code {
		problem.Code = ""
	}
	e := &cloud.Error{Op: call.op, Status: got.status, Code: problem.Code}
	e.Kind = c.kindOf(call, got, problem.Code)
	e.Uncertain = call.changes() && inconclusive(got.status)
	e.Detail = c.explain(e, got)
	if reason := c.reasonOf(problem, got.header, token, call.id); reason != "" {
		e.Detail = reason
		if e.Kind == cloud.Unauthorized {
			e.Detail = c.advice() + " (" + reason + ")"
		}
	}
	return e
}

// accepts tells whether the status is a success of this call. A page of HTML
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

// inconclusive tells whether a request that was answered like this may have
// taken effect: only a refusal that the cloud itself makes says that it did not.
func inconclusive(status int) bool {
	return status < 400 || status >= 500 || status == http.StatusRequestTimeout
}

// kindOf weighs status and code.
func (c *Client) kindOf(call *call, got *answer, code string) cloud.Kind {
	switch status := got.status; {
	case status >= 500:
		return cloud.Unavailable
	case status == http.StatusUnauthorized:
		return cloud.Unauthorized
	case status == http.StatusTooManyRequests:
		return cloud.Throttled
	case status >= 300 && status < 400,
		status == http.StatusProxyAuthRequired, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return cloud.Unavailable
	case status < 400, got.html():
		return cloud.Unreadable
	}
	if kind, known := kindOfCode[code]; known {
		return kind
	}
	switch got.status {
	case http.StatusForbidden:
		return forbidden(call)
	case http.StatusNotFound:
		return c.missing(call, got, code)
	case http.StatusConflict:
		if call.about == aboutName || call.about == aboutCreate {
			return cloud.Taken
		}
		return cloud.Conflict
	default:
		return cloud.Rejected
	}
}

// forbidden is a 403 without a code. About one server or network it is taken as
// being about that alone: were the credentials at fault, the listing, which is about
// the cloud as a whole, would say so.
func forbidden(call *call) cloud.Kind {
	switch call.about {
	case aboutName:
		return cloud.Prohibited
	case aboutCreate, aboutServer, aboutNetwork:
		return cloud.Rejected
	default:
		return cloud.Unauthorized
	}
}

// missing is a 404. It makes servers and networks count as gone, so it must be the cloud's
// own: with its code where the cloud has codes, else JSON or empty. An ingress
// without a backend answers 404 too.
func (c *Client) missing(call *call, got *answer, code string) cloud.Kind {
	own := len(got.body) == 0 || got.json()
	if c.known().Has(cloud.Sizing) {
		own = code == "notFound"
	}
	switch {
	case got.cut || !own:
		return cloud.Unreadable
	case call.about == aboutServer, call.about == aboutNetwork:
		return cloud.NotFound
	case call.about == aboutCreate && code != "":
		// Something that the request names does not exist.
		return cloud.Rejected
	default:
		return cloud.Unreadable
	}
}

// explain is the text where the cloud gave no reason.
func (c *Client) explain(e *cloud.Error, got *answer) string {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", got.status, http.StatusText(got.status)))
	switch {
	case got.status >= 300 && got.status < 400:
		if got.target == "" {
			return fmt.Sprintf("the cloud answered %s, which is not followed", status)
		}
		return fmt.Sprintf("the cloud redirects to %s, which is not followed: redirects to another host or scheme, repeated ones, and those of changes never are; set the Cloud's endpoint to where the API is",
			truncate(printable(got.target), 128))
	case e.Kind == cloud.Unauthorized:
		return c.advice()
	case got.status == http.StatusNotFound && e.Kind == cloud.Unreadable:
		return fmt.Sprintf("an answer that is not the cloud's own (404, %s): check the path of the Cloud's endpoint and what stands before the cloud", kindOfBody(got))
	case e.Kind == cloud.Unreadable:
		return fmt.Sprintf("an answer that is not the cloud's own: %s, %s", status, kindOfBody(got))
	default:
		return "the cloud answered " + status
	}
}

func kindOfBody(got *answer) string {
	switch media := got.media(); {
	case got.cut:
		return "cut short"
	case len(got.body) == 0:
		return "empty"
	case media == "":
		return "without a content type"
	default:
		return truncate(printable(media), 64)
	}
}

// advice tells what to check when the credentials are refused.
func (c *Client) advice() string {
	switch {
	case c.credentials.session():
		return "the cloud refuses the credentials: check username and password in the Secret"
	case c.credentials.Token != "":
		return "the cloud refuses the token: check the key token of the Secret"
	default:
		return "the cloud wants credentials: name a Secret in spec.credentialsSecretRef"
	}
}
