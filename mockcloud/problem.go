package mockcloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// The codes of problem bodies. They do not change.
const (
	CodeNameProhibited     = "nameProhibited"
	CodeNameTaken          = "nameTaken"
	CodeNotFound           = "notFound"
	CodeInvalid            = "invalid"
	CodeUnsupported        = "unsupported"
	CodeMethodNotAllowed   = "methodNotAllowed"
	CodeQuotaExceeded      = "quotaExceeded"
	CodeTemplateProhibited = "templateProhibited"
	CodeTemplateUnknown    = "templateUnknown"
	CodeZoneUnknown        = "zoneUnknown"
	CodeDiskTypeUnknown    = "diskTypeUnknown"

	CodeSecurityGroupUnknown   = "securityGroupUnknown"
	CodeExternalNetworkUnknown = "externalNetworkUnknown"
	CodeAddressInvalid         = "addressInvalid"
	CodeAddressInUse           = "addressInUse"
	CodeNoHost                 = "noHost"
	CodeKeyReused              = "keyReused"
	CodeKeyInProgress          = "keyInProgress"
	CodeUnauthorized           = "unauthorized"
	CodeRateLimited            = "rateLimited"
	CodeUnavailable            = "unavailable"
	CodeInvalidState           = "invalidState"
	CodeNeedsStop              = "needsStop"
	CodeAttached               = "attached"
	CodeGuestUnavailable       = "guestUnavailable"
	CodeTokenExpired           = "tokenExpired"
	CodeInternal               = "internal"
)

// Problem is the body of every error response (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`
}

func (p *Problem) Error() string {
	return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail)
}

func problem(status int, code, format string, args ...any) *Problem {
	return &Problem{
		Type:   "urn:privatecloud:problem:" + code,
		Title:  http.StatusText(status),
		Status: status,
		Detail: fmt.Sprintf(format, args...),
		Code:   code,
	}
}

func invalid(format string, args ...any) *Problem {
	return problem(http.StatusBadRequest, CodeInvalid, format, args...)
}

func unsupported(what string) *Problem {
	return problem(http.StatusBadRequest, CodeUnsupported, "this cloud does not support %s", what)
}

func notFound(what, id string) *Problem {
	return problem(http.StatusNotFound, CodeNotFound, "no such %s: %q", what, id)
}

// codeOf returns the code for a response of a fault with this status.
func codeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return CodeUnauthorized
	case http.StatusNotFound:
		return CodeNotFound
	case http.StatusMethodNotAllowed:
		return CodeMethodNotAllowed
	case http.StatusGone:
		return CodeTokenExpired
	case http.StatusTooManyRequests:
		return CodeRateLimited
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return CodeUnavailable
	}
	if status < 500 {
		return CodeInvalid
	}
	return CodeInternal
}

func writeProblem(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*Problem](err)
	if !ok {
		p = problem(http.StatusInternalServerError, CodeInternal, "%v", err)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

func writeJSON(w http.ResponseWriter, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
	return nil
}
