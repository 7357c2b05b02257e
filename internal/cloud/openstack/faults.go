package openstack

import (
	"regexp"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxFault bounds what is kept of a fault, in runes.
const maxFault = 256

// masked are parts of faults that users do not see: ids and times, which differ between
// tries, and URLs, paths, addresses and names of files, modules and machines, which are the
// platform's.
var masked = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`[a-z][a-z0-9+.-]*://[^\s"'<>]+`,
	`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`,
	`\b[0-9a-f]{32}\b`,
	`\binstance-[0-9a-f]{8}\b`,
	`\b\d{4}-\d{2}-\d{2}[t ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(z|[+-]\d{2}:?\d{2})?`,
	`(/[\w.+@-]+){2,}`,
	`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b`,
	`\[?\b[0-9a-f]{0,4}(:[0-9a-f]{0,4}){3,}\b\]?`,
	`\b[a-z0-9_-]+(\.[a-z0-9_-]+)*\.[a-z][a-z0-9_-]*(:\d+)?\b`,
}, "|"))

// machine matches what may be the name of a machine: the word after a noun for one.
var machine = regexp.MustCompile(`(?i)\b(hosts?|nodes?|hypervisors?|cells?)([ :=]+)(["'(\[]*)([^\s"')\]]+)`)

// noMachine are words that follow such a noun in the messages of compute.
var noMachine = strings.Fields("a after aggregate aggregates an and are as at available because but by can cannot capabilities capacity could did do " +
	"does during failed failure fits for found from had has have id if in is it name not of on or resources state states that the this to type was were when " +
	"which while will with within without would")

// publicFault returns the message of a fault as users may read it: one line of bounded length.
func (x *exchange) publicFault(message string) string {
	if message == "" {
		return ""
	}
	message = masked.ReplaceAllString(x.reason(message, ""), "…")
	message = machine.ReplaceAllStringFunc(message, func(match string) string {
		part := machine.FindStringSubmatch(match)
		word := strings.TrimRight(part[4], ".,;:")
		if slices.Contains(noMachine, strings.ToLower(word)) {
			return match
		}
		return part[1] + part[2] + part[3] + "…" + strings.TrimPrefix(part[4], word)
	})
	return transport.Truncate(message, maxFault)
}

// fault returns why a server is in error, as far as the cloud says.
func (s *server) fault(op string) *cloud.Error {
	e := &cloud.Error{Kind: cloud.Failed, Op: op, Detail: s.Fault.Message}
	switch {
	case quotaExceeded(s.Fault.Message):
		e.Kind = cloud.Quota
	case noHost(s.Fault.Message):
		e.Kind = cloud.NoHost
	}
	if e.Detail == "" {
		e.Detail = "the cloud reports the server in status " + transport.Truncate(transport.Printable(s.Status), 64)
	}
	return e
}
