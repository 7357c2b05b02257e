package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/privatecloud/operator/internal/cloud"
)

// ReadConsole returns the last lines of what the console of a server printed.
func (s *serverClient) ReadConsole(ctx context.Context, serverID string, lines int) (string, error) {
	call, err := serverCall(http.MethodGet, serverID, "read the console of server ")
	if err != nil {
		return "", err
	}
	if err := cloud.CheckConsoleLines(call.op, lines); err != nil {
		return "", err
	}
	has, err := s.capabilities.neededBy(ctx, call.op)
	if err == nil {
		err = require(call.op, has, cloud.Console)
	}
	if err != nil {
		return "", err
	}
	call.about, call.route, call.path = aboutConsole, call.route+"/console", call.path+"/console"
	call.query = url.Values{"lines": {strconv.Itoa(lines)}}
	got, err := s.calls.do(ctx, call)
	if err != nil {
		return "", cloud.ConfirmNotFound(ctx, s, serverID, err)
	}
	text, err := decodeConsole(call, got)
	return cloud.LastOfConsole(text, lines), asError(err)
}

// decodeConsole reads what a console printed. A cloud may send more than it was asked for.
func decodeConsole(call *call, got *answer) (text string, failed *cloud.Error) {
	found := false
	failed = object(call, got, func(name, value []byte) {
		if string(name) == "output" {
			text, found = "", isText(value)
			if found {
				text = unquote(value)
			}
		}
	})
	if failed == nil && !found {
		failed = unreadable(call, "the answer holds no output of the console")
	}
	return text, failed
}
