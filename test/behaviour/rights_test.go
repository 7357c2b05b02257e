package behaviour_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
)

// indirect are the rights that the operator needs although it sends no request for
// them, or not in each run, each with the reason.
var indirect = map[string]string{
	"get clouds.samplecontroller.k8s.io":                 "the object is read again when its status write conflicts with another write",
	"get networks.samplecontroller.k8s.io":               "the object is read again when its status write conflicts with another write",
	"get vmconsolerequests.samplecontroller.k8s.io":      "the object is read again when its status write conflicts with another write",
	"get vmsnapshots.samplecontroller.k8s.io":            "the object is read again when its status write conflicts with another write",
	"approve vms.samplecontroller.k8s.io":                "the component approval asks for it when a VmGroup approves the plan of a member",
	"approve-for vms.samplecontroller.k8s.io":            "the component approval asks for it when a VmGroup approves the plan of a member for who approved its own",
	"update vmgroups/finalizers.samplecontroller.k8s.io": "the admission plugin OwnerReferencesPermissionEnforcement asks for it when a member is created",
}

// wholeSuite reports whether all cases run.
func wholeSuite() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

// checkRights fails if the API server refused a request of the operator for want
// of a right, and, if all cases ran, if the operator has a right that it never used.
func checkRights(all bool) error {
	ctx := context.Background()
	requests, err := env.Audited()
	if err != nil {
		return err
	}
	var cluster rbacv1.ClusterRole
	var own rbacv1.Role
	if err := env.Client.Get(ctx, client.ObjectKey{Name: "manager-role"}, &cluster); err != nil {
		return fmt.Errorf("reading the operator's ClusterRole: %w", err)
	}
	if err := env.Client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: "manager-role"}, &own); err != nil {
		return fmt.Errorf("reading the operator's Role: %w", err)
	}
	var failures []error
	for _, refused := range refusedRequests(requests) {
		failures = append(failures, fmt.Errorf("the operator has no right to %s", refused))
	}
	if all {
		for _, right := range unusedRights(append(cluster.Rules, own.Rules...), requests) {
			failures = append(failures, fmt.Errorf("no case needs the right to %s: remove its marker", right))
		}
	}
	return errors.Join(failures...)
}

// rightOf names the right to one verb on one resource, with the name of the object
// for rules that name objects.
func rightOf(verb, resource, group, name string) string {
	right := verb + " " + resource
	if group != "" {
		right += "." + group
	}
	if name != "" {
		right += " " + name
	}
	return right
}

// unusedRights returns the rights of the rules that no request used, sorted, except
// those that are used indirectly. A right to list is used with that to watch: a
// cache gets its first list from a watch, and lists where the API server cannot
// do that.
func unusedRights(rules []rbacv1.PolicyRule, requests []testkit.Request) []string {
	used := map[string]bool{}
	for _, r := range requests {
		used[rightOf(r.Verb, r.Resource(), r.Object.Group, "")] = true
		used[rightOf(r.Verb, r.Resource(), r.Object.Group, r.Object.Name)] = true
	}
	var unused []string
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						right := rightOf(verb, resource, group, name)
						_, needed := indirect[right]
						needed = needed || (verb == "list" && used[rightOf("watch", resource, group, name)])
						if !used[right] && !needed {
							unused = append(unused, right)
						}
					}
				}
			}
		}
	}
	slices.Sort(unused)
	return unused
}

// refusedRequests returns what the requests that were not authorized asked for, sorted,
// except reads of Secrets of other namespaces than its own: these allow them by Roles
// of their own, or not.
func refusedRequests(requests []testkit.Request) []string {
	var refused []string
	for _, r := range requests {
		theirs := r.Verb == "get" && r.Resource() == "secrets" && r.Object.Namespace != operatorNamespace
		if !r.Allowed() && !theirs {
			refused = append(refused, rightOf(r.Verb, r.Resource(), r.Object.Group, r.Object.Name))
		}
	}
	slices.Sort(refused)
	return slices.Compact(refused)
}

func TestUnusedRights(t *testing.T) {
	t.Parallel()
	request := func(verb, group, resource, subresource, name string) testkit.Request {
		r := testkit.Request{Verb: verb, Annotations: map[string]string{"authorization.k8s.io/decision": "allow"}}
		r.Object.Group, r.Object.Resource, r.Object.Subresource, r.Object.Name = group, resource, subresource, name
		return r
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"things", "things/status"}, Verbs: []string{"patch", "watch"}},
	}
	lists := append(slices.Clone(rules), rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"list"}})
	refused := request("delete", "example.com", "things", "", "one")
	refused.Annotations = map[string]string{"authorization.k8s.io/decision": "forbid"}
	for name, tc := range map[string]struct {
		requests        []testkit.Request
		unused, refused []string
	}{
		"no request: all rights are unused": {unused: []string{
			"get namespaces kube-system", "patch things.example.com", "patch things/status.example.com", "watch things.example.com", "watch things/status.example.com",
		}},
		"requests with all rights but one: that one": {
			requests: []testkit.Request{
				request("get", "", "namespaces", "", "kube-system"), request("patch", "example.com", "things", "", "one"),
				request("patch", "example.com", "things", "status", "one"), request("watch", "example.com", "things", "", ""),
			},
			unused: []string{"watch things/status.example.com"},
		},
		"a request for another object does not use the right to one": {
			requests: []testkit.Request{request("get", "", "namespaces", "", "other"), request("patch", "", "things", "", "one")},
			unused: []string{
				"get namespaces kube-system", "patch things.example.com", "patch things/status.example.com", "watch things.example.com", "watch things/status.example.com",
			},
		},
		"requests without a right: refused": {
			requests: []testkit.Request{refused, refused},
			unused: []string{
				"get namespaces kube-system", "patch things.example.com", "patch things/status.example.com", "watch things.example.com", "watch things/status.example.com",
			},
			refused: []string{"delete things.example.com one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.unused, unusedRights(rules, tc.requests)); diff != "" {
				t.Errorf("unused (-want +got):\n%s", diff)
			}
			wantLists := tc.unused
			if !slices.ContainsFunc(tc.requests, func(r testkit.Request) bool { return r.Verb == "watch" }) {
				wantLists = slices.Insert(slices.Clone(tc.unused), 1, "list things.example.com")
			}
			if diff := cmp.Diff(wantLists, unusedRights(lists, tc.requests)); diff != "" {
				t.Errorf("unused, with a right to list (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.refused, refusedRequests(tc.requests)); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}
