package openstack

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// renewBefore is how long before its end a token is renewed; a tenth of its life where
// that is less.
const renewBefore = 30 * time.Second

// grant is what a login yields.
type grant struct {
	token string
	// project is the id of the project that the token is for.
	project string
	// services are the services of the region by kind, with their base URLs.
	services map[service]string
	// microversion of the compute service.
	microversion string
	// renewAt is zero where the cloud gave no expiry.
	renewAt time.Time
}

// session is the token that the identity service gave.
type session struct {
	login *transport.Login

	mu      sync.Mutex
	current *grant
	// distrusted is the grant of a fresh login that a service refused, and until when
	// there is no other login because a service refuses it.
	distrusted      *grant
	distrustedUntil time.Time
	// closed is set when there is no further login, so that no token outlives the client.
	closed bool
}

// usable returns the grant, nil if a login is needed; stale is one that a service
// refused.
func (s *session) usable(stale *grant) (*grant, *cloud.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, refuse("", cloud.Unavailable, "the client is closed; another has replaced it")
	}
	if refused := s.login.Refused(); refused != nil {
		return nil, refused
	}
	if stale != nil && stale == s.distrusted && stale == s.current && time.Now().Before(s.distrustedUntil) {
		return nil, refuse("", cloud.Unauthorized, "%s", freshRefused)
	}
	if s.current == nil || s.current == stale || (!s.current.renewAt.IsZero() && !time.Now().Before(s.current.renewAt)) {
		return nil, nil
	}
	return s.current, nil
}

// freshRefused says that another login would not help.
const freshRefused = "a service of the cloud refuses tokens that its identity service has just issued: check its connection with the identity service"

// distrust records that a service refused a grant of a fresh login. Other services may
// accept it.
func (s *session) distrust(fresh *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.distrusted, s.distrustedUntil = fresh, time.Now().Add(transport.RefusalHolds)
}

// opened keeps what a login yields, nil if the credentials are refused.
func (s *session) opened(g *grant, refused *cloud.Error) {
	if refused == nil {
		s.login.Accept()
	} else {
		s.login.Refuse(refused)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = g
}

// close returns the token to revoke, empty if there is none.
func (s *session) close() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.current == nil {
		return ""
	}
	token := s.current.token
	s.current = nil
	return token
}

// grant returns a grant other than stale, and logs in where there is none. At most one
// call logs in at a time.
func (c *Client) grant(ctx context.Context, op string, stale *grant) (*grant, *cloud.Error) {
	got, refused := c.session.usable(stale)
	if got == nil && refused == nil {
		end, err := c.session.login.Begin(ctx)
		if err != nil {
			e := c.transport.Classify(ctx, err)
			e.Op = op
			return nil, e
		}
		defer end()
		// Another call may have logged in meanwhile.
		if got, refused = c.session.usable(stale); got == nil && refused == nil {
			got, refused = c.logIn(ctx)
			if refused == nil || refused.Kind == cloud.Unauthorized {
				c.session.opened(got, refused)
			}
		}
	}
	if refused != nil {
		e := *refused
		e.Op, e.Uncertain, e.Detail = op, false, "logging in: "+e.Detail
		return nil, &e
	}
	return got, nil
}

// logIn gets a token, and finds out where the services are and what the compute service
// can do. The caller has begun a login.
func (c *Client) logIn(ctx context.Context) (*grant, *cloud.Error) {
	opened := &tokens.CreateResult{}
	call := &call{
		about: aboutSession, service: identity, method: http.MethodPost, route: "identity/auth/tokens", path: "auth/tokens",
		op: "log in", body: c.login(), out: &opened.Body,
	}
	if call.body == nil {
		return nil, refuse(call.op, cloud.Unauthorized, "%s", c.credentialsAdvice())
	}
	got, err := c.exchange(ctx, call, &grant{services: map[service]string{identity: c.endpoint + "/"}})
	if err != nil {
		if cloud.Is(err, cloud.NotFound, cloud.Rejected, cloud.Forbidden) {
			// That an application credential does not exist is a 404.
			err.Kind, err.Detail = cloud.Unauthorized, c.credentialsAdvice()+" ("+err.Detail+")"
		}
		return nil, err
	}
	opened.Header = got.header
	result, err := c.granted(call, opened)
	if err != nil {
		return nil, err
	}
	if result.microversion, err = c.negotiate(ctx, result); err != nil {
		return nil, err
	}
	return result, nil
}

// login returns the body of a login; nil if gophercloud refuses the credentials.
func (c *Client) login() map[string]any {
	credentials := c.cfg.Credentials
	options := tokens.AuthOptions{
		ApplicationCredentialID: credentials.ApplicationCredentialID, ApplicationCredentialSecret: credentials.ApplicationCredentialSecret,
	}
	if credentials.Username != "" {
		options = tokens.AuthOptions{Username: credentials.Username, Password: credentials.Password, DomainName: c.cfg.Domain}
		options.Scope = tokens.Scope{ProjectName: c.cfg.Project, DomainName: c.cfg.Domain}
	}
	scope, err := options.ToTokenV3ScopeMap()
	if err != nil {
		return nil
	}
	body, err := options.ToTokenV3CreateMap(scope)
	if err != nil {
		return nil
	}
	return body
}

// granted reads the answer to a login.
func (c *Client) granted(call *call, opened *tokens.CreateResult) (*grant, *cloud.Error) {
	token, err := opened.ExtractToken()
	if err != nil || token.ID == "" {
		return nil, refuse(call.op, cloud.Unreadable, "the answer of the identity service has no token")
	}
	project, err := opened.ExtractProject()
	switch {
	case err != nil || project == nil || project.ID == "":
		return nil, refuse(call.op, cloud.Unauthorized, "the credentials are not for a project: the operator needs a token of one project")
	case c.cfg.Project != "" && project.Name != c.cfg.Project && project.ID != c.cfg.Project:
		return nil, refuse(call.op, cloud.Misconfigured, "the credentials are for project %s, and spec.openstack.project is %s: change one of them",
			quote(project.Name), quote(c.cfg.Project))
	}
	catalog, err := opened.ExtractServiceCatalog()
	if err != nil {
		return nil, refuse(call.op, cloud.Unreadable, "the answer of the identity service has no catalog of services")
	}
	services, failed := c.locate(call.op, catalog.Entries)
	if failed != nil {
		return nil, failed
	}
	got := &grant{token: token.ID, project: project.ID, services: services}
	// An expiry in the past comes from a wrong clock: the token is renewed on 401.
	if life := time.Until(token.ExpiresAt); !token.ExpiresAt.IsZero() && life > 0 {
		got.renewAt = token.ExpiresAt.Add(-min(renewBefore, life/10))
	}
	return got, nil
}

// credentialsAdvice returns what to check when the credentials are refused.
func (c *Client) credentialsAdvice() string {
	if c.cfg.Credentials.ApplicationCredentialID != "" {
		return "the cloud refuses the application credential: check applicationCredentialId and applicationCredentialSecret in the Secret"
	}
	return "the cloud refuses the credentials: check username and password in the Secret, and project and domain in spec.openstack"
}
