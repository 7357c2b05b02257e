package openstack

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/utils"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// leastMicroversion of the compute service has tags in creates.
	leastMicroversion = 52
	// bestMicroversion is used where the compute service has it.
	bestMicroversion = 85
)

// auth has the token that the identity service gave, and logs in for another.
type auth struct {
	exchange    *exchange
	credentials Credentials
	// project is the name or id that the project must have; empty for any.
	project  string
	services locator
	login    *transport.Login

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
func (a *auth) usable(stale *grant) (*grant, *cloud.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, refuse("", cloud.Unavailable, "the client is closed; another has replaced it")
	}
	if refused := a.login.Refused(); refused != nil {
		return nil, refused
	}
	if stale != nil && stale == a.distrusted && stale == a.current && time.Now().Before(a.distrustedUntil) {
		return nil, refuse("", cloud.Unauthorized, "%s", freshRefused)
	}
	if a.current == nil || a.current == stale || (!a.current.renewAt.IsZero() && !time.Now().Before(a.current.renewAt)) {
		return nil, nil
	}
	return a.current, nil
}

// freshRefused says that another login would not help.
const freshRefused = "a service of the cloud refuses tokens that its identity service has just issued: check its connection with the identity service"

// distrust records that a service refused a grant of a fresh login. Other services may
// accept it.
func (a *auth) distrust(fresh *grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.distrusted, a.distrustedUntil = fresh, time.Now().Add(transport.RefusalHolds)
}

