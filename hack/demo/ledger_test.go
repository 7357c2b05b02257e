package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/mockcloud"
)

func TestTheLedgerMustShowEachServerAndNetworkMadeOnceAndNoneButThoseThatAreWanted(t *testing.T) {
	mine := map[string]string{ownerLabel: "uid-1"}
	create := func(id string) mockcloud.LedgerEntry {
		return mockcloud.LedgerEntry{Op: mockcloud.OpCreate, ServerID: id, Name: "vmsample", Labels: mine}
	}
	requested := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, ServerID: "a"}
	gone := mockcloud.LedgerEntry{Op: mockcloud.OpGone, ServerID: "a"}
	atOnce := mockcloud.LedgerEntry{Op: mockcloud.OpDelete, ServerID: "b", Final: true}
	laid := mockcloud.LedgerEntry{Op: mockcloud.OpCreateNetwork, NetworkID: "n", Name: "net"}
	lifted := mockcloud.LedgerEntry{Op: mockcloud.OpDeleteNetwork, NetworkID: "n"}
	one, both := tally{servers: 1}, tally{servers: 1, networks: 1}
	for name, c := range map[string]struct {
		ledger     []mockcloud.LedgerEntry
		made, left tally
		want       []string
	}{
		"a server whose slow deletion is complete is gone": {ledger: []mockcloud.LedgerEntry{create("a"), requested, gone}, made: one},
		"a server that was deleted at once is gone":        {ledger: []mockcloud.LedgerEntry{create("b"), atOnce}, made: one},
		"a server whose deletion was only asked for is there": {
			ledger: []mockcloud.LedgerEntry{create("a"), requested}, made: one,
			want: []string{"1 servers and 0 networks are there, expected 0 and 0: [a (vmsample)] []"},
		},
		"servers and networks that are wanted are there": {ledger: []mockcloud.LedgerEntry{create("a"), laid}, made: both, left: both},
		"one that is wanted must not be gone": {
			ledger: []mockcloud.LedgerEntry{create("b"), laid, atOnce}, made: both, left: both,
			want: []string{"0 servers and 1 networks are there, expected 1 and 1: [] [n (net)]"},
		},
		"a node's server is nobody's, and may stay": {
			ledger: []mockcloud.LedgerEntry{{Op: mockcloud.OpCreate, By: mockcloud.ByAdmin, ServerID: "n", Name: "worker-1"}, create("b"), atOnce},
			made:   one,
		},
		"a server that nobody made is missed, not overlooked": {
			made: one, want: []string{"0 servers and 0 networks were created, expected 1 and 0"},
		},
		"a second server after the first is one create too many": {
			ledger: []mockcloud.LedgerEntry{create("a"), requested, gone, create("b"), atOnce}, made: one,
			want: []string{"2 servers and 0 networks were created, expected 1 and 0"},
		},
		"two servers of one VM at a time are worse": {
			ledger: []mockcloud.LedgerEntry{create("a"), create("b"), requested, gone, atOnce}, made: one,
			want: []string{"2 servers and 0 networks were created, expected 1 and 0", "VM uid-1 had 2 servers at a time"},
		},
		"a server that does not say whose it is was made without care": {
			ledger: []mockcloud.LedgerEntry{{Op: mockcloud.OpCreate, ServerID: "b", Name: "vmsample"}, atOnce}, made: one,
			want: []string{"server b (vmsample) was made without the label " + ownerLabel},
		},
		"a network that was deleted is gone": {ledger: []mockcloud.LedgerEntry{laid, create("b"), atOnce, lifted}, made: both},
		"a network that is left is there": {
			ledger: []mockcloud.LedgerEntry{laid, create("b"), atOnce}, made: both,
			want: []string{"0 servers and 1 networks are there, expected 0 and 0: [] [n (net)]"},
		},
		"a network that nobody made is missed, not overlooked": {
			ledger: []mockcloud.LedgerEntry{create("b"), atOnce}, made: both,
			want: []string{"1 servers and 0 networks were created, expected 1 and 1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, discrepancies(c.ledger, c.made, c.left)); diff != "" {
				t.Errorf("what is wrong with the ledger (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServersAreAskedForByVMsAndByGroupsForTheirMembers(t *testing.T) {
	for name, c := range map[string]struct {
		manifests string
		want      tally
	}{
		"a VM is one server":                            {"kind: VM\nmetadata: {name: sample}", tally{servers: 1}},
		"a VM whose name is prohibited is none":         {"kind: VM\nmetadata: {name: taboo}", tally{}},
		"a group is as many as it says":                 {"kind: VmGroup\nmetadata: {name: a}\nspec: {replicas: 5}", tally{servers: 5}},
		"a group that says nothing is one":              {"kind: VmGroup\nmetadata: {name: a}\nspec: {}", tally{servers: 1}},
		"a group whose template is prohibited is none":  {"kind: VmGroup\nmetadata: {name: a}\nspec: {replicas: 5, template: no-such-template}", tally{}},
		"a network is no server, and a GPUInfo neither": {"kind: Network\nmetadata: {name: a}\n---\nkind: GPUInfo\nmetadata: {name: a}", tally{networks: 1}},
		"all of them add up":                            {"kind: VM\nmetadata: {name: a}\n---\nkind: VmGroup\nmetadata: {name: a}\nspec: {replicas: 3}", tally{servers: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := decode([]byte(c.manifests))
			if err != nil {
				t.Fatal(err)
			}
			if got := asked(objects); got != c.want {
				t.Errorf("asked for %+v, expected %+v", got, c.want)
			}
		})
	}
}
