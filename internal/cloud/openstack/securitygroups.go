package openstack

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// securityGroups are those of a server in the JSON of the compute service, which has each once for each port.
type securityGroups cloud.SecurityGroups

// UnmarshalJSON reads security groups. They must not make a page unreadable.
func (g *securityGroups) UnmarshalJSON(data []byte) error {
	var list []struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(data, &list) != nil {
		list = nil
	}
	names := make([]string, 0, len(list))
	for _, one := range list {
		names = append(names, one.Name)
	}
	groups, _ := cloud.NewSecurityGroups(names)
	*g = securityGroups(groups)
	return nil
}

// securityGroupClient finds security groups, and gives them to servers.
type securityGroupClient struct {
	session *session
	ids     *lookup
	// byDefault are those of new servers without groups; may be empty.
	byDefault cloud.SecurityGroups
}

func newSecurityGroupClient(s *session, byDefault []string) *securityGroupClient {
	groups, _ := cloud.NewSecurityGroups(byDefault)
	ids := newLookup(s, "security group")
	ids.choose = "rename all but one" // compute shows the names of the groups of a server
	return &securityGroupClient{session: s, ids: ids, byDefault: groups}
}

// forNew returns the ids of the groups of a new server; none leaves them to the cloud.
func (c *securityGroupClient) forNew(ctx context.Context, op string, asked cloud.SecurityGroups) ([]string, *cloud.Error) {
	if asked != "" {
		return c.idsOf(ctx, op, asked)
	}
	ids, err := c.idsOf(ctx, op, c.byDefault)
	return ids, misconfigured("securityGroups.default", err)
}

// idsOf returns the ids of groups, sorted. The service takes names, too, but of two groups of one name none, and it accepts
// a group that is named twice, once by its id, and then fails to build the server. Other projects choose the names and the rules
// of the groups that they share.
func (c *securityGroupClient) idsOf(ctx context.Context, op string, groups cloud.SecurityGroups) ([]string, *cloud.Error) {
	if groups == "" {
		return nil, nil
	}
	project, err := c.session.project(ctx, op)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, name := range groups.List() {
		if looksLikeID.MatchString(name) {
			return nil, refuse(op, cloud.Rejected, "%s is the id of a security group: give its name", quote(name))
		}
		var got struct {
			Groups []named `json:"security_groups"`
		}
		call := &call{
			about: aboutCloud, service: network, method: http.MethodGet, route: "network/security-groups", path: "security-groups",
			query: url.Values{"name": {name}, "project_id": {project}, "fields": {"id", "name"}}, op: op, out: &got, limit: maxList,
		}
		id, err := c.ids.idOf(ctx, call, name, func() []named { return got.Groups })
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// set gives all ports of a server these groups and no others. Annotate sets metadata of the server.
func (c *securityGroupClient) set(ctx context.Context, op string, s *server, groups cloud.SecurityGroups, annotate func(map[string]string) *cloud.Error) *cloud.Error {
	ids, err := c.idsOf(ctx, op, groups)
	if err != nil {
		return err
	}
	ports, err := c.session.portsOf(ctx, op, s.ID, s.Metadata[networkKey])
	if err != nil {
		return err
	}
	ports = slices.DeleteFunc(ports, func(p port) bool { return slices.Equal(slices.Sorted(slices.Values(p.Groups)), ids) })
	marked := len(ports) > 1 || s.Metadata[guardedKey] != ""
	if len(ports) > 1 { // compute shows the groups of all ports together
		if err := annotate(map[string]string{guardedKey: "changing"}); err != nil {
			return err
		}
	}
	for _, p := range ports {
		if err := c.session.setPort(ctx, op, p.ID, map[string]any{"security_groups": ids}); err != nil {
			c.ids.forget() // a group may have been replaced since
			return err
		}
	}
	if marked {
		return annotate(map[string]string{guardedKey: ""})
	}
	return nil
}
