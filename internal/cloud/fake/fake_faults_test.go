package fake_test

import (
	"errors"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
)

var (
	errLost    = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection reset", Uncertain: true}
	errFull    = &cloud.Error{Kind: cloud.Quota, Op: "create server", Detail: "the datastore is full"}
	errRefused = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection refused"}
)

func TestFail(t *testing.T) {
	for _, test := range []struct {
		name      string
		committed bool
		want      []string
	}{
		{name: "not committed: no effect", want: []string{"s1"}},
		{name: "committed: the call takes effect", committed: true, want: []string{"s1", "s2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := fake.New(fake.Options{Capabilities: everything})
			mustCreate(t, c, "a")
			c.Fail(fake.CreateServer, errRefused, test.committed)
			if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "b"}); !errors.Is(err, errRefused) {
				t.Errorf("CreateServer: %v, want %v", err, errRefused)
			}
			equal(t, "servers", test.want, c.ServerIDs())
			mustCreate(t, c, "c")
		})
	}
}

func TestFailQueuesFaultsOfAVerb(t *testing.T) {
	c := fake.New(fake.Options{})
	c.Fail(fake.ListServers, errRefused, false)
	c.Fail(fake.ListServers, nil, false)
	c.Fail(fake.ListServers, errLost, false)
	var got []string
	for range 4 {
		_, err := c.ListServers(t.Context(), cloud.ListServers{})
		e, _ := errors.AsType[*cloud.Error](err)
		if e == nil {
			e = &cloud.Error{}
		}
		got = append(got, e.Detail)
	}
	equal(t, "details", []string{"connection refused", "", "connection reset", ""}, got)
}

func TestFailWrapsOtherErrors(t *testing.T) {
	c := fake.New(fake.Options{})
	boom := errors.New("boom")
	c.Fail(fake.DeleteServer, boom, true)
	_, err := c.DeleteServer(t.Context(), "s1")
	if !errors.Is(err, boom) || !cloud.Is(err, cloud.Unavailable) || !cloud.Uncertain(err) {
		t.Errorf("DeleteServer: %#v, want boom as an uncertain *cloud.Error", err)
	}
}

func TestIgnoreAcceptsChangesWithoutEffect(t *testing.T) {
	c := fake.New(fake.Options{Capabilities: everything})
	id := mustCreate(t, c, "a")
	network, err := c.CreateNetwork(t.Context(), cloud.CreateNetwork{Name: "n", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []fake.Verb{fake.UpdateServer, fake.DeleteServer, fake.UpdateNetwork, fake.DeleteNetwork} {
		c.Ignore(verb)
	}
	before := c.Servers()
	_, updated := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetCPU(8)})
	result, deleted := c.DeleteServer(t.Context(), id)
	_, gateway := c.UpdateNetwork(t.Context(), network.ID, cloud.UpdateNetwork{Gateway: "10.0.0.2"})
	if err := errors.Join(updated, deleted, gateway, c.DeleteNetwork(t.Context(), network.ID)); err != nil || result.Gone() {
		t.Errorf("changes: %v, result %+v; want none to fail and the server not gone", err, result)
	}
	equal(t, "servers", before, c.Servers())
	equal(t, "networks", []cloud.Network{network}, c.Networks())
	c.Heal()
	if result, err := c.DeleteServer(t.Context(), id); err != nil || !result.Gone() {
		t.Errorf("DeleteServer after Heal: %+v, %v, want it gone", result, err)
	}
}
