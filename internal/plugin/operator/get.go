package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
)

const (
	// timeout bounds a request. A list of all servers of a cloud takes the longest.
	timeout = time.Minute
	// maxError bounds what is read of an answer that is no success, in bytes.
	maxError = 64 << 10
)

// upgrade is what to do if the operator has no diagnostics endpoint.
const upgrade = "upgrade the operator to the version of this plugin, or start it with --diagnostics-bind-address=127.0.0.1:8082"

// Error is an answer of a manager that is no success.
type Error struct {
	// Reason is one of package wire.
	Reason  string
	Message string
}

func (e *Error) Error() string { return e.Message }

// reason returns the Reason of an error, empty for any other.
func reason(err error) string {
	if answered, ok := errors.AsType[*Error](err); ok {
		return answered.Reason
	}
	return ""
}

// worse returns the error that says more of why no manager answers for a Cloud: of replicas
// that do not lead and managers that have other Clouds, there are always some.
func worse(a, b error) error {
	rank := func(err error) int {
		switch {
		case err == nil:
			return 0
		case reason(err) == wire.NotLeading:
			return 1
		case reason(err) == wire.NotFound:
			return 2
		}
		return 3
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

var httpClient = &http.Client{
	Timeout: timeout,
	// A redirect would lead away from the operator.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{}, // without a proxy: all addresses are of this machine
}

// get returns the body of a success. Close it.
func (m *manager) get(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base.String()+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask the operator (%s): %w", m.name, err)
	}
	response, err := httpClient.Do(request)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &Error{Message: fmt.Sprintf("the operator (%s) does not serve diagnostics: %s", m.name, upgrade)}
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	var answered wire.Error
	err = json.NewDecoder(io.LimitReader(response.Body, maxError)).Decode(&answered)
	if err != nil || answered.Reason == "" {
		return nil, &Error{Message: fmt.Sprintf("the operator (%s) answers %s, which is not its diagnostics endpoint: %s", m.name, response.Status, upgrade)}
	}
	if answered.Reason == wire.NotLeading {
		answered.Message = "no pod of the operator leads now: try again in a minute; if that does not help, see docs/alerts/NoLeader.md"
	}
	return nil, &Error{Reason: answered.Reason, Message: answered.Message}
}

func (m *manager) read(ctx context.Context, path string, into any) error {
	body, err := m.get(ctx, path)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(into); err != nil {
		return unreadable(m.name, err)
	}
	return nil
}

func unreadable(manager string, err error) error {
	return &Error{Message: fmt.Sprintf("the answer of the operator (%s) cannot be read (%v): try again; if that does not help, %s", manager, err, upgrade)}
}

// readServers reads wire.Servers, and passes its servers on one after the other. Its field
// servers is the last.
func readServers(from *json.Decoder, each func(wire.Server) error) (wire.Servers, error) {
	var head wire.Servers
	fields := map[string]any{"cloud": &head.Cloud, "listedAt": &head.ListedAt, "counts": &head.Counts}
	if _, err := from.Token(); err != nil {
		return head, unreadable("servers", err)
	}
	for from.More() {
		name, err := from.Token()
		if err != nil {
			return head, unreadable("servers", err)
		}
		key, _ := name.(string)
		if key == "servers" {
			return head, readEach(from, each)
		}
		into, known := fields[key]
		if !known {
			into = &json.RawMessage{}
		}
		if err := from.Decode(into); err != nil {
			return head, unreadable("servers", err)
		}
	}
	return head, unreadable("servers", io.ErrUnexpectedEOF)
}

// readEach reads an array, and the end of the object that it is in: an answer that was cut
// must not look complete.
func readEach(from *json.Decoder, each func(wire.Server) error) error {
	if _, err := from.Token(); err != nil {
		return unreadable("servers", err)
	}
	for from.More() {
		var server wire.Server
		if err := from.Decode(&server); err != nil {
			return unreadable("servers", err)
		}
		if err := each(server); err != nil {
			return err
		}
	}
	for range 2 {
		if _, err := from.Token(); err != nil {
			return unreadable("servers", err)
		}
	}
	return nil
}
