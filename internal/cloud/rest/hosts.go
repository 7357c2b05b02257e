package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

// maxHostName bounds a host's name, in bytes: that of a DNS name.
const maxHostName = 253

// wireHost is a host in the cloud's JSON.
type wireHost struct {
	Name           string    `json:"name"`
	GPU            *bool     `json:"gpu"`
	AvailableHours wireCount `json:"availableHours"`
}

// ListHosts returns all hosts.
func (c *Client) ListHosts(ctx context.Context) ([]cloud.Host, error) {
	call := &call{
		about: aboutCloud, method: http.MethodGet, route: "/hosts", path: "/hosts",
		limit: maxPage, op: "list hosts",
	}
	has, err := c.capabilitiesFor(ctx, call.op)
	if err != nil {
		return nil, err
	}
	if err := require(call.op, has, cloud.Hosts); err != nil {
		return nil, err
	}
	got, err := c.do(ctx, call)
	if err != nil {
		return nil, err
	}
	hosts, err := decodeHosts(call, got)
	return hosts, asError(err)
}

// decodeHosts takes all hosts or none: one left out would look gone.
func decodeHosts(call *call, got *answer) ([]cloud.Host, *cloud.Error) {
	var listing []wireHost
	if err := decode(call, got, &listing); err != nil {
		return nil, err
	}
	if listing == nil {
		return nil, unreadable(call, "the answer holds no list of hosts")
	}
	hosts := make([]cloud.Host, 0, len(listing))
	names := make(map[string]bool, len(listing))
	for i, w := range listing {
		switch {
		case !validHostName(w.Name):
			return nil, unreadable(call, fmt.Sprintf("host %d of the answer: its name is empty, longer than %d bytes or not printable", i+1, maxHostName))
		case w.GPU == nil:
			return nil, unreadable(call, fmt.Sprintf("host %d of the answer: it does not say whether it has a GPU", i+1))
		case names[w.Name]:
			return nil, unreadable(call, fmt.Sprintf("host %d of the answer: another has its name", i+1))
		}
		names[w.Name] = true
		hosts = append(hosts, cloud.Host{Name: w.Name, GPU: *w.GPU, AvailableHours: int(w.AvailableHours)})
	}
	return hosts, nil
}

func validHostName(name string) bool {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	return name != "" && len(name) <= maxHostName && !strings.ContainsFunc(name, odd)
}
