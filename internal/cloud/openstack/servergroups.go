package openstack

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/privatecloud/operator/internal/cloud"
)

// The policies of server groups.
const (
	antiAffinity     = "anti-affinity"
	softAntiAffinity = "soft-anti-affinity"
)

// groupsMicroversion is that of calls about server groups: later ones have another form.
const groupsMicroversion = "2.52"

// serverGroup is a group of the compute service: it keeps its servers on different hosts.
type serverGroup struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Policies []string `json:"policies"`
	Members  []string `json:"members"`
}

// has reports whether a group has this policy and no other.
func (g serverGroup) has(policy string) bool { return len(g.Policies) == 1 && g.Policies[0] == policy }

// serverGroupClient finds, makes and removes server groups, and says which are in use. The
// service does not delete those without servers.
type serverGroupClient struct {
	session *session
	// turn is held while groups are looked for, made or removed: names of groups are not unique.
	turn chan struct{}

	mu sync.Mutex
	// creating counts the creates under way by the id of their group.
	creating map[string]int
	// leaving are the servers with a group whose deletion has begun, with its name.
	leaving map[string]string
}

func newServerGroupClient(s *session) *serverGroupClient {
	return &serverGroupClient{session: s, turn: make(chan struct{}, 1), creating: map[string]int{}, leaving: map[string]string{}}
}

// maxLeaving bounds leaving.
const maxLeaving = 10_000

// leave records that the deletion of a server with a group has begun.
func (c *serverGroupClient) leave(id, group string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if group != "" && len(c.leaving) < maxLeaving {
		c.leaving[id] = group
	}
}

// left returns, once, the group that a server had which is gone; empty for none.
func (c *serverGroupClient) left(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	group := c.leaving[id]
	delete(c.leaving, id)
	return group
}

// begin records that a create in a group is under way. done ends that.
func (c *serverGroupClient) begin(id string) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.creating[id]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.creating[id]--
		if c.creating[id] == 0 {
			delete(c.creating, id)
		}
	}
}

func (c *serverGroupClient) idle(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.creating[id] == 0
}

// serverGroupFor returns the id of the server group of an anti-affinity, which is made if
// there is none, empty without one. done must be called after the create. Groups of the
// same cluster that have no servers are removed before one is made.
func (c *serverGroupClient) serverGroupFor(ctx context.Context, op string, a cloud.AntiAffinity) (id string, done func(), failed *cloud.Error) {
	if a == (cloud.AntiAffinity{}) {
		return "", func() {}, nil
	}
	release, failed := c.lookAtGroups(ctx, op)
	if failed != nil {
		return "", nil, failed
	}
	defer release()
	policy := softAntiAffinity
	if a.Required {
		policy = antiAffinity
	}
	groups, failed := c.listServerGroups(ctx, op)
	if failed != nil {
		return "", nil, failed
	}
	for _, g := range groups {
		if g.Name == a.Group && g.has(policy) {
			return g.ID, c.begin(g.ID), nil
		}
	}
	c.removeEmpty(ctx, op, groups, clusterOf(a.Group))
	id, failed = c.makeServerGroup(ctx, op, a.Group, policy)
	if failed != nil {
		return "", nil, failed
	}
	return id, c.begin(id), nil
}

// lookAtGroups waits for the turn to look for groups. release ends it.
func (c *serverGroupClient) lookAtGroups(ctx context.Context, op string) (release func(), failed *cloud.Error) {
	select {
	case c.turn <- struct{}{}:
		return func() { <-c.turn }, nil
	case <-ctx.Done():
		return nil, c.session.ended(ctx, op)
	}
}

// groupGone reports whether a create was refused because somebody has removed its server
// group, as another manager does with one that has no servers. The next create makes it anew.
func groupGone(err *cloud.Error) bool {
	detail := strings.ToLower(err.Detail)
	return err.Kind == cloud.Rejected && strings.Contains(detail, "instance group") && strings.Contains(detail, "could not be found")
}

// clusterOf returns the part of the name of a group that all groups of a cluster have.
func clusterOf(group string) string {
	cluster, _, _ := strings.Cut(group, "/")
	return cluster + "/"
}

// listServerGroups returns the groups of the project in the order of their ids: of several
// with one name, each manager uses the same.
func (c *serverGroupClient) listServerGroups(ctx context.Context, op string) ([]serverGroup, *cloud.Error) {
	var got struct {
		Groups []serverGroup `json:"server_groups"`
	}
	call := &call{
		about: aboutCloud, service: compute, method: http.MethodGet, route: "compute/os-server-groups", path: "os-server-groups",
		op: op, out: &got, limit: maxList, microversion: groupsMicroversion,
	}
	if err := c.session.do(ctx, call); err != nil {
		err.Detail = "listing the server groups: " + err.Detail
		return nil, err
	}
	groups := slices.DeleteFunc(got.Groups, func(g serverGroup) bool { return !isID(g.ID) })
	slices.SortFunc(groups, func(a, b serverGroup) int { return cmp.Compare(a.ID, b.ID) })
	return groups, nil
}

func (c *serverGroupClient) makeServerGroup(ctx context.Context, op, name, policy string) (string, *cloud.Error) {
	var made struct {
		Group serverGroup `json:"server_group"`
	}
	call := &call{
		about: aboutCloud, service: compute, method: http.MethodPost, route: "compute/os-server-groups", path: "os-server-groups",
		body: map[string]any{"server_group": map[string]any{"name": name, "policies": []string{policy}}}, op: op, out: &made, microversion: groupsMicroversion,
	}
	if err := c.session.do(ctx, call); err != nil {
		err.Detail = "making the server group of the anti-affinity: " + err.Detail
		err.Uncertain = false // a group that was made all the same is found by the next create
		return "", err
	}
	if !isID(made.Group.ID) {
		return "", unreadable(call, "the answer has no id of a server group")
	}
	return made.Group.ID, nil
}

// removeEmpty removes the groups of a cluster that have no servers and are not needed by a
// create of this client. It is repeated with the next create, so failures do not matter: a
// create whose group another manager has removed is refused, and sent again.
func (c *serverGroupClient) removeEmpty(ctx context.Context, op string, groups []serverGroup, cluster string) {
	for _, g := range groups {
		ours := strings.HasPrefix(g.Name, cluster) && (g.has(antiAffinity) || g.has(softAntiAffinity))
		if !ours || len(g.Members) > 0 || !c.idle(g.ID) {
			continue
		}
		_ = c.session.do(ctx, &call{
			about: aboutCloud, service: compute, method: http.MethodDelete, route: "compute/os-server-groups/{id}", path: "os-server-groups/" + g.ID, op: op,
			microversion: groupsMicroversion,
		})
	}
}

// leaveGroup removes the groups of a cluster without servers once a server that had one is
// gone.
func (c *serverGroupClient) leaveGroup(ctx context.Context, op, id string) {
	group := c.left(id)
	if group == "" {
		return
	}
	release, failed := c.lookAtGroups(ctx, op)
	if failed != nil {
		return
	}
	defer release()
	if groups, failed := c.listServerGroups(ctx, op); failed == nil {
		c.removeEmpty(ctx, op, groups, clusterOf(group))
	}
}
