package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// auditPolicy logs all requests that can change an object.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
`

// leasePrefix is the prefix of the name of the operator's lease.
const leasePrefix = "private-cloud-operator."

// agent is the client that sent a request.
type agent string

const (
	operator  agent = "operator"
	bare      agent = "bare-loop"
	bench     agent = "bench"
	seed      agent = "seed-controller"
	apiServer agent = "kube-apiserver"
)

// agentOf returns the client of a User-Agent. An unknown one is the operator,
// which has several clients: for its lease, its events and its patches.
func agentOf(userAgent string) agent {
	for _, other := range []agent{bare, bench, seed, apiServer} {
		if strings.HasPrefix(userAgent, string(other)) {
			return other
		}
	}
	return operator
}

// entry is one line of the audit log.
type entry struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	// Received is the time of the request, Answered that of the response.
	Received time.Time `json:"requestReceivedTimestamp"`
	Answered time.Time `json:"stageTimestamp"`
}

// what returns the kind of write, such as "patch vms/status", and its status if it
// failed.
func (e entry) what() string {
	text := e.Verb + " " + e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		text += "/" + e.ObjectRef.Subresource
	}
	if e.ResponseStatus.Code >= 400 {
		text += fmt.Sprintf(" (answered %d)", e.ResponseStatus.Code)
	}
	return text
}

func (e entry) by(a agent) bool { return agentOf(e.UserAgent) == a }

func (e entry) event() bool { return e.ObjectRef.Resource == "events" }

// lease reports whether the write is to the lease of the leader, or an event about
// it.
func (e entry) lease() bool {
	return e.ObjectRef.Resource == "leases" || (e.event() && strings.HasPrefix(e.ObjectRef.Name, leasePrefix))
}

// auditLog reads the audit log of the API server.
type auditLog struct {
	path string
	read int64
}

// next returns the entries since the last call.
func (a *auditLog) next() ([]entry, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.NewSectionReader(file, a.read, 1<<62-a.read))
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	// The last line may be incomplete.
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	a.read += int64(len(data))
	return decodeEntries(data)
}

func decodeEntries(data []byte) ([]entry, error) {
	var entries []entry
	for line := range bytes.Lines(data) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log, line %q: %w", line, err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// writesOf returns the writes of a client, except those of a lease.
func writesOf(entries []entry, who agent) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return !e.by(who) || e.lease() })
}

// span returns the time from the first request that begins reports to the last
// response that ends reports.
func span(entries []entry, begins, ends func(entry) bool) time.Duration {
	var first, last time.Time
	for _, e := range entries {
		if begins(e) && (first.IsZero() || e.Received.Before(first)) {
			first = e.Received
		}
		if ends(e) && e.Answered.After(last) {
			last = e.Answered
		}
	}
	return last.Sub(first)
}

// untilQuiet waits until a client has written nothing but a lease for a time and
// returns the entries since the last call.
func (a *auditLog) untilQuiet(ctx context.Context, who agent, quiet time.Duration) ([]entry, error) {
	var all []entry
	last := time.Now()
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
		entries, err := a.next()
		all = append(all, entries...)
		if len(writesOf(entries, who)) > 0 {
			last = time.Now()
		}
		return time.Since(last) >= quiet, err
	})
	if err != nil {
		return all, fmt.Errorf("waiting for %s to write nothing for %s: %w", who, quiet, err)
	}
	return all, nil
}
