package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/mockcloud"
)

func TestDiscrepancies(t *testing.T) {
	labels := map[string]string{ownerLabel: "uid-1"}
	create := func(id string) mockcloud.LedgerEntry {
		return mockcloud.LedgerEntry{Op: mockcloud.OpCreate, ServerID: id, Name: "vmsample", Labels: labels}
	}
	deleteRequested := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, ServerID: "a"}
	gone := mockcloud.LedgerEntry{Op: mockcloud.OpGone, ServerID: "a"}
	deleted := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, ServerID: "b", Final: true}
	createNetwork := mockcloud.LedgerEntry{Op: mockcloud.OpCreateNetwork, NetworkID: "n", Name: "net"}
	deleteNetwork := mockcloud.LedgerEntry{Op: mockcloud.OpDeleteNetwork, NetworkID: "n"}
	one, both := counts{servers: 1}, counts{servers: 1, networks: 1}
	for name, c := range map[string]struct {
		ledger        []mockcloud.LedgerEntry
		created, left counts
		want          []string
	}{
		"server whose asynchronous deletion is complete: no discrepancy": {ledger: []mockcloud.LedgerEntry{create("a"), deleteRequested, gone}, created: one},
		"server that was deleted at once: no discrepancy":                {ledger: []mockcloud.LedgerEntry{create("b"), deleted}, created: one},
		"server whose deletion was only requested: it exists": {
			ledger: []mockcloud.LedgerEntry{create("a"), deleteRequested}, created: one,
			want: []string{"1 servers and 0 networks exist, expected 0 and 0: [a (vmsample)] []"},
		},
		"expected server and network exist: no discrepancy": {ledger: []mockcloud.LedgerEntry{create("a"), createNetwork}, created: both, left: both},
		"expected server was deleted: one server too few": {
			ledger: []mockcloud.LedgerEntry{create("b"), createNetwork, deleted}, created: both, left: both,
			want: []string{"0 servers and 1 networks exist, expected 1 and 1: [] [n (net)]"},
		},
		"server of a Node: does not count": {
			ledger:  []mockcloud.LedgerEntry{{Op: mockcloud.OpCreate, By: mockcloud.ByAdmin, ServerID: "n", Name: "worker-1"}, create("b"), deleted},
			created: one,
		},
		"expected server was never created: one create too few": {
			created: one, want: []string{"0 servers and 0 networks were created, expected 1 and 0"},
		},
		"second server after the first: one create too many": {
			ledger: []mockcloud.LedgerEntry{create("a"), deleteRequested, gone, create("b"), deleted}, created: one,
			want: []string{"2 servers and 0 networks were created, expected 1 and 0"},
		},
		"two servers of one VM at the same time: reported in addition": {
			ledger: []mockcloud.LedgerEntry{create("a"), create("b"), deleteRequested, gone, deleted}, created: one,
			want: []string{"2 servers and 0 networks were created, expected 1 and 0", "VM uid-1 had 2 servers at the same time"},
		},
		"server without the owner label: reported": {
			ledger: []mockcloud.LedgerEntry{{Op: mockcloud.OpCreate, ServerID: "b", Name: "vmsample"}, deleted}, created: one,
			want: []string{"server b (vmsample) was created without the label " + ownerLabel},
		},
		"deleted network: no discrepancy": {ledger: []mockcloud.LedgerEntry{createNetwork, create("b"), deleted, deleteNetwork}, created: both},
		"network that was not deleted: it exists": {
			ledger: []mockcloud.LedgerEntry{createNetwork, create("b"), deleted}, created: both,
			want: []string{"0 servers and 1 networks exist, expected 0 and 0: [] [n (net)]"},
		},
		"expected network was never created: one create too few": {
			ledger: []mockcloud.LedgerEntry{create("b"), deleted}, created: both,
			want: []string{"1 servers and 0 networks were created, expected 1 and 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, discrepancies(c.ledger, c.created, c.left)); diff != "" {
				t.Errorf("discrepancies (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRequestedCountsServersAndNetworks(t *testing.T) {
	for name, c := range map[string]struct {
		manifests string
		want      counts
	}{
		"VM: one server":                              {"kind: VM\nmetadata: {name: sample}", counts{servers: 1}},
		"VM with a prohibited name: no server":        {"kind: VM\nmetadata: {name: taboo}", counts{}},
		"group: its replicas":                         {"kind: VmGroup\nmetadata: {name: a}\nspec: {replicas: 5}", counts{servers: 5}},
		"group without replicas: one server":          {"kind: VmGroup\nmetadata: {name: a}\nspec: {}", counts{servers: 1}},
		"group with a prohibited template: no server": {"kind: VmGroup\nmetadata: {name: a}\nspec: {replicas: 5, template: no-such-template}", counts{}},
		"network and GPUInfo: one network, no server": {"kind: Network\nmetadata: {name: a}\n---\nkind: GPUInfo\nmetadata: {name: a}", counts{networks: 1}},
		"VM and group: the sum":                       {"kind: VM\nmetadata: {name: a}\n---\nkind: VmGroup\nmetadata: {name: a}\nspec: {replicas: 3}", counts{servers: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := decode([]byte(c.manifests))
			if err != nil {
				t.Fatal(err)
			}
			if got := requested(expected, objects); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
