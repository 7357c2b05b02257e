package testkit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// auditPolicy is an audit policy that logs all requests of one user.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [%q]
`

// Request is one request of the audited user.
type Request struct {
	Verb   string `json:"verb"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// Allowed reports whether the API server authorized the request.
func (r Request) Allowed() bool { return r.Annotations["authorization.k8s.io/decision"] == "allow" }

// Resource returns the resource of the request as RBAC names it.
func (r Request) Resource() string {
	if r.Object.Subresource == "" {
		return r.Object.Resource
	}
	return r.Object.Resource + "/" + r.Object.Subresource
}

// audit makes the API server log the requests of a user.
func (e *Env) audit(user string, apiServer *envtest.APIServer) error {
	policy := filepath.Join(e.folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, user), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	apiServer.Configure().Set("audit-policy-file", policy).Set("audit-log-path", e.auditLog()).Set("audit-log-maxsize", "4096")
	return nil
}

func (e *Env) auditLog() string { return filepath.Join(e.folder, "audit.log") }

// Audited returns the requests so far of the user of Options.Audit.
func (e *Env) Audited() (requests []Request, err error) {
	file, err := os.Open(e.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // there was no request
	}
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request Request
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return nil, fmt.Errorf("audit log, line %q: %w", lines.Text(), err)
		}
		requests = append(requests, request)
	}
	return requests, lines.Err()
}
