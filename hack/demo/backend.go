package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// backend is a cloud that the demo runs on.
type backend interface {
	// title names the cloud in messages. program is its binary, which logs its URLs, and
	// args are its arguments.
	title() string
	program() string
	args() []string
	// samples is the folder of the kustomization that the demo applies, and refused has a
	// VM whose name the cloud refuses.
	samples() string
	refused() string
	expected() expectations
	// addServers creates the servers of the Nodes.
	addServers(ctx context.Context, s *stack) error
	// managerArgs are arguments of the operator, and connect makes it use the cloud.
	managerArgs(s *stack) []string
	connect(ctx context.Context, s *stack) error
	// showRefusal applies refused.
	showRefusal(ctx context.Context, s *stack) error
	// changeByHand changes the cloud without the operator, waits until the status shows
	// it, and returns how many servers it deleted.
	changeByHand(ctx context.Context, s *stack) (deleted int, err error)
	// check compares the cloud with the expected numbers of created and remaining servers
	// and networks.
	check(ctx context.Context, s *stack, created, left counts) error
	// guide returns commands to try in a second terminal, with the arguments kubeconfig,
	// URL of the admin endpoints, and assignment of PATH.
	guide() string
}

// backends are the clouds by the value of --cloud.
var backends = map[string]backend{mockName: mock{}, vsphereName: vsphere{}}

func backendNames() string { return strings.Join(slices.Sorted(maps.Keys(backends)), " or ") }

// callAdmin calls an admin endpoint of the cloud. body is sent as JSON unless it is nil,
// and the answer is decoded into into unless it is nil.
func (s *stack) callAdmin(ctx context.Context, method, path string, body, into any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return fmt.Errorf("calling the %s: %w", s.on.title(), err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, s.adminURL+path, &sent)
	if err != nil {
		return fmt.Errorf("calling the %s: %w", s.on.title(), err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("calling the %s: %w", s.on.title(), err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the %s answered %s %s with %s", s.on.title(), method, path, response.Status)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	return nil
}