// opened keeps what a login yields, nil if the credentials are refused.
func (a *auth) opened(g *grant, refused *cloud.Error) {
	if refused == nil {
		a.login.Accept()
	} else {
		a.login.Refuse(refused)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.current = g
}

// grant returns a grant other than stale, and logs in where there is none. At most one
// call logs in at a time.
func (a *auth) grant(ctx context.Context, op string, stale *grant) (*grant, *cloud.Error) {
	got, refused := a.usable(stale)
	if got == nil && refused == nil {
		end, err := a.login.Begin(ctx)
		if err != nil {
			e := a.exchange.transport.Classify(ctx, err)
			e.Op = op
			return nil, e
		}
		defer end()
		// Another call may have logged in meanwhile.
		if got, refused = a.usable(stale); got == nil && refused == nil {
			got, refused = a.logIn(ctx)
			if refused == nil || refused.Kind == cloud.Unauthorized {
				a.opened(got, refused)
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
func (a *auth) logIn(ctx context.Context) (*grant, *cloud.Error) {
	opened := &tokens.CreateResult{}
	call := &call{
		about: aboutSession, service: identity, method: http.MethodPost, route: "identity/auth/tokens", path: "auth/tokens",
		op: "log in", out: &opened.Body,
	}
	first := &grant{services: map[service]string{identity: a.services.endpoint + "/"}}
	if given := a.credentials.Token; given != "" {
		// With a token, the identity service shows what it is for.
		call.method, call.header, first.token = http.MethodGet, map[string]string{"X-Subject-Token": given}, given
	} else if body := a.request(); body != nil {
		call.body = body
	} else {
		return nil, refuse(call.op, cloud.Unauthorized, "%s", a.exchange.advice)
	}
	got, err := a.exchange.send(ctx, call, first)
	if err != nil {
		if cloud.Is(err, cloud.NotFound, cloud.Rejected, cloud.Forbidden) {
			// That an application credential does not exist is a 404.
			err.Kind, err.Detail = cloud.Unauthorized, a.exchange.advice+" ("+err.Detail+")"
		}
		return nil, err
	}
	opened.Header = got.header
	result, err := a.granted(call, opened)
	if err != nil {
		return nil, err
	}
	if result.microversion, err = a.negotiate(ctx, result); err != nil {
		return nil, err
	}
	return result, nil
}

// request returns the body of a login; nil if gophercloud refuses the credentials.
func (a *auth) request() map[string]any {
	options := a.credentials.options()
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
func (a *auth) granted(call *call, opened *tokens.CreateResult) (*grant, *cloud.Error) {
	token, err := opened.ExtractToken()
	if err == nil && a.credentials.Token != "" {
		token.ID = a.credentials.Token
	}
	if err != nil || token.ID == "" {
		return nil, refuse(call.op, cloud.Unreadable, "the answer of the identity service has no token")
	}
	project, err := opened.ExtractProject()
	switch {
	case err != nil || project == nil || project.ID == "":
		return nil, refuse(call.op, cloud.Unauthorized, "the credentials are not for a project: the operator needs a token of one project")
	case a.project != "" && project.Name != a.project && project.ID != a.project:
		return nil, refuse(call.op, cloud.Misconfigured, "the credentials are for project %s, and spec.openstack.project is %s: change one of them",
			quote(project.Name), quote(a.project))
	case a.credentials.Password == "" && !a.credentials.projectIs(project):
		return nil, refuse(call.op, cloud.Misconfigured, "the credentials are for project %s in domain %s, and clouds.yaml names another one: change one of them",
			quote(project.Name), quote(project.Domain.Name))
	}
	catalog, err := opened.ExtractServiceCatalog()
	if err != nil {
		return nil, refuse(call.op, cloud.Unreadable, "the answer of the identity service has no catalog of services")
	}
	services, failed := a.services.locate(call.op, catalog.Entries)
	if failed != nil {
		return nil, failed
	}
	if base := services[volume]; strings.HasSuffix(base, "/"+versions[volume]+"/") {
		services[volume] = base + project.ID + "/" // which the service needs before microversion 3.67
	}
	opening := &grant{token: token.ID, project: project.ID, services: services}
	if a.credentials.Token == "" {
		opening.renewAt = transport.RenewalTime(token.ExpiresAt)
	}
	return opening, nil
}

// negotiate returns the microversion to use with the compute service.
func (a *auth) negotiate(ctx context.Context, g *grant) (string, *cloud.Error) {
	var root struct {
		Version struct {
			Version string `json:"version"`
			Min     string `json:"min_version"`
		} `json:"version"`
	}
	base, projectless := g.services[compute], *g
	// Below the version there is the id of the project in some catalogs.
	if at := regexp.MustCompile(`/v2(\.\d+)?/`).FindStringIndex(base); at != nil {
		base = base[:at[1]]
	}
	projectless.services = map[service]string{compute: base}
	call := &call{
		about: aboutSession, service: compute, method: http.MethodGet, route: "compute/", op: "ask for the version of the compute service", out: &root,
	}
	if _, err := a.exchange.send(ctx, call, &projectless); err != nil {
		err.Detail = "asking for the version of the compute service: " + err.Detail
		return "", err
	}
	major, most, err := utils.ParseMicroversion(root.Version.Version)
	_, least, _ := utils.ParseMicroversion(root.Version.Min)
	if err != nil || major != 2 || most < leastMicroversion || least > bestMicroversion {
		return "", refuse(call.op, cloud.Unavailable, "the compute service has the versions %s to %s: the operator needs microversion 2.%d or later",
			quote(root.Version.Min), quote(root.Version.Version), leastMicroversion)
	}
	return fmt.Sprintf("2.%d", min(most, bestMicroversion)), nil
}

// close returns the token to revoke, empty if there is none that was issued to the client.
func (a *auth) close() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	current := a.current
	if a.current = nil; current == nil || a.credentials.Token != "" {
		return ""
	}
	return current.token
}

// revoke ends the session, if there is one, and ignores the cloud's answer.
func (a *auth) revoke(ctx context.Context) {
	token := a.close()
	if token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(transport.WithCall(ctx, transport.Call{Route: "identity/auth/tokens", CloudWide: true}), transport.CloseTimeout)
	defer cancel()
	resp, err := a.exchange.provider(token).Request(ctx, http.MethodDelete, a.services.endpoint+"/auth/tokens", &gophercloud.RequestOpts{
		MoreHeaders: map[string]string{"X-Subject-Token": token}, KeepResponseBody: true,
	})
	if err == nil {
		_ = resp.Body.Close()
	}
}
