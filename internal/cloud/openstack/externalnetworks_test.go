package openstack

import (
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestExternalNetworkThatIsNone(t *testing.T) {
	n, client := newNeutron(t)
	n.add("networks", object{"id": someID, "name": "internal"})
	internal := n.all["networks"][1].text("id")
	for external, says := range map[string]string{
		"wan":      `no external network that can be used is named "wan"; there are: ext-net`,
		"internal": `no external network that can be used is named "internal"; there are: ext-net`,
		internal:   `no external network has the id "` + internal + `"`,
		otherID:    `no external network has the id "` + otherID + `"`,
	} {
		req := routed()
		req.ExternalNetwork = external
		_, err := client().CreateNetwork(t.Context(), req)
		if outcomeOf(err) != (outcome{Kind: cloud.Rejected}) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want Rejected with %q", external, err, says)
		}
	}
	n.all["networks"] = append(n.all["networks"], object{"id": otherID, "name": "ext-net", "router:external": true, "project_id": "another"})
	if _, err := client().CreateNetwork(t.Context(), routed()); !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "give the id of one") {
		t.Errorf("two of one name: %v", err)
	}
	if got := n.counts(); got["routers"] != 0 || n.changes != 0 {
		t.Errorf("left %v after %d changes, want none", got, n.changes)
	}
}

// The id of a name is kept for a while. An external network that was replaced meanwhile is looked up again.
func TestExternalNetworkThatIsReplaced(t *testing.T) {
	for name, replace := range map[string]func(n *neutron){
		"deleted": func(n *neutron) { n.all["networks"] = n.all["networks"][1:] },
		"not any more": func(n *neutron) {
			n.all["networks"][0]["router:external"], n.all["networks"][0]["name"] = false, "internal"
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, client := newNeutron(t)
			c := client()
			for _, connected := range []bool{false, true} {
				req := aNetwork
				if connected {
					req = routed()
				}
				made, err := c.CreateNetwork(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if !connected {
					continue
				}
				replace(n)
				n.all["networks"] = append(n.all["networks"], object{"id": otherID, "name": "ext-net", "router:external": true, "project_id": "another"})
				n.all["routers"][0]["external_gateway_info"] = nil
				change := cloud.UpdateNetwork{ExternalNetwork: "ext-net"}
				for _, id := range []string{made.ID, n.all["subnets"][0].text("network_id")} {
					if _, err = c.UpdateNetwork(t.Context(), id, change); err != nil {
						if !cloud.Is(err, cloud.Busy) {
							t.Errorf("UpdateNetwork: %v, want Busy", err)
						}
						_, err = c.UpdateNetwork(t.Context(), id, change)
					}
					got, failed := c.GetNetwork(t.Context(), id)
					if err != nil || failed != nil || got.Router.ExternalID != otherID {
						t.Errorf("%+v, %v, %v, want it connected to the new one", got.Router, err, failed)
					}
				}
			}
		})
	}
}

func TestIDOfAnExternalNetworkInCapitals(t *testing.T) {
	_, client := newNeutron(t)
	req := routed()
	req.ExternalNetwork = strings.ToUpper(externalID)
	made, err := client().CreateNetwork(t.Context(), req)
	if err != nil || made.Router.ExternalID != externalID || !made.Router.ConnectedTo(req.ExternalNetwork) {
		t.Errorf("%+v, %v, want it connected", made.Router, err)
	}
}

// The service refuses a router to a network that it does not show to be internal.
func TestInternalNetworkByIDThatIsNotShown(t *testing.T) {
	n, client := newNeutron(t)
	n.external = false
	req := routed()
	req.ExternalNetwork = n.add("networks", object{"name": "internal"}).text("id")
	_, err := client().CreateNetwork(t.Context(), req)
	if !cloud.Is(err, cloud.Rejected) || cloud.CodeOf(err) != cloud.CodeExternalNetworkUnknown {
		t.Errorf("CreateNetwork: %v, want it Rejected as unknown", err)
	}
}

// The service hides which networks are external from an account without the right get_network:router:external.
func TestExternalNetworksThatAreNotShown(t *testing.T) {
	for _, external := range []string{"ext-net", externalID} {
		n, client := newNeutron(t)
		n.external = false
		c := client()
		req := routed()
		req.ExternalNetwork = external
		made, err := c.CreateNetwork(t.Context(), req)
		if err != nil || !made.Router.ConnectedTo(external) {
			t.Fatalf("CreateNetwork with a router to %s: %+v, %v", external, made.Router, err)
		}
		if listed, err := c.ListNetworks(t.Context()); err != nil || len(listed) != 1 || listed[0].Router != made.Router {
			t.Errorf("ListNetworks: %+v, %v, want one with the router %+v", listed, err, made.Router)
		}
		if err := c.DeleteNetwork(t.Context(), made.ID); err != nil {
			t.Error(err)
		}
	}
}
