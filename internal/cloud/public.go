package cloud

import (
	"errors"
	"fmt"
	"regexp"
)

// publicTexts say of which kind a failure is, where the details concern the
// platform: endpoints, credentials, proxies and limits.
var publicTexts = map[Kind]string{
	NotFound:         "it does not exist in the cloud",
	NotFoundUnproven: "it does not exist in the cloud, or something in front of the cloud says so",
	Taken:            "the name is in use",
	KeyReused:        "its idempotency key belongs to a create with another content",
	Quota:            "the cloud has no capacity left",
	Misconfigured:    "the configuration of the cloud has to be corrected by its administrator",
	Unauthorized:     "the cloud refuses the operator's credentials",
	Untrusted:        "the certificate of the cloud cannot be verified",
	Throttled:        "the cloud or its limits allow no more requests now",
	Unavailable:      "the cloud does not answer or cannot serve requests",
	Unreadable:       "the answer of the cloud cannot be understood",
}

// PublicMessage returns what a user of the cloud may read of err: what was being
// done, and the cloud's reason if it is about the user's own request. Details that
// concern the platform, such as an endpoint, are left out: the Cloud's conditions
// have them. The cloud's reason is quoted without addresses, which a proxy or the
// cloud may put into it. For an error that is no *Error it returns the text of err.
func PublicMessage(err error) string {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return err.Error()
	}
	if text, platform := publicTexts[e.Kind]; platform {
		return fmt.Sprintf("%s: %s", e.Op, text)
	}
	quoted := *e
	if quoted.Detail == "" && quoted.Err != nil {
		quoted.Detail = quoted.Err.Error()
	}
	quoted.Detail = addresses.ReplaceAllString(quoted.Detail, "…")
	return quoted.Error()
}

// addresses are URLs, hosts with a port, IPv6 addresses in brackets, and names of
// Services of Kubernetes, which contain those of namespaces. Addresses without a port
// stay: those of a Network are the user's own.
var addresses = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s"'<>]+|\[[0-9a-f:.]*:[0-9a-f:.]*\](:\d+)?|` +
	`\b[a-z0-9_-]+(\.[a-z0-9_-]+)+:\d+\b|\b[a-z0-9-]+\.[a-z0-9-]+\.svc(\.[a-z0-9-]+)*\b`)

// Public returns an error with the text of PublicMessage. It wraps err, so that its
// Kind stays known.
func Public(err error) error { return publicError{err} }

type publicError struct{ err error }

func (e publicError) Error() string { return PublicMessage(e.err) }
func (e publicError) Unwrap() error { return e.err }
