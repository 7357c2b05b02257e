package cloud

import (
	"errors"
	"testing"
)

func TestPublicMessageQuotesNoAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		err  *Error
		want string
	}{
		"a reason about the request: quoted": {
			&Error{Kind: Prohibited, Op: "check name", Detail: `the name "web.example" is prohibited`}, `check name: the name "web.example" is prohibited`},
		"a range of a Network: quoted": {
			&Error{Kind: Rejected, Op: "create network", Detail: "10.0.0.0/8 overlaps"}, "create network: 10.0.0.0/8 overlaps"},
		"a URL: removed": {
			&Error{Kind: Rejected, Op: "create server", Detail: `see "https://Cloud.internal:8443/x?y=z" for more`}, `create server: see "…" for more`},
		"a host with a port: removed": {
			&Error{Kind: Conflict, Op: "update server", Detail: "cloud.internal:8443 says no, 10.0.0.7:80 too"}, "update server: … says no, … too"},
		"an IPv6 address: removed": {
			&Error{Kind: Prohibited, Op: "check name", Detail: "asked [fd00::7]:443 and [fd00::8]"}, "check name: asked … and …"},
		"a Service of Kubernetes: removed": {
			&Error{Kind: Unsupported, Op: "update server", Detail: "gateway.team-b.svc.cluster.local refuses"}, "update server: … refuses"},
		"an address in the cause: removed": {
			&Error{Kind: Rejected, Op: "create server", Err: errors.New("dial 10.0.0.7:8443")}, "create server: dial …"},
		"no reason: the kind":     {&Error{Kind: Rejected, Op: "create server"}, "create server: Rejected"},
		"a quota: not the reason": {&Error{Kind: Quota, Op: "create server", Detail: "team-b has 9 of 9"}, "create server: the cloud has no capacity left"},
		"a key: not the reason":   {&Error{Kind: KeyReused, Op: "create server", Detail: "made team-b-db"}, "create server: its idempotency key belongs to a create with another content"},
		"the platform: the kind":  {&Error{Kind: Unavailable, Op: "list servers", Detail: "proxy.internal is down"}, "list servers: the cloud does not answer or cannot serve requests"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PublicMessage(tc.err); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if public := Public(tc.err); KindOf(public) != tc.err.Kind || public.Error() != tc.want {
				t.Errorf("Public: %s %q", KindOf(public), public)
			}
		})
	}
}
