package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// hostSize estimates the memory that a host takes beside its name, in bytes.
const hostSize = 128

// maxHostName bounds a host's name, in bytes: that of a DNS name.
const maxHostName = 253

// hostClient lists hosts.
type hostClient struct {
	calls        *calls
	capabilities *capabilityClient
	ignored      *ignored
}

// ListHosts returns all hosts.
func (h *hostClient) ListHosts(ctx context.Context) ([]cloud.Host, error) {
	call := &call{
		about: aboutCloud, method: http.MethodGet, route: "/hosts", path: "/hosts",
		limit: maxPage, op: "list hosts",
	}
	has, err := h.capabilities.neededBy(ctx, call.op)
	if err != nil {
		return nil, err
	}
	if err := require(call.op, has, cloud.Hosts); err != nil {
		return nil, err
	}
	var hosts []cloud.Host
	call.stream = func(got *answer, in *stream) (err *cloud.Error) {
		hosts, err = decodeHosts(call, got, in, h.ignored)
		return err
	}
	if _, err := h.calls.do(ctx, call); err != nil {
		return nil, err
	}
	return hosts, nil
}

// decodeHosts takes all hosts or none: one left out would look gone.
func decodeHosts(call *call, got *answer, in *stream, into *ignored) ([]cloud.Host, *cloud.Error) {
	r, hosts, names := newReader(into), []cloud.Host{}, map[string]bool{}
	_, err := (&list{noun: "hosts", array: true, element: func(n int, value []byte) error {
		host, err := r.host(value)
		if err == nil && names[host.Name] {
			err = errors.New("another has its name")
		}
		if err != nil {
			return unusable(fmt.Sprintf("host %d of the answer: %v", n, err))
		}
		names[host.Name] = true
		hosts = append(hosts, host)
		return r.kept.add(hostSize+len(host.Name), maxSmall)
	}}).read(call, got, in)
	if err != nil {
		return nil, err
	}
	return hosts, nil
}

// host reads a host. Only its name and whether it has a GPU are indispensable.
func (r *reader) host(data []byte) (cloud.Host, error) {
	var host cloud.Host
	var gpu []byte
	object := fields(data, func(field, value []byte) {
		switch string(field) {
		case "name":
			host.Name = ""
			if isText(value) {
				host.Name = unquote(value)
			}
		case "gpu":
			gpu = value
		case "availableHours":
			host.AvailableHours = r.count("availableHours", value)
		}
	})
	host.GPU = string(gpu) == "true"
	switch {
	case !object && !isNull(trim(data)):
		return host, errors.New("it is not an object")
	case !validHostName(host.Name):
		return host, fmt.Errorf("its name is empty, longer than %d bytes or not printable", maxHostName)
	case !host.GPU && string(gpu) != "false":
		return host, errors.New("it does not say whether it has a GPU")
	}
	return host, nil
}

func validHostName(name string) bool {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	return name != "" && len(name) <= maxHostName && !strings.ContainsFunc(name, odd)
}
